#include "trace/eval.h"

#include "util/error.h"

namespace stem::trace {

void not_an_operation() { STEM_CHECK(!"an operation, not a leaf"); }

const char* malformed(const Expr& expr, ExprId id, std::span<const Expr> before) {
  if (expr.width < 1 || expr.width > 64) return "a width outside 1 to 64";
  int arity = op_arity(expr.op);
  const ExprId operands[] = {expr.a, expr.b, expr.c};
  unsigned widths[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (i >= arity) {
      if (operands[i] != 0) return "more operands than the operation takes";
      continue;
    }
    if (expr.op == Op::Opaque && operands[i] == 0) continue;
    if (operands[i] == 0) return "a missing operand";
    if (operands[i] >= id || operands[i] >= before.size()) return "an operand that is not defined before it";
    widths[i] = before[operands[i]].width;
  }
  switch (expr.op) {
    case Op::Const: return (expr.value & ~width_mask(expr.width)) ? "a constant wider than its width" : nullptr;
    case Op::Read: case Op::Opaque: return nullptr;
    case Op::Input: return expr.width % 8 ? "an input that is not whole bytes" : nullptr;
    case Op::Eq: case Op::Ne: case Op::Ult: case Op::Ule: case Op::Slt: case Op::Sle:
      if (expr.width != 1) return "a comparison whose result is not 1 bit";
      return widths[0] == widths[1] ? nullptr : "operands of different widths";
    case Op::Ite:
      if (widths[0] != 1) return "a condition that is not 1 bit";
      return widths[1] == expr.width && widths[2] == expr.width ? nullptr : "operands of another width than the result";
    case Op::ZExt: case Op::SExt: return widths[0] < expr.width ? nullptr : "an extension that does not widen";
    case Op::Trunc: return widths[0] > expr.width ? nullptr : "a truncation that does not narrow";
    case Op::Extract:
      return expr.value < 64 && expr.value + expr.width <= widths[0] ? nullptr : "an extraction outside its operand";
    case Op::Concat: return widths[0] + widths[1] == expr.width ? nullptr : "a concatenation of another width";
    case Op::Add: case Op::Sub: case Op::Mul: case Op::UDiv: case Op::SDiv: case Op::URem: case Op::SRem: case Op::Shl:
    case Op::LShr: case Op::AShr: case Op::And: case Op::Or: case Op::Xor:
      return widths[0] == expr.width && widths[1] == expr.width ? nullptr : "operands of another width than the result";
  }
  return "an unknown operation";
}

std::optional<uint64_t> input_value(std::span<const Input> inputs, uint64_t where, unsigned width) {
  uint64_t index = where >> 32, offset = where & 0xffffffffu, count = (width + 7) / 8;
  if (index >= inputs.size() || offset + count > inputs[index].bytes.size()) return std::nullopt;
  uint64_t value = 0;
  for (uint64_t i = 0; i < count; ++i) value |= static_cast<uint64_t>(inputs[index].bytes[offset + i]) << (8 * i);
  return value & width_mask(width);
}

std::vector<uint64_t> recorded_values(const Trace& trace) {
  std::vector<uint64_t> values(trace.exprs.size());
  for (ExprId id = 1; id < trace.exprs.size(); ++id) {
    const Expr& e = trace.exprs[id];
    if (e.op == Op::Read) {
      values[id] = e.value < trace.events.size() ? trace.events[e.value].value & width_mask(e.width) : 0;
    } else if (e.op == Op::Input) {
      values[id] = input_value(trace.inputs, e.value, e.width).value_or(0);
    } else if (e.op == Op::Opaque) {
      values[id] = e.value & width_mask(e.width);
    } else {
      STEM_CHECK(e.a < id && e.b < id && e.c < id);
      values[id] = apply(e.op, e.width, values[e.a], values[e.b], values[e.c], trace.exprs[e.a].width,
                         trace.exprs[e.b].width, e.value);
    }
  }
  return values;
}

void Evaluator::finish(ExprId id) {
  const Expr& e = exprs_[id];
  touched_.push_back(id);
  state_[id] = Unknown;
  if (e.op == Op::Read || e.op == Op::Input) {
    if (auto value = leaf_(id, e)) {
      state_[id] = Known;
      value_[id] = *value & width_mask(e.width);
    }
    return;
  }
  if (e.op == Op::Opaque) {
    for (ExprId operand : {e.a, e.b}) {
      if (operand && (state_[operand] != Known || value_[operand] != recorded_[operand])) return;
    }
    state_[id] = Known;
    value_[id] = e.value & width_mask(e.width);
    return;
  }
  if (e.op == Op::Ite) {  // the operand that is not chosen may be unknown
    if (state_[e.a] != Known) return;
    ExprId chosen = (value_[e.a] & 1) ? e.b : e.c;
    state_[id] = state_[chosen];
    value_[id] = value_[chosen];
    return;
  }
  for (ExprId operand : {e.a, e.b, e.c}) {
    if (operand && state_[operand] != Known) return;
  }
  state_[id] = Known;
  value_[id] = apply(e.op, e.width, value_[e.a], value_[e.b], value_[e.c], exprs_[e.a].width, exprs_[e.b].width, e.value);
}

std::optional<uint64_t> Evaluator::value(ExprId id) {
  STEM_CHECK(id != 0 && id < exprs_.size());
  stack_.push_back(id);
  while (!stack_.empty()) {
    ExprId top = stack_.back();
    if (state_[top] != Todo) {
      stack_.pop_back();
      continue;
    }
    size_t before = stack_.size();
    const Expr& e = exprs_[top];
    for (ExprId operand : {e.a, e.b, e.c}) {
      STEM_CHECK(operand < top);
      if (operand && state_[operand] == Todo) stack_.push_back(operand);
    }
    if (stack_.size() > before) continue;
    finish(top);
    stack_.pop_back();
  }
  if (state_[id] != Known) return std::nullopt;
  return value_[id];
}

void Evaluator::reset() {
  for (ExprId id : touched_) state_[id] = Todo;
  touched_.clear();
}

}  // namespace stem::trace
