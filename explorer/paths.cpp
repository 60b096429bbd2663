#include "explorer/paths.h"

#include <algorithm>

#include "db/store.h"

namespace stem::explorer {

using trace::Event;
using trace::Kind;

namespace {

uint64_t mix(uint64_t h, uint64_t value) {
  h ^= value + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

uint64_t text_hash(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

// Which outcomes of operations depend on the schedule without being a branch: then "the same paths" is not all there
// is.
const char* inexact_kind(const Event& e) {
  switch (e.kind) {
    case Kind::External:
      return "code that is not recorded writes memory";
    case Kind::LockFail:
    case Kind::RdLockFail:
    case Kind::WrLockFail:
    case Kind::SemFail:
      return "attempts to lock fail or succeed depending on the schedule";
    case Kind::Lock:
    case Kind::RdLock:
    case Kind::WrLock:
    case Kind::SemWait:
      return e.flags & (trace::kTry | trace::kTimed) ? "attempts to lock fail or succeed depending on the schedule"
                                                     : nullptr;
    case Kind::Wait:
      return e.flags & trace::kTimed ? "waits may time out" : nullptr;
    case Kind::Wake:
      return e.flags & (trace::kTimeout | trace::kSpurious) ? "waits may time out" : nullptr;
    case Kind::BarrierArrive:
      return "barriers keep their groups";
    case Kind::OnceBegin:
    case Kind::OncePass:
      return "which thread initialises depends on the schedule";
    case Kind::Nondet:
      return "the outside world answers as it did";
    case Kind::SignalIn:
      return "signals come when they came";
    case Kind::Fork:
      return "processes are started";
    case Kind::Read:
    case Kind::Rmw:
      return e.flags & (trace::kPinned | trace::kTainted) ? "values are held fixed (stem trace dump shows the pins)"
                                                          : nullptr;
    default:
      return nullptr;  // plain operations
  }
}

// Values that are addresses differ between runs: one that points into an object stands for that object and the offset,
// one into memory that nobody described (a pthread_t) for the how-many-eth such value of its thread.
class Values {
 public:
  Values(const trace::Trace& trace, const std::vector<uint64_t>& objects) : trace_(trace), objects_(objects) {
    for (uint32_t i = 0; i < trace.objects.size(); ++i)
      if (trace.objects[i].born == trace::kNone) place(i);
  }

  void event(const Event& e) {
    if (e.kind == Kind::Alloc && e.object < trace_.objects.size()) place(e.object);
  }

  uint64_t stable(const Event& e, uint64_t value) {
    if (value < kLowest || value >= kHighest) return value;
    auto after = live_.upper_bound(value);
    if (after != live_.begin()) {
      const trace::Object& object = trace_.objects[std::prev(after)->second];
      if (value - object.base <= object.size) return mix(objects_[std::prev(after)->second], value - object.base);
    }
    const auto [at, fresh] = ordinals_.try_emplace({e.thread, value}, ordinals_of_[e.thread]);
    if (fresh) ++ordinals_of_[e.thread];
    return mix(kLowest, at->second);
  }

 private:
  static constexpr uint64_t kLowest = uint64_t{1} << 40,
                            kHighest = uint64_t{1} << 47;  // where programs and libraries live

  void place(uint32_t id) { live_[trace_.objects[id].base] = id; }

  const trace::Trace& trace_;
  const std::vector<uint64_t>& objects_;
  std::map<uint64_t, uint32_t> live_;
  std::map<std::pair<trace::ThreadId, uint64_t>, uint64_t> ordinals_;
  std::map<trace::ThreadId, uint64_t> ordinals_of_;
};

}  // namespace

Paths paths_of(const trace::Trace& trace) {
  Paths result;
  std::vector<ThreadPath> threads(trace.threads.size());
  std::vector<uint64_t> objects(trace.objects.size());
  for (size_t i = 0; i < objects.size(); ++i)
    objects[i] = text_hash(trace.objects[i].identity.empty() ? trace.objects[i].name : trace.objects[i].identity);
  uint64_t order = 0x5354454d;
  Values values(trace, objects);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    // An assertion is told by the branch behind it; it stands before that one only if it holds.
    if (e.thread >= threads.size() || e.kind == Kind::Exit || e.kind == Kind::Assert) continue;
    if (result.inexact.empty())
      if (const char* why = inexact_kind(e)) result.inexact = why;
    values.event(e);
    ThreadPath& path = threads[e.thread];
    uint64_t h = path.rolling.empty() ? text_hash(trace.threads[e.thread].path) : path.rolling.back();
    h = mix(h, static_cast<uint64_t>(e.kind) << 32 | e.size);
    h = mix(h, trace.sites[e.site].key);
    if (e.object != trace::kNone && e.object < objects.size()) {
      h = mix(h, objects[e.object]);
      h = mix(h, e.addr - trace.objects[e.object].base);
    }
    switch (e.kind) {
      case Kind::Branch:
      case Kind::Pin:
        h = mix(h, values.stable(e, e.value));
        break;
      case Kind::Write:
        if (!e.expr) h = mix(h, values.stable(e, e.value));
        break;
      case Kind::Rmw:
        if (!e.expr) h = mix(h, values.stable(e, e.value2));
        if (e.flags & (trace::kPinned | trace::kTainted)) h = mix(h, values.stable(e, e.value));
        break;
      case Kind::Read:
        if (e.flags & (trace::kPinned | trace::kTainted)) h = mix(h, values.stable(e, e.value));
        break;
      case Kind::Nondet:
        if (e.value < trace.nondets.size())
          for (uint8_t byte : trace.nondets[e.value].bytes) h = mix(h, byte);
        break;
      default:
        break;  // what it is about has been mixed in
    }
    path.rolling.push_back(h);
    path.events.push_back(i);
    if (trace::is_visible(e.kind) || e.kind == Kind::Branch) order = mix(order, h);
  }
  for (size_t t = 0; t < threads.size(); ++t) result.threads[trace.threads[t].path] = std::move(threads[t]);
  // Threads in the order of their names: indices are given in the order of creation.
  uint64_t sum = 0, product = 1;
  for (const auto& [name, path] : result.threads) {
    const uint64_t h = path.rolling.empty() ? text_hash(name) : path.rolling.back();
    sum = mix(sum, h);
    product = mix(product, sum + path.rolling.size());
  }
  result.paths = db::hash_of(std::to_string(sum) + ":" + std::to_string(product));
  result.visible = db::hash_of(std::to_string(order) + ":" + result.paths);
  return result;
}

size_t common_prefix(const ThreadPath& a, const ThreadPath& b) {
  const size_t n = std::min(a.rolling.size(), b.rolling.size());
  size_t low = 0, high = n;  // equal up to low, and not beyond high
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (a.rolling[middle - 1] == b.rolling[middle - 1])
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

}  // namespace stem::explorer
