#include "encoder/start.h"

#include <algorithm>

namespace stem::encoder {

using trace::Event;
using trace::Kind;

namespace {

// What one thread holds, and whether it waits.
struct Held {
  std::map<Place, std::vector<uint32_t>> mutexes, reading, writing;  // acquisitions
  std::vector<uint32_t> atomic;
  uint32_t wait = trace::kNone;
};

void drop_last(std::vector<uint32_t>& acquisitions) {
  if (!acquisitions.empty()) acquisitions.pop_back();
}

}  // namespace

Start::Start(const Index& index, uint32_t first) : index_(index) {
  std::map<trace::ThreadId, Held> threads;
  for (uint32_t i = 0; i < first; ++i) {
    const Event& e = index.trace.events[i];
    const Place at{e.object, e.addr};
    switch (e.kind) {
      case Kind::Lock:
        if (e.value == 1) threads[e.thread].mutexes[at] = {i};
        break;
      case Kind::Unlock:
        if (e.value == 0) threads[e.thread].mutexes.erase(at);
        break;
      case Kind::RdLock: threads[e.thread].reading[at].push_back(i); break;
      case Kind::WrLock: threads[e.thread].writing[at] = {i}; break;
      case Kind::RwUnlock:
        if (!threads[e.thread].writing.erase(at)) drop_last(threads[e.thread].reading[at]);
        break;
      case Kind::AtomicBegin: threads[e.thread].atomic.push_back(i); break;
      case Kind::AtomicEnd: drop_last(threads[e.thread].atomic); break;
      case Kind::Wait:
        std::erase_if(threads[e.thread].mutexes, [&](const auto& held) { return held.first.second == e.value; });
        threads[e.thread].wait = i;
        woken.erase(e.thread);
        break;
      case Kind::Wake:
        threads[e.thread].wait = trace::kNone;
        woken.erase(e.thread);
        break;
      case Kind::Signal:  // the recording says whom it woke, if it knows
        if (e.value > 0) woken.insert(static_cast<trace::ThreadId>(e.value - 1));
        break;
      case Kind::Broadcast:
        for (const auto& [thread, held] : threads)
          if (held.wait != trace::kNone && index.trace.events[held.wait].object == e.object && index.trace.events[held.wait].addr == e.addr)
            woken.insert(thread);
        break;
      case Kind::SemInit: counts_[at] = static_cast<int64_t>(e.value); break;
      case Kind::SemPost: counts_.try_emplace(at, index.initial_count(at)).first->second += 1; break;
      case Kind::SemWait: counts_.try_emplace(at, index.initial_count(at)).first->second -= 1; break;
      case Kind::Start: case Kind::End: case Kind::Create: case Kind::Join: case Kind::Detach: case Kind::Yield: case Kind::Read:
      case Kind::Write: case Kind::Rmw: case Kind::External: case Kind::Alloc: case Kind::Free: case Kind::LockFail:
      case Kind::RdLockFail: case Kind::WrLockFail: case Kind::SemFail: case Kind::BarrierInit: case Kind::BarrierArrive:
      case Kind::BarrierLeave: case Kind::OnceBegin: case Kind::OnceEnd: case Kind::OncePass: case Kind::Branch: case Kind::Pin:
      case Kind::Assert: case Kind::Input: case Kind::Nondet: case Kind::SignalIn: case Kind::SignalOut: case Kind::Fork:
      case Kind::Fault: case Kind::Exit: break;
    }
  }
  for (const auto& [thread, held] : threads) {
    for (const auto* locks : {&held.mutexes, &held.reading, &held.writing})
      for (const auto& [at, acquisitions] : *locks) carried.insert(carried.end(), acquisitions.begin(), acquisitions.end());
    carried.insert(carried.end(), held.atomic.begin(), held.atomic.end());
    if (held.wait != trace::kNone) carried.push_back(held.wait);
  }
  std::sort(carried.begin(), carried.end());
}

int64_t Start::count(Place semaphore) const {
  const auto it = counts_.find(semaphore);
  return it == counts_.end() ? index_.initial_count(semaphore) : it->second;
}

}  // namespace stem::encoder
