#include "predictor/evidence.h"

#include <algorithm>

#include "util/error.h"

namespace stem::predictor {

using trace::Kind;

const char* state_name(State state) {
  switch (state) {
#define STEM_STATE(Name, text) \
  case State::Name: return text;
#include "predictor/states.def"
  }
  return "?";
}

const char* relation_name(Relation relation) {
  switch (relation) {
    case Relation::SameThread: return "same thread";
    case Relation::Ordered: return "ordered";
    case Relation::Locked: return "common lock";
    case Relation::Atomic: return "atomic";
    case Relation::Race: return "race";
  }
  return "?";
}

Evidence::Evidence(const Model& model, const MustOrder& order) : model_(model), order_(order), names_(model.sync_objects) {
  for (const Section& s : model.sections) {
    std::string& name = names_[s.lock];
    if (!name.empty()) continue;
    const trace::Event& e = model.trace.events[s.acquire];
    if (e.kind == Kind::AtomicBegin) name = "atomic section";
    else if (e.object < model.trace.objects.size() && !model.trace.objects[e.object].name.empty())
      name = model.trace.objects[e.object].name;
    else if (e.site && e.site < model.trace.sites.size() && !model.trace.sites[e.site].text.empty())
      name = model.trace.sites[e.site].text;
    else
      name = fmt::format("lock {}", s.lock + 1);
  }
}

std::vector<uint32_t> Evidence::locks_held(uint32_t event) const {
  std::vector<uint32_t> locks;
  const trace::ThreadId thread = model_.trace.events[event].thread;
  for (uint32_t lock = 0; lock < model_.sync_objects; ++lock)
    for (const auto& use : model_.lock_uses[lock]) {
      if (use.thread != thread) continue;
      auto it = std::upper_bound(use.sections.begin(), use.sections.end(), event,
                                 [&](uint32_t e, uint32_t s) { return e < model_.sections[s].acquire; });
      if (it == use.sections.begin()) continue;
      const Section& s = model_.sections[*(it - 1)];
      if (s.release == kNoEvent || s.release > event) locks.push_back(lock);
    }
  return locks;
}

AccessInfo Evidence::access(uint32_t event) const {
  AccessInfo info;
  info.event = event;
  info.initial = event == kFromStart;
  if (info.initial) return info;
  const trace::Event& e = model_.trace.events[event];
  info.site = e.site;
  info.thread = e.thread < model_.trace.threads.size() ? model_.trace.threads[e.thread].path : "";
  for (uint32_t lock : locks_held(event)) info.locks.push_back(names_[lock]);
  return info;
}

Relation Evidence::relation(uint32_t w, uint32_t r) const {
  if (w == kFromStart) return Relation::Ordered;
  const trace::Event &a = model_.trace.events[w], &b = model_.trace.events[r];
  if (a.thread == b.thread) return Relation::SameThread;
  if (order_.before(w, r)) return Relation::Ordered;
  const auto mine = locks_held(w), theirs = locks_held(r);
  for (uint32_t lock : mine)
    if (std::find(theirs.begin(), theirs.end(), lock) != theirs.end()) return Relation::Locked;
  auto atomic = [](const trace::Event& e) { return e.flags & trace::kAtomic || e.kind == Kind::Rmw; };
  return atomic(a) && atomic(b) ? Relation::Atomic : Relation::Race;
}

}  // namespace stem::predictor
