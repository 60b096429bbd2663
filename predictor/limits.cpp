#include "predictor/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/text.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;
using trace::Op;

namespace {

constexpr size_t kManyWrites = 4096;  // of one atom: beyond, nobody asks whether its source is certain
constexpr int kDeep = 64;             // reads of writes of reads

// An outcome that the trace keeps, and that a program may have otherwise without any branch before it.
const char* kept_outcome(const Event& e) {
  switch (e.kind) {
    case Kind::Nondet: return "the outside world answered as it did";
    case Kind::External: return "unseen code writes memory";
    case Kind::LockFail: case Kind::RdLockFail: case Kind::WrLockFail: case Kind::SemFail: return "an attempt fails";
    case Kind::SignalIn: return "a signal comes";
    case Kind::OnceBegin: case Kind::OncePass: return "the same thread runs the initialiser";
    case Kind::BarrierLeave: return "the threads meet at the barrier in the same groups";
    case Kind::Lock: case Kind::RdLock: case Kind::WrLock: case Kind::SemWait:
      return e.flags & (trace::kTry | trace::kTimed) ? "an attempt succeeds" : nullptr;
    case Kind::Wake: return e.flags & (trace::kTimeout | trace::kSpurious | trace::kTimed) ? "a wait ends without a signal" : nullptr;
    case Kind::Read: case Kind::Rmw: return e.flags & trace::kTainted ? "unseen code writes memory" : nullptr;
    case Kind::Start: case Kind::End: case Kind::Create: case Kind::Join: case Kind::Detach: case Kind::Yield: case Kind::Write:
    case Kind::Alloc: case Kind::Free: case Kind::Unlock: case Kind::RwUnlock: case Kind::Wait: case Kind::Signal:
    case Kind::Broadcast: case Kind::SemInit: case Kind::SemPost: case Kind::BarrierInit: case Kind::BarrierArrive:
    case Kind::OnceEnd: case Kind::AtomicBegin: case Kind::AtomicEnd: case Kind::Branch: case Kind::Pin: case Kind::Assert:
    case Kind::Input: case Kind::SignalOut: case Kind::Fork: case Kind::Fault: case Kind::Exit: return nullptr;
  }
  return nullptr;
}

// Does the program say what the memory starts with? Otherwise the recording merely saw something there.
bool given(const trace::Trace& trace, const Atom& atom) {
  if (atom.object >= trace.objects.size()) return false;
  const trace::Object& object = trace.objects[atom.object];
  return object.zeroed || atom.addr + atom.size <= object.base + object.initial.size();
}

}  // namespace

Limits::Limits(const Model& model, const MustOrder& order, std::function<bool(uint32_t)> can_change)
    : model_(model), order_(order), can_change_(std::move(can_change)) {
  find();
}

void Limits::find() {
  const trace::Trace& trace = model_.trace;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (const char* what = kept_outcome(event)) candidates_.push_back({e, what, false});
    if (event.kind == Kind::Pin && event.expr) candidates_.push_back({e, "a value is pinned", true});
    if (!model_.is_read(e)) continue;
    if (event.flags & trace::kPinned) candidates_.push_back({e, "the value of a read is pinned", true});
    if (!event.leaf) continue;
    for (unsigned k = 0; k < model_.atom_count[e]; ++k) {
      const uint32_t atom = model_.first_atom[e] + k;
      const auto writes = model_.writes_of(atom);
      const bool covered = std::any_of(writes.begin(), writes.end(), [&](uint32_t w) { return w < e && order_.before(w, e); });
      if (!covered && !given(trace, model_.atoms[atom])) candidates_.push_back({e, "memory is read that nothing may have written", false});
    }
  }
  for (const trace::Expr& e : trace.exprs)
    if (e.op == Op::Opaque && !trace.events.empty()) {
      candidates_.insert(candidates_.begin(), {0, "an operation is not modelled", false});
      break;
    }
  // A thread that did not come to its end would have gone on.
  for (const auto& events : model_.events_of) {
    if (events.empty()) continue;
    const Kind last = trace.events[events.back()].kind;
    if (last != Kind::End && last != Kind::Exit) candidates_.push_back({events.back(), "the run ended before the thread", false});
  }
}

bool Limits::one_source(uint32_t read, uint32_t atom, uint32_t source) const {
  const auto writes = model_.writes_of(atom);
  if (writes.size() > kManyWrites) return false;
  if (source != kFromStart && !order_.before(source, read)) return false;
  return std::all_of(writes.begin(), writes.end(), [&](uint32_t w) {
    return w == read || w == source || order_.before(read, w) || (source != kFromStart && order_.before(w, source));
  });
}

bool Limits::settled_read(uint32_t read, int depth) {
  if (depth > kDeep || model_.trace.events[read].flags & trace::kTainted) return false;
  for (unsigned k = 0; k < model_.atom_count[read]; ++k) {
    const uint32_t source = model_.sources[model_.sources_at[read] + k];
    if (!one_source(read, model_.first_atom[read] + k, source)) return false;
    if (source != kFromStart && !settled(model_.trace.events[source].expr, depth + 1)) return false;
  }
  return true;
}

// Does it have the same value in every execution that keeps the paths?
bool Limits::settled(trace::ExprId id, int depth) {
  std::vector<trace::ExprId> todo{id}, seen;
  if (auto it = settled_.find(id); it != settled_.end()) return it->second;
  bool all = true;
  while (all && !todo.empty()) {
    const trace::ExprId next = todo.back();
    todo.pop_back();
    if (!next || std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
    seen.push_back(next);
    const trace::Expr& e = model_.trace.exprs[next];
    if (seen.size() > 256 || e.op == Op::Input || e.op == Op::Opaque) all = false;
    if (e.op == Op::Read && !settled_read(static_cast<uint32_t>(e.value), depth)) all = false;
    todo.insert(todo.end(), {e.a, e.b, e.c});
  }
  if (depth == 0 || all) settled_.emplace(id, all);  // deeper down a no may only mean that it was too deep
  return all;
}

bool Limits::changes(uint32_t event) {
  const auto it = changes_.find(event);
  if (it != changes_.end()) return it->second;
  const Event& e = model_.trace.events[event];
  const bool certain = e.kind == Kind::Pin ? settled(e.expr) : settled_read(event, 0);
  return changes_[event] = !certain && can_change_(event);
}

std::string Limits::before(uint32_t branch) {
  const trace::Trace& trace = model_.trace;
  for (const Candidate& c : candidates_) {
    if (c.event == branch || order_.before(branch, c.event) || (c.ask && !changes(c.event))) continue;
    const Event& e = trace.events[c.event];
    return fmt::format("{} at {}", c.what, trace::describe(trace.threads[e.thread], trace.sites[e.site]));
  }
  return "";
}

}  // namespace stem::predictor
