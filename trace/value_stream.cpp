#include "trace/value_stream.h"

#include "trace/eval.h"

namespace stem::trace {

ValueStore::Value ValueStream::evaluate(const Expr& e) {
  if (e.op == Op::Opaque) return {e.value & width_mask(e.width), e.width, ValueStore::Known};
  ValueStore::Value v[3];
  const ExprId operands[] = {e.a, e.b, e.c};
  ValueStore::State state = ValueStore::Known;
  for (int i = 0; i < 3; ++i) {
    if (!operands[i]) continue;
    v[i] = values_.get(operands[i]);
    if (v[i].state != ValueStore::Known && state != ValueStore::Lost) state = v[i].state;
  }
  if (state != ValueStore::Known) return {0, e.width, state};
  return {apply(e.op, e.width, v[0].value, v[1].value, v[2].value, v[0].width, v[1].width, e.value), e.width,
          ValueStore::Known};
}

void ValueStream::expr(const Expr& e, const std::vector<Input>& inputs) {
  ValueStore::Value v{0, e.width, ValueStore::Pending};
  if (e.op == Op::Input)
    v = {input_value(inputs, e.value, e.width).value_or(0), e.width, ValueStore::Known};
  else if (e.op != Op::Read)
    v = evaluate(e);
  if (v.state == ValueStore::Pending && e.op != Op::Read) pending_.emplace_back(next(), e);
  values_.push(v);
}

void ValueStream::event(const Event& e) {
  if (!e.leaf) return;
  const ValueStore::Value leaf = values_.get(e.leaf);
  values_.set(e.leaf, {e.value & width_mask(leaf.width), leaf.width, ValueStore::Known});
  std::vector<std::pair<ExprId, Expr>> still;
  for (auto& [id, expr] : pending_) {
    const ValueStore::Value v = evaluate(expr);
    values_.set(id, v);
    if (v.state == ValueStore::Pending) still.emplace_back(id, expr);
  }
  pending_ = std::move(still);
}

}  // namespace stem::trace
