#include "predictor/cone.h"

#include <algorithm>

namespace stem::predictor {

using trace::Kind;

namespace {

// Whether it can happen depends on all that was done with its object before.
bool needs_all_before(Kind kind) {
  switch (kind) {
    case Kind::LockFail: case Kind::RdLock: case Kind::WrLock: case Kind::RwUnlock: case Kind::RdLockFail: case Kind::WrLockFail:
    case Kind::Wake: case Kind::SemInit: case Kind::SemWait: case Kind::SemFail: return true;
    case Kind::Start: case Kind::End: case Kind::Create: case Kind::Join: case Kind::Detach: case Kind::Yield: case Kind::Read:
    case Kind::Write: case Kind::Rmw: case Kind::External: case Kind::Alloc: case Kind::Free: case Kind::Lock: case Kind::Unlock:
    case Kind::Wait: case Kind::Signal: case Kind::Broadcast: case Kind::SemPost: case Kind::BarrierInit:
    case Kind::BarrierArrive: case Kind::BarrierLeave: case Kind::OnceBegin: case Kind::OnceEnd: case Kind::OncePass:
    case Kind::AtomicBegin: case Kind::AtomicEnd: case Kind::Branch: case Kind::Pin: case Kind::Assert: case Kind::Input:
    case Kind::Nondet: case Kind::SignalIn: case Kind::SignalOut: case Kind::Fork: case Kind::Fault: case Kind::Exit: return false;
  }
  return true;
}

}  // namespace

Cones::Cones(const Model& model) : model_(model), by_sync_(model.sync_objects) {
  for (uint32_t e = 0; e < model.trace.events.size(); ++e)
    if (model.sync[e] != trace::kNone) by_sync_[model.sync[e]].push_back(e);
}

std::vector<uint32_t> Cones::of(std::initializer_list<uint32_t> events) const {
  std::vector<uint32_t> count(model_.threads, 0), done(model_.threads, 0);
  std::vector<size_t> met(model_.sync_objects, 0);       // by sync object: how many of its events are in
  std::vector<std::vector<uint32_t>> entered(model_.sync_objects);  // by lock: sections that begin in the cone
  const auto include = [&](uint32_t e) {
    uint32_t& n = count[model_.trace.events[e].thread];
    n = std::max(n, model_.position[e] + 1);
  };
  const auto take = [&](uint32_t e) {
    const trace::Event& x = model_.trace.events[e];
    for (const auto& [before, after] : model_.needs(e)) include(before);
    if (model_.is_read(e) && (x.leaf || x.flags & (trace::kPinned | trace::kTainted)))
      for (unsigned k = 0; k < model_.atom_count[e]; ++k)
        if (const uint32_t w = model_.sources[model_.sources_at[e] + k]; w != kFromStart) include(w);
    const uint32_t id = model_.sync[e];
    if (id == trace::kNone) return;
    if (needs_all_before(x.kind))
      for (size_t& i = met[id]; i < by_sync_[id].size() && by_sync_[id][i] < e; ++i) include(by_sync_[id][i]);
    const uint32_t section = model_.section_of[e];
    if (section != trace::kNone && model_.sections[section].acquire == e) entered[id].push_back(section);
  };
  for (uint32_t e : events) include(e);
  for (bool grown = true; grown;) {
    grown = false;
    for (uint32_t t = 0; t < model_.threads; ++t)
      for (; done[t] < count[t]; ++done[t]) grown = true, take(model_.events_of[t][done[t]]);
    if (grown) continue;
    // Of the sections of one lock only the last may stay open.
    for (auto& sections : entered) {
      if (sections.size() < 2) continue;
      const uint32_t last = *std::max_element(sections.begin(), sections.end());  // they are numbered as recorded
      for (uint32_t s : sections) {
        const uint32_t release = model_.sections[s].release;
        if (s == last || release == kNoEvent || model_.sections[s].shared) continue;
        if (model_.position[release] >= count[model_.sections[s].thread]) include(release), grown = true;
      }
    }
  }
  return count;
}

}  // namespace stem::predictor
