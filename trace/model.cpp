#include "trace/model.h"

#include <algorithm>
#include <bit>

#include "trace/eval.h"

namespace stem::trace {

namespace {

// Formulas over up to three numbers that were read. The two-step ones round in between, as the program did.
enum Formula : uint8_t { kNoFormula, kCopy, kAdd, kSub, kMul, kDiv, kAddMul, kSubMul, kMulSub, kFormulas };
constexpr int kArity[kFormulas] = {0, 1, 2, 2, 2, 2, 3, 3, 3};

template <typename Number>
Number calculate(unsigned formula, Number x, Number y, Number z) {
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
  Number result = calculate(formula, n[0], n[1], n[2]);
  if (result != result) return false;  // which NaN it is depends on more than this
  value = std::bit_cast<Bits>(result);
  return true;
}

bool calculate(unsigned formula, unsigned size, const uint64_t* from, uint64_t& value) {
  if (formula == kCopy) return value = from[0], true;
  if (size == 8) return calculate_bits<double, uint64_t>(formula, from, value);
  if (size == 4) return calculate_bits<float, uint32_t>(formula, from, value);
  return false;
}

template <typename Number, typename Bits>
size_t calculate_bits(unsigned formula, const uint64_t* const from[3], uint64_t* values, size_t n) {
  bool number = true;
  auto all = [&](auto of) {
    for (size_t i = 0; i < n; ++i) {
      const Number result = of(std::bit_cast<Number>(static_cast<Bits>(from[0][i])), std::bit_cast<Number>(static_cast<Bits>(from[1][i])),
                               std::bit_cast<Number>(static_cast<Bits>(from[2][i])));
      number &= result == result;
      values[i] = std::bit_cast<Bits>(result);
    }
  };
  // The usual ones without asking which it is at every number.
  if (formula == kSubMul) all([](Number x, Number y, Number z) { return x - y * z; });
  else if (formula == kAddMul) all([](Number x, Number y, Number z) { return x + y * z; });
  else all([formula](Number x, Number y, Number z) { return calculate(formula, x, y, z); });
  if (number) return n;
  for (size_t i = 0; i < n; ++i) {
    const Number result = std::bit_cast<Number>(static_cast<Bits>(values[i]));
    if (result != result) return i;
  }
  return n;
}

}  // namespace

size_t Model::calculate_column(unsigned formula, unsigned size, const uint64_t* const from[3], uint64_t* values, size_t n) {
  if (formula == kCopy) return std::copy_n(from[0], n, values), n;
  if (size == 8) return calculate_bits<double, uint64_t>(formula, from, values, n);
  if (size == 4) return calculate_bits<float, uint32_t>(formula, from, values, n);
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

namespace {

// Each node waits for the one before it, which must not go through memory for that: a function for each operation and each way to
// get its operands, with what the node before gave in a register.
enum From { kConstant, kLast, kEarlier };
using NodeValue = uint64_t (*)(uint64_t last, const uint64_t* values, uint32_t at, const Model::RoundNode& node);

template <Op op, From first, From second>
uint64_t node_value(uint64_t last, const uint64_t* values, uint32_t at, const Model::RoundNode& node) {
  auto operand = [&](From from, uint32_t back) { return from == kConstant ? node.constant : from == kLast ? last : values[(at - back) & (Model::kRecent - 1)]; };
  return apply(op, node.width, operand(first, node.a), operand(second, node.b), 0, node.width, node.width, 0);
}

template <Op op>
NodeValue node_value(From first, From second) {
  static constexpr NodeValue table[3][3] = {
      {nullptr, node_value<op, kConstant, kLast>, node_value<op, kConstant, kEarlier>},
      {node_value<op, kLast, kConstant>, node_value<op, kLast, kLast>, node_value<op, kLast, kEarlier>},
      {node_value<op, kEarlier, kConstant>, node_value<op, kEarlier, kLast>, node_value<op, kEarlier, kEarlier>},
  };
  return table[first][second];
}

NodeValue node_value(Op op, From first, From second) {
  switch (op) {
    case Op::Add: return node_value<Op::Add>(first, second);
    case Op::Sub: return node_value<Op::Sub>(first, second);
    case Op::Mul: return node_value<Op::Mul>(first, second);
    case Op::UDiv: return node_value<Op::UDiv>(first, second);
    case Op::SDiv: return node_value<Op::SDiv>(first, second);
    case Op::URem: return node_value<Op::URem>(first, second);
    case Op::SRem: return node_value<Op::SRem>(first, second);
    case Op::Shl: return node_value<Op::Shl>(first, second);
    case Op::LShr: return node_value<Op::LShr>(first, second);
    case Op::AShr: return node_value<Op::AShr>(first, second);
    case Op::And: return node_value<Op::And>(first, second);
    case Op::Or: return node_value<Op::Or>(first, second);
    case Op::Xor: return node_value<Op::Xor>(first, second);
    case Op::Const: case Op::Read: case Op::Input: case Op::Opaque: case Op::Eq: case Op::Ne: case Op::Ult: case Op::Ule: case Op::Slt: case Op::Sle:
    case Op::Ite: case Op::ZExt: case Op::SExt: case Op::Trunc: case Op::Extract: case Op::Concat: break;
  }
  return nullptr;
}

}  // namespace

bool Model::add_rounds(const RoundNode* nodes, uint32_t count, uint32_t rounds) {
  NodeValue of[kMostRoundNodes];
  auto from = [](uint32_t back) { return back == 0 ? kConstant : back == 1 ? kLast : kEarlier; };
  if (count > kMostRoundNodes) return false;
  for (uint32_t i = 0; i < count; ++i)
    if (!(of[i] = node_value(nodes[i].op, from(nodes[i].a), from(nodes[i].b)))) return false;
  uint64_t* const values = recent_.data();
  constexpr uint32_t wrap = kRecent - 1;
  uint32_t at = next_expr_;
  uint64_t last = values[(at - 1) & wrap];
  for (uint32_t round = 0; round < rounds; ++round)
    for (uint32_t i = 0; i < count; ++i, ++at) values[at & wrap] = last = of[i](last, values, at, nodes[i]);
  for (uint32_t id = next_expr_; id != at;)
    for (uint32_t i = 0; i < count; ++i) recent_width_[id++ & wrap] = nodes[i].width;
  next_expr_ = at;
  return true;
}

void Model::add_rare_expr(Op op, unsigned width, ExprId a, ExprId b, ExprId c, uint64_t given) {
  auto operand = [this](ExprId id, uint64_t& value, unsigned& its_width) {
    if (id == 0) return true;
    value = recent_[id & (kRecent - 1)];
    its_width = recent_width_[id & (kRecent - 1)];
    return its_width && next_expr_ - id <= kRecent;
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
