// Values of expressions. One function applies one operation to known operands; Evaluator gives the value of a whole
// expression under other leaf values than the recorded ones, which is how checkers re-execute a witness.
//
// An Opaque node is its recorded result while both operands keep their recorded values, and unknown otherwise; unknown
// spreads to whatever uses it, and satisfies no pin.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "trace/event.h"

namespace stem::trace {

constexpr uint64_t width_mask(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }

// The result of `op` with `width` bits on operands a, b, c, of which `a_width` and `b_width` are the widths of the first
// two; `value` as in ops.def. Not for leaves, nor for Opaque. Total: a division by zero gives all ones (a remainder: the
// dividend), as in SMT-LIB.
inline uint64_t apply(Op op, unsigned width, uint64_t a, uint64_t b, uint64_t c, unsigned a_width, unsigned b_width, uint64_t value);

// Why an expression does not fit the rules of ops.def (operand order, widths), or nullptr. `before` are the nodes it may
// refer to: all with a smaller id.
const char* malformed(const Expr& expr, ExprId id, std::span<const Expr> before);

// Little-endian bytes of an input, as Op::Input names them; nothing if it lies outside.
std::optional<uint64_t> input_value(std::span<const Input> inputs, uint64_t where, unsigned width);

// The recorded value of every expression, index by id. A leaf that names no event or input byte gives 0.
std::vector<uint64_t> recorded_values(const Trace& trace);

// Evaluates with memory: each node once. Leaves are asked for by id; nothing means unknown.
class Evaluator {
 public:
  using Leaf = std::function<std::optional<uint64_t>(ExprId id, const Expr& leaf)>;

  Evaluator(std::span<const Expr> exprs, std::span<const uint64_t> recorded, Leaf leaf)
      : exprs_(exprs), recorded_(recorded), leaf_(std::move(leaf)), state_(exprs.size()), value_(exprs.size()) {}

  std::optional<uint64_t> value(ExprId id);
  void reset();  // forget: leaf values have changed

 private:
  enum State : uint8_t { Todo, Known, Unknown };
  void finish(ExprId id);

  std::span<const Expr> exprs_;
  std::span<const uint64_t> recorded_;
  Leaf leaf_;
  std::vector<State> state_;
  std::vector<uint64_t> value_;
  std::vector<ExprId> touched_, stack_;
};

[[noreturn]] void not_an_operation();

constexpr int64_t sign_extended(uint64_t value, unsigned width) {
  if (width == 0 || width >= 64) return static_cast<int64_t>(value);
  return static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}

inline uint64_t signed_divide(uint64_t a, uint64_t b, unsigned width, bool remainder) {
  int64_t x = sign_extended(a, width), y = sign_extended(b, width);
  if (y == 0) return remainder ? a : (x < 0 ? 1 : ~0ull);
  if (y == -1) return remainder ? 0 : 0 - static_cast<uint64_t>(x);  // also the overflowing case
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

[[gnu::always_inline]] inline uint64_t apply(Op op, unsigned width, uint64_t a, uint64_t b, uint64_t c, unsigned a_width, unsigned b_width, uint64_t value) {
  uint64_t mask = width_mask(width);
  switch (op) {
    case Op::Const: return value & mask;
    case Op::Read: case Op::Input: case Op::Opaque: break;
    case Op::Add: return (a + b) & mask;
    case Op::Sub: return (a - b) & mask;
    case Op::Mul: return (a * b) & mask;
    case Op::UDiv: return b ? a / b : mask;
    case Op::SDiv: return signed_divide(a, b, width, false) & mask;
    case Op::URem: return b ? a % b : a;
    case Op::SRem: return signed_divide(a, b, width, true) & mask;
    case Op::Shl: return b < width ? (a << b) & mask : 0;
    case Op::LShr: return b < width ? a >> b : 0;
    case Op::AShr: return static_cast<uint64_t>(sign_extended(a, width) >> (b < width ? b : width - 1)) & mask;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Ult: return a < b;
    case Op::Ule: return a <= b;
    case Op::Slt: return sign_extended(a, a_width) < sign_extended(b, a_width);
    case Op::Sle: return sign_extended(a, a_width) <= sign_extended(b, a_width);
    case Op::Ite: return (a & 1) ? b : c;
    case Op::ZExt: return a & mask;
    case Op::SExt: return static_cast<uint64_t>(sign_extended(a, a_width)) & mask;
    case Op::Trunc: return a & mask;
    case Op::Extract: return value < 64 ? (a >> value) & mask : 0;
    case Op::Concat: return ((b_width < 64 ? a << b_width : 0) | b) & mask;
  }
  not_an_operation();
}

}  // namespace stem::trace
