// Which signal wakes which waiter in a schedule.
#include "predictor/witness.h"

#include <map>
#include <unordered_map>

namespace stem::predictor {

using trace::Kind;

namespace {

constexpr size_t kNever = SIZE_MAX;

struct Waiter {
  uint32_t wake;      // its Wake event
  size_t deadline;    // position of that event in the schedule; kNever: not in it
};

// The thread's event after this one, in the whole trace.
uint32_t following(const trace::Trace& trace, uint32_t index) {
  for (uint32_t i = index + 1; i < trace.events.size(); ++i)
    if (trace.events[i].thread == trace.events[index].thread) return i;
  return trace::kNone;
}

bool needs_signal(const trace::Event& wake) { return !(wake.flags & (trace::kTimeout | trace::kSpurious)); }

}  // namespace

void assign_wakeups(const trace::Trace& trace, Witness& witness) {
  witness.wakeups.clear();
  // The Wake that ends each scheduled Wait: the thread's next event in the schedule.
  std::vector<size_t> next(witness.schedule.size(), kNever);
  std::unordered_map<trace::ThreadId, size_t> last;
  for (size_t i = 0; i < witness.schedule.size(); ++i) {
    const trace::Event& event = trace.events[witness.schedule[i]];
    auto [it, fresh] = last.try_emplace(event.thread, i);
    if (!fresh) next[it->second] = i, it->second = i;
  }

  std::map<std::pair<uint32_t, uint64_t>, std::vector<Waiter>> blocked;  // by condition variable
  for (size_t i = 0; i < witness.schedule.size(); ++i) {
    const uint32_t index = witness.schedule[i];
    const trace::Event& event = trace.events[index];
    if (event.kind != Kind::Wait && event.kind != Kind::Signal && event.kind != Kind::Broadcast) continue;
    auto& waiters = blocked[{event.object, event.addr}];
    if (event.kind == Kind::Wait) {
      const uint32_t wake = next[i] == kNever ? following(trace, index) : witness.schedule[next[i]];
      if (wake != trace::kNone && trace.events[wake].kind == Kind::Wake && needs_signal(trace.events[wake]))
        waiters.push_back({wake, next[i]});
    } else if (event.kind == Kind::Broadcast) {
      waiters.clear();
    } else if (event.kind == Kind::Signal && !waiters.empty()) {
      auto first = waiters.begin();
      for (auto it = waiters.begin(); it != waiters.end(); ++it)
        if (it->deadline < first->deadline) first = it;
      witness.wakeups.push_back({index, first->wake});
      waiters.erase(first);
    }
  }
}

}  // namespace stem::predictor
