#include "encoder/index.h"

#include <algorithm>

#include "trace/eval.h"

namespace stem::encoder {

using trace::Event;
using trace::Kind;

Index::Index(const trace::Trace& trace) : trace(trace), recorded(trace::recorded_values(trace)) {
  for (const trace::Expr& e : trace.exprs) opaque |= e.op == trace::Op::Opaque;
  find_memory();
  find_counts();
  find_settled();
  find_own_pins();
}

void Index::find_own_pins() {
  std::vector<uint32_t> last(trace.threads.size(), trace::kNone);  // by thread: the update whose pins follow
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    uint32_t& rmw = last[trace.events[e].thread];
    if (trace.events[e].kind != Kind::Pin) rmw = trace.events[e].kind == Kind::Rmw ? e : trace::kNone;
    else if (rmw != trace::kNone) own_pins_[rmw].push_back(e);
  }
}

void Index::find_settled() {
  settled_at_.assign(trace.exprs.size(), 0);
  for (size_t i = 1; i < trace.exprs.size(); ++i) {  // operands come first
    const trace::Expr& e = trace.exprs[i];
    if (e.op == trace::Op::Read) settled_at_[i] = static_cast<uint32_t>(e.value) + 1;
    for (trace::ExprId operand : {e.a, e.b, e.c}) settled_at_[i] = std::max(settled_at_[i], settled_at_[operand]);
  }
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
    if (write)
      for (uint64_t word = e.addr / 8; word <= (e.addr + e.size - 1) / 8; ++word) writes_[{e.object, word}].push_back(i);
    const bool tainted = read && e.flags & trace::kTainted;
    for (unsigned k = 0; k < e.size; ++k) {
      auto [last, fresh] = writer.try_emplace({e.object, e.addr + k}, trace::kNone);
      if (read && fresh) first_read_[last->first] = static_cast<uint8_t>(e.value >> 8 * k);
      if (tainted) source_[i].push_back(last->second);
      if (write) last->second = i;
    }
  }
}

uint32_t Index::last_write(Place byte, uint32_t before) const {
  const auto it = writes_.find({byte.first, byte.second / 8});
  if (it == writes_.end()) return trace::kNone;
  for (auto at = std::lower_bound(it->second.begin(), it->second.end(), before); at != it->second.begin();) {
    const Event& w = trace.events[*--at];
    if (byte.second >= w.addr && byte.second - w.addr < w.size) return *at;
  }
  return trace::kNone;
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
