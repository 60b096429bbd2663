// φsm, second part (the terms themselves are in terms.cpp): what holds the trace to its path.
//
// Only pins (branches, assertions, pinned reads) constrain anything; a write is a term that reads may be matched with. A
// pin binds where it executes: at its anchor, and a pin that directly follows a read-modify-write at that event itself.
#include <algorithm>

#include "encoder/decision.h"
#include "encoder/values.h"
#include "util/error.h"

namespace stem::encoder {

using trace::Op;

Values::Values(Formula& f) : Terms(f.z3, f.index, f.options.free_inputs), f_(f) {
  for (uint32_t e : f.events)
    if (writes(f.event(e)))
      for (unsigned k = 0; k < f.event(e).size; ++k) writers_[{f.event(e).object, f.event(e).addr + k}].push_back(e);
}

void Values::add_leaves(trace::ExprId id, std::vector<uint32_t>& reads) const {
  std::vector<trace::ExprId> todo{id};
  std::unordered_set<trace::ExprId> seen;
  while (!todo.empty()) {
    const trace::ExprId next = todo.back();
    todo.pop_back();
    if (next == 0 || fixed(next) || !seen.insert(next).second) continue;
    const trace::Expr& e = f_.trace.exprs[next];
    if (e.op == Op::Read) reads.push_back(static_cast<uint32_t>(e.value));
    todo.insert(todo.end(), {e.a, e.b, e.c});
  }
}

// Backwards from everything that binds: a read it depends on, the writes that read may take, the reads those depend on.
void Values::find_relevant_reads() {
  std::vector<uint32_t> todo;
  for (uint32_t e : f_.events) {
    const Event& event = f_.event(e);
    if (binds(event)) add_leaves(event.expr, todo);
    if (reads(event) && (event.flags & trace::kPinned || f_.options.paper)) todo.push_back(e);
  }
  std::unordered_set<uint32_t> seen, seen_writes;
  while (!todo.empty()) {
    const uint32_t read = todo.back();
    todo.pop_back();
    if (!f_.in_scope(read) || !seen.insert(read).second) continue;
    relevant_.push_back(read);
    for (const Chunk& chunk : chunks(read)) {
      unknowns_ |= !chunk.initial_known;
      for (uint32_t write : chunk.writers)
        if (seen_writes.insert(write).second) add_leaves(f_.event(write).expr, todo);
    }
  }
  std::sort(relevant_.begin(), relevant_.end());
  unknowns_ |= f_.index.opaque;
}

Term Values::read(uint32_t read) {
  auto it = reads_.find(read);
  if (it != reads_.end()) return it->second;
  const std::string name = std::to_string(read);
  if (f_.past(read))
    return reads_.emplace(read, Term{f_.z3.bv_val(f_.event(read).value, 8 * f_.event(read).size), f_.z3.bool_val(true)}).first->second;
  if (!f_.in_scope(read))  // never executed: nothing is known of it
    return reads_.emplace(read, Term{f_.z3.bv_val(0, 8 * f_.event(read).size), f_.z3.bool_val(false)}).first->second;
  const Term term{f_.z3.bv_const(("r" + name).c_str(), 8 * f_.event(read).size),
                  unknowns_ ? f_.z3.bool_const(("known" + name).c_str()) : f_.z3.bool_val(true)};
  return reads_.emplace(read, term).first->second;
}

void Values::add_semantics() {
  const uint32_t asked = target_rmw();
  for (const auto& thread : f_.threads) {
    uint32_t rmw = trace::kNone;  // whose pins follow
    for (uint32_t e : thread) {
      const Event& event = f_.event(e);
      if (event.kind != Kind::Pin) rmw = event.kind == Kind::Rmw ? e : trace::kNone;
      if (rmw != trace::kNone && rmw == asked && e != rmw) continue;
      if (binds(event) && event.expr && (f_.target == trace::kNone || !same_decision(f_.trace, e, f_.target))) {
        const Term term = expression(event.expr);
        const z3::expr holds =
            f_.all({term.known, term.bits == f_.z3.bv_val(event.value, f_.trace.exprs[event.expr].width)});
        // At its anchor; if that is r, it comes just before r and binds, unlike r's own pins.
        if (!f_.prefix) f_.require(holds);
        else if (rmw != trace::kNone) f_.require(holds || f_.cut <= f_.position(rmw));
        else if (f_.has_position(e)) f_.require(holds || f_.cut <= f_.position(e));
        else f_.require(holds || f_.cut < f_.position(e));
      }
      if (reads(event) && event.flags & trace::kPinned && e != f_.target) {
        const Term term = read(e);
        f_.require_if_executed(e, f_.all({term.known, term.bits == f_.z3.bv_val(event.value, 8 * event.size)}));
      }
    }
  }
}

}  // namespace stem::encoder
