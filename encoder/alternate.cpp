// The branch that is to go the other way (THEORY: alternate branches). It takes the place of r under PREFIX: all that executes
// before it binds, nothing at or after it does, so the formula is the one of def-use pairs with another last line.
#include <algorithm>

#include "encoder/values.h"

namespace stem::encoder {

z3::expr Values::negated(uint32_t branch, const Wish& wish) {
  const Event& event = f_.event(branch);
  const z3::expr here = f_.cut == f_.position(branch);
  if (!event.expr) return f_.z3.bool_val(false);  // it depends on nothing
  const Term term = expression(event.expr);
  const unsigned width = f_.trace.exprs[event.expr].width;
  std::vector<z3::expr> parts{here, term.known};
  if (wish.value) parts.push_back(term.bits == f_.z3.bv_val(*wish.value, width));
  else parts.push_back(term.bits != f_.z3.bv_val(event.value, width));
  for (uint64_t value : wish.avoid) parts.push_back(term.bits != f_.z3.bv_val(value, width));
  return f_.all(parts);
}

// A recorder notes an assertion that held just before the branch that tests it: one decision, two events.
bool Values::repeats_target(uint32_t e) const {
  if (f_.target == trace::kNone || f_.event(e).kind != Kind::Assert || f_.event(f_.target).kind != Kind::Branch) return false;
  const auto& thread = f_.threads[f_.event(e).thread];
  const auto next = std::upper_bound(thread.begin(), thread.end(), e);
  if (next == thread.end() || *next != f_.target) return false;
  const trace::ExprId held = f_.event(e).expr, condition = f_.event(f_.target).expr;
  const trace::Expr& expr = f_.trace.exprs[held];
  return held == condition || (expr.op == trace::Op::Eq && (expr.a == condition || expr.b == condition));
}

}  // namespace stem::encoder
