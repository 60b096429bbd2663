#include "trace/model.h"

#include <bit>
#include <cstring>

#include "trace/eval.h"

namespace stem::trace {

namespace {

// Formulas over up to three numbers that were read. The two-step ones round in between, as the program did.
enum Formula : uint8_t { kNoFormula, kCopy, kAdd, kSub, kMul, kDiv, kAddMul, kSubMul, kMulSub, kFormulas };
constexpr int kArity[kFormulas] = {0, 1, 2, 2, 2, 2, 3, 3, 3};

template <typename Number>
Number calculate_number(unsigned formula, Number x, Number y, Number z) {
  switch (formula) {
    case kCopy:
      return x;
    case kAdd:
      return x + y;
    case kSub:
      return x - y;
    case kMul:
      return x * y;
    case kDiv:
      return x / y;
    case kAddMul:
      return x + y * z;
    case kSubMul:
      return x - y * z;
    case kMulSub:
      return y * z - x;
    default:
      return 0;
  }
}

template <typename Number, typename Bits>
bool calculate_bits(unsigned formula, const uint64_t* from, uint64_t& value) {
  Number n[3];
  for (int i = 0; i < 3; ++i) n[i] = std::bit_cast<Number>(static_cast<Bits>(from[i]));
  Number result = calculate_number(formula, n[0], n[1], n[2]);
  if (result != result) return false;  // which NaN it is depends on more than this
  value = std::bit_cast<Bits>(result);
  return true;
}

}  // namespace

bool Model::calculate(unsigned formula, unsigned size, const uint64_t* from, uint64_t& value) {
  if (formula == kCopy) return value = from[0], true;
  if (size == 8) return calculate_bits<double, uint64_t>(formula, from, value);
  if (size == 4) return calculate_bits<float, uint32_t>(formula, from, value);
  return false;
}

namespace {

template <typename Number, typename Bits, unsigned formula>
size_t rows_as(const Model::Numbers* from, Model::Numbers wanted, size_t rows) {
  const char *x = from[0].at, *y = from[1].at, *z = from[2].at, *w = wanted.at;
  size_t row = 0;
  for (; row < rows; ++row, x += from[0].apart, y += from[1].apart, z += from[2].apart, w += wanted.apart) {
    Number a, b, c;
    Bits bits;
    std::memcpy(&a, x, sizeof a);
    std::memcpy(&b, y, sizeof b);
    std::memcpy(&c, z, sizeof c);
    std::memcpy(&bits, w, sizeof bits);
    const Number result = calculate_number<Number>(formula, a, b, c);
    if (result != result || std::bit_cast<Bits>(result) != bits) break;
  }
  return row;
}

template <typename Number, typename Bits>
size_t rows_by(unsigned formula, const Model::Numbers* from, Model::Numbers wanted, size_t rows) {
  switch (formula) {
    case kAdd:
      return rows_as<Number, Bits, kAdd>(from, wanted, rows);
    case kSub:
      return rows_as<Number, Bits, kSub>(from, wanted, rows);
    case kMul:
      return rows_as<Number, Bits, kMul>(from, wanted, rows);
    case kDiv:
      return rows_as<Number, Bits, kDiv>(from, wanted, rows);
    case kAddMul:
      return rows_as<Number, Bits, kAddMul>(from, wanted, rows);
    case kSubMul:
      return rows_as<Number, Bits, kSubMul>(from, wanted, rows);
    case kMulSub:
      return rows_as<Number, Bits, kMulSub>(from, wanted, rows);
    default:
      return 0;
  }
}

}  // namespace

// Sources of a formula over doubles may be of any size: those that are not are left to the other way.
size_t Model::calculate_rows(unsigned formula, unsigned size, const Numbers* from, Numbers wanted, size_t rows) {
  if (size == 8) return rows_by<double, uint64_t>(formula, from, wanted, rows);
  if (size == 4) return rows_by<float, uint32_t>(formula, from, wanted, rows);
  return 0;
}

bool Model::by_formula(const State& state, unsigned size, uint64_t& value) const {
  uint64_t from[3];
  for (int i = 0; i < 3; ++i) from[i] = states_[state.source[i]].value;
  return calculate(state.formula, size, from, value);
}

void Model::learn_formula(State& state, unsigned size, uint64_t value) {
  if (size != 4 && size != 8) return;
  if (state.failures < 255) ++state.failures;
  // A formula that held so far may fail where a loop begins or ends: it is right again the next time.
  if (state.formula && state.failures < 4) return;
  // Most writes that stay unpredicted follow no formula: do not try for ever.
  if (state.failures > 8 && (value * 0x9e3779b97f4a7c15ull) >> 56 != 0) return;
  const uint16_t* reads = context_->reads;
  constexpr int n = kReads;
  uint64_t v[n];
  for (int i = 0; i < n; ++i) v[i] = states_[reads[i]].value;
  for (uint8_t formula = kCopy; formula < kFormulas; ++formula) {
    for (int x = 0; x < n; ++x) {
      for (int y = 0; y < (kArity[formula] > 1 ? n : 1); ++y) {
        for (int z = 0; z < (kArity[formula] > 2 ? y + 1 : 1); ++z) {
          uint64_t from[3] = {v[x], v[y], v[z]}, got;
          if (!calculate(formula, size, from, got) || got != value) continue;
          // Zeros and copies of one value fit too many formulas by chance; they are cheap without.
          if (value == 0) return;
          state.formula = formula;
          state.failures = 0;
          state.source[0] = reads[x], state.source[1] = reads[y], state.source[2] = reads[z];
          return;
        }
      }
    }
  }
  if (state.failures > 4) state.formula = kNoFormula;
}

void Model::add_rare_expr(Op op, unsigned width, ExprId a, ExprId b, ExprId c, uint64_t given) {
  auto operand = [this](ExprId id, uint64_t& value, unsigned& its_width) {
    if (id == 0) return true;
    const Recent& r = recent_[id & (kRecent - 1)];
    value = r.value;
    its_width = r.width;
    return r.known && next_expr_ - id <= kRecent;
  };
  uint64_t x = 0, y = 0, z = 0;
  unsigned x_width = 0, y_width = 0, z_width = 0;
  bool known = operand(a, x, x_width) & operand(b, y, y_width) & operand(c, z, z_width);
  uint64_t value = 0;
  if (op == Op::Opaque) {
    known = true;
    value = given & width_mask(width);
  } else if (op == Op::Input) {
    auto found = inputs ? input_value(*inputs, given, width) : std::nullopt;
    known = found.has_value();
    value = found.value_or(0);
  } else if (op == Op::Read) {
    known = false;
  } else if (known) {
    value = apply(op, width, x, y, z, x_width, y_width, given);
  }
  push_recent(width, value, known);
}

}  // namespace stem::trace
