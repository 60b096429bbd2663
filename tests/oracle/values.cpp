#include "oracle/values.h"

#include "util/error.h"

namespace stem::oracle {

using trace::Expr;
using trace::Op;

namespace {

int64_t to_signed(uint64_t bits, unsigned width) {
  const unsigned unused = 64 - width;
  return static_cast<int64_t>(bits << unused) >> unused;
}

uint64_t signed_divide(int64_t a, int64_t b) {
  if (b == 0) return a < 0 ? 1 : ~0ull;
  return b == -1 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a / b);
}

uint64_t signed_remainder(int64_t a, int64_t b) {
  if (b == 0) return static_cast<uint64_t>(a);
  return b == -1 ? 0 : static_cast<uint64_t>(a % b);
}

uint64_t shift_right_signed(int64_t a, uint64_t by, unsigned width) {
  return static_cast<uint64_t>(a >> (by >= width ? width - 1 : by));
}

}  // namespace

Value evaluate(const trace::Trace& trace, trace::ExprId id, const Leaf& now, const Leaf& recorded) {
  const Expr& e = trace.exprs.at(id);
  if (e.op == Op::Const) return {e.value & mask(e.width), true};
  if (e.op == Op::Read || e.op == Op::Input) return now(e);

  const auto operand = [&](trace::ExprId child) { return child ? evaluate(trace, child, now, recorded) : Value{}; };
  const Value x = operand(e.a), y = operand(e.b), z = operand(e.c);
  if (!x.known || !y.known || !z.known) return {0, false};
  const unsigned from = trace.exprs.at(e.a).width;  // width of the first operand
  const uint64_t a = x.bits, b = y.bits;
  const int64_t sa = to_signed(a, from);
  const int64_t sb = e.b ? to_signed(b, trace.exprs.at(e.b).width) : 0;
  const auto result = [&](uint64_t bits) { return Value{bits & mask(e.width), true}; };

  switch (e.op) {
    case Op::Const:
    case Op::Read:
    case Op::Input: break;
    case Op::Add: return result(a + b);
    case Op::Sub: return result(a - b);
    case Op::Mul: return result(a * b);
    case Op::UDiv: return result(b ? a / b : ~0ull);
    case Op::SDiv: return result(signed_divide(sa, sb));
    case Op::URem: return result(b ? a % b : a);
    case Op::SRem: return result(signed_remainder(sa, sb));
    case Op::Shl: return result(b >= e.width ? 0 : a << b);
    case Op::LShr: return result(b >= e.width ? 0 : a >> b);
    case Op::AShr: return result(shift_right_signed(sa, b, e.width));
    case Op::And: return result(a & b);
    case Op::Or: return result(a | b);
    case Op::Xor: return result(a ^ b);
    case Op::Eq: return result(a == b);
    case Op::Ne: return result(a != b);
    case Op::Ult: return result(a < b);
    case Op::Ule: return result(a <= b);
    case Op::Slt: return result(sa < sb);
    case Op::Sle: return result(sa <= sb);
    case Op::Ite: return result(a ? b : z.bits);
    case Op::ZExt: return result(a);
    case Op::SExt: return result(static_cast<uint64_t>(sa));
    case Op::Trunc: return result(a);
    case Op::Extract: return result(a >> e.value);
    case Op::Concat: return result(a << trace.exprs.at(e.b).width | b);
    case Op::Opaque: {
      const bool same = x == evaluate(trace, e.a, recorded, recorded) &&
                        (!e.b || y == evaluate(trace, e.b, recorded, recorded));
      return same ? result(e.value) : Value{0, false};
    }
  }
  STEM_CHECK(false);
}

}  // namespace stem::oracle
