#include "encoder/index.h"

#include "trace/eval.h"

namespace stem::encoder {

using trace::Event;
using trace::Kind;

Index::Index(const trace::Trace& trace) : trace(trace), recorded(trace::recorded_values(trace)) {
  for (const trace::Expr& e : trace.exprs) opaque |= e.op == trace::Op::Opaque;
  find_memory();
  find_counts();
}

void Index::find_memory() {
  struct Hash {
    size_t operator()(const Place& p) const { return p.second * 0x9e3779b97f4a7c15ull + p.first; }
  };
  std::unordered_map<Place, uint32_t, Hash> writer;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    const bool read = e.kind == Kind::Read || e.kind == Kind::Rmw;
    const bool write = e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External;
    if (!read && !write) continue;
    const bool tainted = read && e.flags & trace::kTainted;
    for (unsigned k = 0; k < e.size; ++k) {
      auto [last, fresh] = writer.try_emplace({e.object, e.addr + k}, trace::kNone);
      if (read && fresh) first_read_[last->first] = static_cast<uint8_t>(e.value >> 8 * k);
      if (tainted) source_[i].push_back(last->second);
      if (write) last->second = i;
    }
  }
}

std::optional<uint8_t> Index::initial(Place byte) const {
  if (byte.first < trace.objects.size()) {
    const trace::Object& object = trace.objects[byte.first];
    const uint64_t offset = byte.second - object.base;
    if (offset < object.initial.size()) return object.initial[offset];
    if (object.zeroed) return 0;
  }
  auto it = first_read_.find(byte);
  return it == first_read_.end() ? std::nullopt : std::optional<uint8_t>(it->second);
}

void Index::find_counts() {
  std::map<Place, int64_t> now;
  std::map<Place, bool> initialised;
  for (const Event& e : trace.events) {
    const Place at{e.object, e.addr};
    if (e.kind == Kind::SemInit) initialised[at] = true;
    if (e.kind == Kind::SemPost) ++now[at];
    if (e.kind == Kind::SemWait && --now[at] < 0 && !initialised[at]) ++count_[at], ++now[at];
  }
}

int64_t Index::initial_count(Place semaphore) const {
  auto it = count_.find(semaphore);
  return it == count_.end() ? 0 : it->second;
}

}  // namespace stem::encoder
