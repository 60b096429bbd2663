#include "trace/model.h"

#include "trace/eval.h"

namespace stem::trace {

void Model::add_expr(const Expr& e) {
  uint64_t values[3] = {};
  unsigned widths[3] = {};
  bool known = e.op != Op::Read && e.op != Op::Opaque;
  const ExprId operands[] = {e.a, e.b, e.c};
  for (int i = 0; i < 3; ++i) {
    ExprId id = operands[i];
    if (id == 0) continue;
    known = known && recent(id, values[i]);
    widths[i] = recent_[id & (kRecent - 1)].width;
  }
  uint64_t value = 0;
  if (e.op == Op::Opaque) {
    known = true;
    value = e.value & width_mask(e.width);
  } else if (e.op == Op::Input) {
    auto found = inputs ? input_value(*inputs, e.value, e.width) : std::nullopt;
    known = found.has_value();
    value = found.value_or(0);
  } else if (known) {
    value = apply(e.op, e.width, values[0], values[1], values[2], widths[0], widths[1], e.value);
  }
  push_recent(e.width, value, known);
}

}  // namespace stem::trace
