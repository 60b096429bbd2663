#include "trace/value_stream.h"

#include "trace/eval.h"

namespace stem::trace {

void ValueStream::expr(const Expr& e, const std::vector<Input>& inputs) {
  ValueStore::Value v{0, e.width, ValueStore::Pending};
  if (e.op == Op::Input)
    v = {input_value(inputs, e.value, e.width).value_or(0), e.width, ValueStore::Known};
  else if (e.op != Op::Read)
    v = values_.apply(e);
  if (v.state == ValueStore::Pending && e.op != Op::Read) pending_.emplace_back(next(), e);
  values_.push(v);
}

void ValueStream::event(const Event& e) {
  if (!e.leaf) return;
  const ValueStore::Value leaf = values_.get(e.leaf);
  values_.set(e.leaf, {e.value & width_mask(leaf.width), leaf.width, ValueStore::Known});
  std::vector<std::pair<ExprId, Expr>> still;
  for (auto& [id, expr] : pending_) {
    const ValueStore::Value v = values_.apply(expr);
    values_.set(id, v);
    if (v.state == ValueStore::Pending) still.emplace_back(id, expr);
  }
  pending_ = std::move(still);
}

}  // namespace stem::trace
