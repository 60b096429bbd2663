#include "predictor/checker_facts.h"

#include "trace/eval.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

// What is only of interest during the pass.
struct Checker::Static::Pass {
  Static& facts;
  ByPlace<uint32_t> writer = {};
  ByPlace<Rank> seen = {};
  ByPlace<std::map<uint64_t, uint32_t>> generations = {};  // of the barrier's present life
  ByPlace<int64_t> level = {};

  void access(const Event& e, uint32_t i) {
    const bool read = e.kind == Kind::Read || e.kind == Kind::Rmw;
    const bool write = e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External;
    if (!read && !write) return;
    for (unsigned k = 0; k < e.size; ++k) {
      auto [last, fresh] = writer.try_emplace({e.object, e.addr + k}, kInitial);
      if (read && fresh) facts.first_read[last->first] = static_cast<uint8_t>(e.value >> 8 * k);
      if (read && e.flags & trace::kTainted) facts.source[i].push_back(last->second);
      if (write) last->second = i;
    }
  }

  void synchronisation(const Event& e, uint32_t i) {
    const bool init = e.kind == Kind::SemInit || e.kind == Kind::BarrierInit;
    const bool semaphore = e.kind == Kind::SemPost || e.kind == Kind::SemWait || e.kind == Kind::SemFail;
    const bool barrier = e.kind == Kind::BarrierArrive || e.kind == Kind::BarrierLeave;
    const bool once = e.kind == Kind::OnceBegin || e.kind == Kind::OnceEnd || e.kind == Kind::OncePass;
    if (!init && !semaphore && !barrier && !once) return;
    const CheckedPlace at{e.object, e.addr};
    Rank& so_far = seen[at];
    facts.rank[i] = so_far;
    ++so_far.uses;
    if (e.kind == Kind::OnceBegin) ++so_far.begins;
    if (e.kind == Kind::OnceEnd) ++so_far.ends;
    if (init) ++so_far.inits, generations[at].clear();
    if (barrier) facts.rank[i].generation = generation(e, at);
    // Without an initialisation: the least count at the start with which the recording is possible.
    if (e.kind == Kind::SemPost) ++level[at];
    if (e.kind == Kind::SemWait && so_far.inits == 0 && --level[at] < 0) ++level[at], ++facts.start_count[at];
  }

  uint32_t generation(const Event& e, CheckedPlace at) {
    auto& known = generations[at];
    auto [it, fresh] = known.try_emplace(e.value, static_cast<uint32_t>(facts.generations.size()));
    if (fresh) {
      facts.generations.push_back({});
      if (it != known.begin()) facts.generations.back().previous = std::prev(it)->second;
    }
    Generation& generation = facts.generations[it->second];
    if (e.kind == Kind::BarrierArrive) ++generation.arrivals;
    else if (e.flags & trace::kSerial) generation.serial = e.thread;
    return it->second;
  }
};

Checker::Static::Static(const trace::Trace& trace, uint32_t worth)
    : recorded(trace::recorded_values(trace)), threads(trace.threads.size()), creator(trace.threads.size(), trace::kNone), much(worth) {
  Pass pass{*this};
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    threads[e.thread].push_back(i);
    if (e.kind == Kind::Create && e.value < creator.size()) creator[e.value] = i;
    pass.access(e, i);
    pass.synchronisation(e, i);
  }
}

}  // namespace stem::predictor
