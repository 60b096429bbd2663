// φsm, first part: what each thread computed, as bit-vector terms over its reads and the inputs. Opaque values are known only
// while their operands are what they were in the recording.
#include "encoder/terms.h"

#include "util/error.h"

namespace stem::encoder {

using trace::Event;
using trace::Kind;
using trace::Op;

namespace {

z3::expr resize(const z3::expr& bits, unsigned width) {
  const unsigned from = bits.get_sort().bv_size();
  if (from == width) return bits;
  return from < width ? z3::zext(bits, width - from) : bits.extract(width - 1, 0);
}

}  // namespace

z3::expr Terms::input_byte(uint32_t input, uint32_t offset) {
  if (!free_inputs_) return z3_.bv_val(trace_.inputs.at(input).bytes.at(offset), 8);
  return z3_.bv_const(("in" + std::to_string(input) + "_" + std::to_string(offset)).c_str(), 8);
}

Term Terms::written(uint32_t write) {
  const Event& event = trace_.events[write];
  const unsigned width = 8 * event.size;
  if (event.expr == 0)
    return {z3_.bv_val(event.kind == Kind::Rmw ? event.value2 : event.value, width), z3_.bool_val(true)};
  const Term term = expression(event.expr);
  return {resize(term.bits, width), term.known};
}

// Operands first, without recursion: expressions of loops are deep.
Term Terms::expression(trace::ExprId id) {
  std::vector<trace::ExprId> stack{id};
  while (!stack.empty()) {
    const trace::ExprId next = stack.back();
    const trace::Expr& e = trace_.exprs[next];
    if (expressions_.count(next)) {
      stack.pop_back();
      continue;
    }
    if (fixed(next)) {
      expressions_.emplace(next, Term{z3_.bv_val(index_.recorded[next], e.width), z3_.bool_val(true)});
      continue;
    }
    bool ready = true;
    for (trace::ExprId child : {e.a, e.b, e.c})
      if (child && !expressions_.count(child)) ready = false, stack.push_back(child);
    if (!ready) continue;
    stack.pop_back();
    if (e.op == Op::Const) {
      expressions_.emplace(next, Term{z3_.bv_val(e.value, e.width), z3_.bool_val(true)});
    } else if (e.op == Op::Read) {
      const Term term = read(static_cast<uint32_t>(e.value));
      expressions_.emplace(next, Term{resize(term.bits, e.width), term.known});
    } else if (e.op == Op::Input) {
      const uint32_t input = static_cast<uint32_t>(e.value >> 32), offset = static_cast<uint32_t>(e.value);
      z3::expr bits = input_byte(input, offset);
      for (unsigned k = 1; 8 * k < e.width; ++k) bits = z3::concat(input_byte(input, offset + k), bits);
      expressions_.emplace(next, Term{resize(bits, e.width), z3_.bool_val(true)});
    } else {
      std::vector<Term> operands;
      std::vector<z3::expr> known;
      for (trace::ExprId child : {e.a, e.b, e.c}) {
        if (!child) continue;
        const Term& operand = expressions_.at(child);
        operands.push_back(operand);
        known.push_back(operand.known);
        if (e.op == Op::Opaque)
          known.push_back(operand.bits == z3_.bv_val(index_.recorded[child], trace_.exprs[child].width));
      }
      expressions_.emplace(next, Term{apply(e, operands), all(known)});
    }
  }
  return expressions_.at(id);
}

z3::expr Terms::apply(const trace::Expr& e, const std::vector<Term>& operands) {
  const z3::expr a = operands[0].bits;
  const z3::expr b = operands.size() > 1 ? operands[1].bits : a;
  const auto bit = [&](const z3::expr& condition) { return z3::ite(condition, z3_.bv_val(1, 1), z3_.bv_val(0, 1)); };
  const unsigned from = a.get_sort().bv_size();
  switch (e.op) {
    case Op::Const: case Op::Read: case Op::Input: break;
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::UDiv: return z3::udiv(a, b);
    case Op::SDiv: return a / b;
    case Op::URem: return z3::urem(a, b);
    case Op::SRem: return z3::srem(a, b);
    case Op::Shl: return z3::shl(a, b);
    case Op::LShr: return z3::lshr(a, b);
    case Op::AShr: return z3::ashr(a, b);
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Eq: return bit(a == b);
    case Op::Ne: return bit(a != b);
    case Op::Ult: return bit(z3::ult(a, b));
    case Op::Ule: return bit(z3::ule(a, b));
    case Op::Slt: return bit(z3::slt(a, b));
    case Op::Sle: return bit(z3::sle(a, b));
    case Op::Ite: return z3::ite(a == z3_.bv_val(1, 1), b, operands[2].bits);
    case Op::ZExt: return resize(a, e.width);
    case Op::SExt: return e.width > from ? z3::sext(a, e.width - from) : a;
    case Op::Trunc: return resize(a, e.width);
    case Op::Extract: return a.extract(static_cast<unsigned>(e.value) + e.width - 1, static_cast<unsigned>(e.value));
    case Op::Concat: return z3::concat(a, b);
    case Op::Opaque: return z3_.bv_val(e.value, e.width);
  }
  STEM_CHECK(false);
}

z3::expr Terms::all(const std::vector<z3::expr>& parts) const {
  z3::expr_vector kept(z3_);
  for (const z3::expr& part : parts) {
    if (part.is_false()) return part;
    if (!part.is_true()) kept.push_back(part);
  }
  return kept.empty() ? z3_.bool_val(true) : kept.size() == 1 ? kept[0] : z3::mk_and(kept);
}

}  // namespace stem::encoder
