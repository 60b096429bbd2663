// φpo, first part: program order, create and join, allocation, the end of the run.
//
// All but the release of an object are edges that always hold. Under PREFIX they need no relaxation: if the later event
// executes before r, so does the earlier one; if it does not, both fit after r.
#include "encoder/formula.h"

namespace stem::encoder {

void add_certain_order(Formula& f) {
  for (const auto& thread : f.threads)
    for (size_t i = 1; i < thread.size(); ++i) f.always_before(thread[i - 1], thread[i]);

  for (uint32_t e : f.events) {
    const Event& event = f.event(e);
    if (event.kind == Kind::Create && event.value < f.threads.size() && !f.threads[event.value].empty())
      f.always_before(e, f.threads[event.value].front());
    if (event.kind == Kind::Join && event.value < f.threads.size()) {
      // All recorded events of the child come first. A scope that cuts the child short leaves no room for the join; the
      // scope's owner sees to that, as for every other cause of an event in the scope.
      if (!f.threads[event.value].empty()) f.always_before(f.threads[event.value].back(), e);
    }
    if (event.object != trace::kNone && event.kind != Kind::Alloc) {
      const uint32_t born = f.trace.objects[event.object].born;
      if (born != trace::kNone && f.in_scope(born)) f.always_before(born, e);
    }
    if (event.kind == Kind::Exit)
      for (const auto& thread : f.threads)
        if (!thread.empty() && thread.back() != e) f.always_before(thread.back(), e);
  }
  add_barrier_order(f);
  add_once_order(f);
  add_init_order(f);
}

// What used an object before its release in the recording does not come after it.
void add_objects(Formula& f) {
  for (uint32_t free : f.all_of({Kind::Free})) {
    if (f.event(free).object == trace::kNone) continue;
    for (uint32_t use : f.events) {
      if (use >= free) break;
      if (f.event(use).object != f.event(free).object || !f.has_position(use)) continue;
      const z3::expr earlier = f.before(use, free);
      f.require(f.prefix ? earlier || f.cut < f.position(use) : earlier);  // r itself included
    }
  }
}

}  // namespace stem::encoder
