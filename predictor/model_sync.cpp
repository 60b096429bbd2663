// Preparing a trace: synchronisation, as docs/soundness.md has it.
#include <algorithm>
#include <cerrno>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "predictor/model.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

namespace {

bool is_init(Kind kind) { return kind == Kind::SemInit || kind == Kind::BarrierInit; }

bool counts(Kind kind) {
  return kind == Kind::SemPost || kind == Kind::SemWait || kind == Kind::SemFail || kind == Kind::BarrierArrive ||
         kind == Kind::BarrierLeave;
}

bool names_sync_object(Kind kind) {
  switch (kind) {
    case Kind::Lock: case Kind::Unlock: case Kind::LockFail: case Kind::RdLock: case Kind::WrLock: case Kind::RwUnlock:
    case Kind::RdLockFail: case Kind::WrLockFail: case Kind::Wait: case Kind::Wake: case Kind::Signal:
    case Kind::Broadcast: case Kind::SemInit: case Kind::SemPost: case Kind::SemWait: case Kind::SemFail:
    case Kind::BarrierInit: case Kind::BarrierArrive: case Kind::BarrierLeave: case Kind::OnceBegin: case Kind::OnceEnd:
    case Kind::OncePass: case Kind::AtomicBegin: case Kind::AtomicEnd: return true;
    default: return false;
  }
}

void append(std::vector<Chain>& chains, trace::ThreadId thread, uint32_t position) {
  auto it = std::find_if(chains.begin(), chains.end(), [&](const Chain& c) { return c.thread == thread; });
  if (it == chains.end()) it = chains.insert(chains.end(), {thread, {}});
  it->positions.push_back(position);
}

}  // namespace

bool Model::was_busy(uint32_t event) const {
  const Event& e = trace.events[event];
  if (e.kind == Kind::SemFail) return e.value == EAGAIN || e.value == ETIMEDOUT;
  return e.value == EBUSY || e.value == ETIMEDOUT;
}

void Model::find_sections() {
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> ids;
  sync.assign(trace.events.size(), trace::kNone);
  section_of.assign(trace.events.size(), trace::kNone);
  wait_of.assign(trace.events.size(), trace::kNone);
  struct Open {
    uint32_t section = trace::kNone;
    int depth = 0;
  };
  std::vector<std::map<uint32_t, Open>> open(threads);          // thread -> lock -> what it holds
  std::vector<std::map<uint64_t, uint32_t>> mutex_at(threads);  // thread -> address -> lock
  auto acquire = [&](uint32_t event, bool shared) {
    const auto thread = trace.events[event].thread;
    Open& o = open[thread][sync[event]];
    if (o.depth++ > 0) return;
    o.section = static_cast<uint32_t>(sections.size());
    section_of[event] = o.section;
    sections.push_back({sync[event], thread, event, kNoEvent, shared});
    auto& uses = lock_uses[sync[event]];
    auto it = std::find_if(uses.begin(), uses.end(), [&](const LockUse& u) { return u.thread == thread; });
    if (it == uses.end()) it = uses.insert(uses.end(), {thread, {}});
    it->sections.push_back(o.section);
  };
  auto release = [&](uint32_t event, uint32_t lock, bool whole) {
    Open& o = open[trace.events[event].thread][lock];
    if (o.depth == 0) return;
    o.depth = whole ? 0 : o.depth - 1;
    if (o.depth > 0) return;
    sections[o.section].release = event;
    section_of[event] = o.section;
  };
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (e.kind == Kind::Exit) exit_event = i;
    if (!names_sync_object(e.kind)) continue;
    const bool atomic = e.kind == Kind::AtomicBegin || e.kind == Kind::AtomicEnd;
    const auto key = atomic ? std::pair{trace::kNone - 1, uint64_t{0}} : std::pair{e.object, e.addr};
    sync[i] = ids.try_emplace(key, static_cast<uint32_t>(ids.size())).first->second;
    if (sync[i] == sync_objects) ++sync_objects, lock_uses.emplace_back(), signals.emplace_back(), semaphores.emplace_back();
    if (e.kind == Kind::Lock) {
      acquire(i, false), mutex_at[e.thread].try_emplace(e.addr, sync[i]);
      open[e.thread][sync[i]].depth = std::max(1, static_cast<int>(e.value));  // a wait gave back all levels at once
    }
    if (e.kind == Kind::AtomicBegin || e.kind == Kind::WrLock) acquire(i, false);
    if (e.kind == Kind::RdLock) acquire(i, true);
    if (e.kind == Kind::Unlock) release(i, sync[i], e.value == 0);
    if (e.kind == Kind::AtomicEnd || e.kind == Kind::RwUnlock) release(i, sync[i], false);
    if (e.kind == Kind::Wait) {
      auto it = mutex_at[e.thread].find(e.value);
      if (it != mutex_at[e.thread].end()) release(i, it->second, true);
    }
    if (e.kind == Kind::Wake && position[i] > 0) {
      const uint32_t before = events_of[e.thread][position[i] - 1];
      if (trace.events[before].kind == Kind::Wait) wait_of[i] = before;
    }
    if (e.kind == Kind::Signal || e.kind == Kind::Broadcast) signals[sync[i]].push_back(i);
  }
}

void Model::find_edges() {
  std::vector<std::vector<uint32_t>> once_begins(sync_objects), once_ends(sync_objects), uses(sync_objects);
  std::vector<uint32_t> inits(sync_objects, kNoEvent);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (e.kind == Kind::Create && e.value < threads && !events_of[e.value].empty())
      edges.emplace_back(i, events_of[e.value].front());
    if (e.kind == Kind::Join && e.value < threads && !events_of[e.value].empty())
      edges.emplace_back(events_of[e.value].back(), i);
    if (sync[i] == trace::kNone) continue;
    const uint32_t id = sync[i];
    if (e.kind == Kind::OnceBegin)
      for (uint32_t b : once_begins[id]) edges.emplace_back(b, i);
    if (e.kind == Kind::OncePass)
      for (uint32_t b : once_ends[id]) edges.emplace_back(b, i);
    if (e.kind == Kind::OnceBegin) once_begins[id].push_back(i);
    if (e.kind == Kind::OnceEnd) once_ends[id].push_back(i);
    // An initialisation keeps its order with every use: those since the one before it, and those that follow.
    if (is_init(e.kind)) {
      for (uint32_t use : uses[id]) edges.emplace_back(use, i);
      uses[id].clear();
      inits[id] = i;
    } else {
      if (inits[id] != kNoEvent) edges.emplace_back(inits[id], i);
      if (counts(e.kind)) uses[id].push_back(i);
    }
  }
  find_object_edges();
  find_barrier_edges();
  std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) { return std::tie(a.second, a.first) < std::tie(b.second, b.first); });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::erase_if(edges, [&](const auto& e) { return trace.events[e.first].thread == trace.events[e.second].thread; });
  needs_at_.assign(trace.events.size() + 1, 0);
  for (const auto& e : edges) ++needs_at_[e.second + 1];
  for (size_t i = 1; i < needs_at_.size(); ++i) needs_at_[i] += needs_at_[i - 1];
}

// What uses an object comes after its allocation; after its release comes nothing that came before it.
void Model::find_object_edges() {
  release_of.assign(trace.objects.size(), kNoEvent);
  std::vector<uint32_t> slot(trace.objects.size(), trace::kNone);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const uint32_t object = trace.events[i].object;
    if (trace.events[i].kind != Kind::Free || object >= trace.objects.size() || slot[object] != trace::kNone) continue;
    release_of[object] = i;
    slot[object] = static_cast<uint32_t>(releases.size());
    releases.push_back({i, {}});
  }
  std::unordered_set<uint64_t> seen;  // (object, thread) has used it
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (e.object >= trace.objects.size()) continue;
    const uint32_t born = trace.objects[e.object].born;
    if (born < trace.events.size() && trace.events[born].kind == Kind::Alloc && i != born &&
        trace.events[born].thread != e.thread && seen.insert(uint64_t{e.object} << 32 | e.thread).second)
      edges.emplace_back(born, i);
    if (slot[e.object] == trace::kNone) continue;
    Release& release = releases[slot[e.object]];
    if (i < release.event && e.thread != trace.events[release.event].thread) append(release.uses, e.thread, position[i]);
  }
}

void Model::find_barrier_edges() {
  struct Generation {
    std::vector<uint32_t> arrivals;
    trace::ThreadId serial = trace::kNone;
  };
  // A generation of one life of a barrier; a life ends at its re-initialisation.
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Generation> generations;
  std::vector<uint32_t> life(sync_objects, 0);
  std::unordered_map<uint32_t, std::tuple<uint32_t, uint32_t, uint64_t>> key;  // by event
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (e.kind == Kind::BarrierInit) ++life[sync[i]];
    if (e.kind != Kind::BarrierArrive && e.kind != Kind::BarrierLeave) continue;
    key[i] = {sync[i], life[sync[i]], e.value};
    Generation& g = generations[key[i]];
    if (e.kind == Kind::BarrierArrive) g.arrivals.push_back(i);
    if (e.kind == Kind::BarrierLeave && e.flags & trace::kSerial) g.serial = e.thread;
  }
  for (auto it = generations.begin(); it != generations.end(); ++it) {
    const auto& [id, g] = *it;
    if (it != generations.begin()) {
      const auto& [before_id, before] = *std::prev(it);
      if (std::get<0>(before_id) == std::get<0>(id) && std::get<1>(before_id) == std::get<1>(id))
        for (uint32_t a : before.arrivals)
          for (uint32_t b : g.arrivals) edges.emplace_back(a, b);
    }
    for (uint32_t b : g.arrivals)
      if (trace.events[b].thread == g.serial)
        for (uint32_t a : g.arrivals)
          if (a != b) edges.emplace_back(a, b);
  }
  for (uint32_t i = 0; i < trace.events.size(); ++i)
    if (trace.events[i].kind == Kind::BarrierLeave)
      for (uint32_t a : generations[key[i]].arrivals) edges.emplace_back(a, i);
}

void Model::find_semaphores() {
  std::vector<int32_t> count(sync_objects, 0);
  std::vector<bool> initialised(sync_objects, false);
  raise.clear();
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (e.kind != Kind::SemInit && e.kind != Kind::SemPost && e.kind != Kind::SemWait && e.kind != Kind::SemFail) continue;
    const uint32_t id = sync[i];
    Semaphore& s = semaphores[id];
    s.uses.push_back(i);
    if (e.kind == Kind::SemInit) {
      if (raise.empty()) raise.resize(trace.events.size());
      raise[i] = static_cast<int32_t>(e.value) - count[id];
      count[id] = static_cast<int32_t>(e.value);
      initialised[id] = true;
    }
    if (e.kind == Kind::SemPost) ++count[id], append(s.posts, e.thread, position[i]);
    if (e.kind == Kind::SemWait) {
      append(s.waits, e.thread, position[i]);
      if (--count[id] < 0 && !initialised[id]) ++s.initial, ++count[id];
    }
  }
}

}  // namespace stem::predictor
