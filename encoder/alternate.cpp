// The branch that is to go the other way (alternate branches). It takes the place of r under PREFIX: all that executes before
// it binds, nothing at or after it does, so the formula is the one of def-use pairs with another last line.
#include <algorithm>

#include "encoder/decision.h"
#include "encoder/values.h"

namespace stem::encoder {

bool same_decision(const trace::Trace& trace, uint32_t assertion, uint32_t branch) {
  const Event &a = trace.events[assertion], &b = trace.events[branch];
  if (a.kind != Kind::Assert || b.kind != Kind::Branch || a.thread != b.thread || assertion > branch) return false;
  for (uint32_t e = assertion + 1; e < branch; ++e)
    if (trace.events[e].thread == b.thread) return false;
  const trace::Expr& held = trace.exprs[a.expr];
  return a.expr == b.expr || (held.op == trace::Op::Eq && (held.a == b.expr || held.b == b.expr));
}

std::vector<z3::expr> decides(z3::context& z3, const Term& term, uint64_t recorded, const Wish& wish) {
  const unsigned width = term.bits.get_sort().bv_size();
  std::vector<z3::expr> parts{term.known};
  if (wish.value) parts.push_back(term.bits == z3.bv_val(*wish.value, width));
  else parts.push_back(term.bits != z3.bv_val(recorded, width));
  for (uint64_t value : wish.avoid) parts.push_back(term.bits != z3.bv_val(value, width));
  return parts;
}

z3::expr Values::negated(uint32_t branch, const Wish& wish) {
  const Event& event = f_.event(branch);
  const bool read_itself = reads(event);  // then it has executed, and nothing else of its thread
  if (!event.expr && !read_itself) return f_.z3.bool_val(false);  // it depends on nothing
  std::vector<z3::expr> parts = decides(f_.z3, read_itself ? read(branch) : expression(event.expr), event.value, wish);
  parts.push_back(read_itself ? f_.cut == f_.position(branch) + 1 : f_.cut == f_.position(branch));
  for (const std::vector<uint32_t>& group : wish.some_before) {
    std::vector<z3::expr> options;
    for (uint32_t e : group)
      if (f_.in_scope(e) && e != branch) options.push_back(f_.position(e) < f_.cut);
    parts.push_back(f_.any(options));
  }
  return f_.all(parts);
}

// Whose pins do not bind: the read-modify-write that the target, a pin, is part of.
uint32_t Values::target_rmw() const {
  if (f_.target == trace::kNone || f_.event(f_.target).kind != Kind::Pin) return trace::kNone;
  const auto& thread = f_.threads[f_.event(f_.target).thread];
  auto at = std::lower_bound(thread.begin(), thread.end(), f_.target);
  while (at != thread.begin() && f_.event(*at).kind == Kind::Pin) --at;
  return f_.event(*at).kind == Kind::Rmw ? *at : trace::kNone;
}

}  // namespace stem::encoder
