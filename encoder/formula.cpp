#include "encoder/formula.h"

#include <algorithm>

#include "util/error.h"

namespace stem::encoder {

namespace {

// Does this event take part in any ordering constraint, memory access included?
bool has_effect(const Event& e) {
  switch (e.kind) {
    case Kind::Start: case Kind::Detach: case Kind::Yield: case Kind::Branch: case Kind::Pin: case Kind::Assert:
    case Kind::Input: case Kind::Nondet: case Kind::SignalIn: case Kind::SignalOut: case Kind::Fork: case Kind::Fault:
      return false;
    case Kind::Lock: return e.value == 1;
    case Kind::Unlock: return e.value == 0;
    case Kind::End: case Kind::Create: case Kind::Join: case Kind::Read: case Kind::Write: case Kind::Rmw:
    case Kind::External: case Kind::Alloc: case Kind::Free: case Kind::LockFail: case Kind::RdLock: case Kind::WrLock:
    case Kind::RwUnlock: case Kind::RdLockFail: case Kind::WrLockFail: case Kind::Wait: case Kind::Wake: case Kind::Signal:
    case Kind::Broadcast: case Kind::SemInit: case Kind::SemPost: case Kind::SemWait: case Kind::SemFail:
    case Kind::BarrierInit: case Kind::BarrierArrive: case Kind::BarrierLeave: case Kind::OnceBegin: case Kind::OnceEnd:
    case Kind::OncePass: case Kind::AtomicBegin: case Kind::AtomicEnd: case Kind::Exit: return true;
  }
  return true;
}

}  // namespace

Formula::Formula(const Index& index, const Options& options, const Scope& scope)
    : index(index), trace(index.trace), options(options), prefix(options.meaning == Meaning::Prefix && !options.paper),
      first(scope.first), start(index, first), events(start.carried), threads(trace.threads.size()), target(scope.target),
      cut(z3.int_const("cut")),
      deadline_(options.timeout_ms ? std::chrono::steady_clock::now() + std::chrono::milliseconds(options.timeout_ms)
                                   : std::chrono::steady_clock::time_point::max()) {
  STEM_CHECK(first == 0 || prefix);
  std::vector<uint32_t> scoped = scope.events;
  for (uint32_t e : scope.events) scoped.insert(scoped.end(), index.own_pins(e).begin(), index.own_pins(e).end());
  std::sort(scoped.begin(), scoped.end());
  scoped.erase(std::unique(scoped.begin(), scoped.end()), scoped.end());
  events.insert(events.end(), scoped.begin(), scoped.end());
  if (scope.events.empty())
    for (uint32_t e = first; e < trace.events.size(); ++e) events.push_back(e);
  for (uint32_t e : events) {
    auto& thread = threads[event(e).thread];
    thread.push_back(e);
    nodes_[e].ordinal = static_cast<uint32_t>(thread.size());
  }
  for (const auto& thread : threads)
    for (size_t i = thread.size(); i-- > 0;) {
      const bool own = i + 1 == thread.size() || options.paper || thread[i] == target || has_effect(event(thread[i]));
      nodes_[thread[i]].anchor = own ? thread[i] : anchor(thread[i + 1]);
    }
}

std::vector<uint32_t> Formula::all_of(std::initializer_list<Kind> kinds) const {
  std::vector<uint32_t> found;
  for (uint32_t e : events)
    if (std::find(kinds.begin(), kinds.end(), event(e).kind) != kinds.end()) found.push_back(e);
  return found;
}

std::map<Place, std::vector<uint32_t>> Formula::by_place(std::initializer_list<Kind> kinds) const {
  std::map<Place, std::vector<uint32_t>> found;
  for (uint32_t e : all_of(kinds)) found[place(event(e))].push_back(e);
  return found;
}

void Formula::always_before(uint32_t a, uint32_t b) {
  a = anchor(a), b = anchor(b);
  if (a != b && !past(a)) nodes_[b].edges.push_back(a);
}

// Vector clocks over the certain edges. The recording is a linear extension of them, but for the end of the run, which
// other threads may outlive a little in the recording; so depth first, each event once.
void Formula::close() {
  std::vector<uint32_t> stack;
  for (uint32_t start : events) {
    if (!has_position(start) || past(start)) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      const uint32_t e = stack.back();
      Node& node = nodes_[e];
      bool ready = true;
      for (uint32_t before : node.edges)
        if (!nodes_[before].closed) ready = false, stack.push_back(before);
      if (!ready) continue;
      stack.pop_back();
      if (node.closed) continue;
      node.closed = true;
      node.clock.assign(threads.size(), 0);
      for (uint32_t before : node.edges) {
        for (size_t t = 0; t < threads.size(); ++t) node.clock[t] = std::max(node.clock[t], nodes_[before].clock[t]);
        require(position(before) < position(e));
      }
      if (first > 0 && node.edges.empty()) require(position(e) >= 0);
      node.clock[event(e).thread] = node.ordinal;
    }
  }
}

bool Formula::must_before(uint32_t a, uint32_t b) const {
  if (past(a) || past(b)) return past(a) && a < b;
  a = anchor(a), b = anchor(b);
  return a != b && nodes_.at(b).clock[event(a).thread] >= nodes_.at(a).ordinal;
}

z3::expr Formula::position(uint32_t e) {
  Node& node = nodes_.at(anchor(e));
  if (past(e)) return z3.int_val(static_cast<int64_t>(e) - first);
  if (!node.position) node.position = z3.int_const(("o" + std::to_string(anchor(e))).c_str());
  return *node.position;
}

z3::expr Formula::before(uint32_t a, uint32_t b) {
  if (!options.paper) {
    if (must_before(a, b)) return z3.bool_val(true);
    if (a == b || must_before(b, a)) return z3.bool_val(false);
  }
  return position(a) < position(b);
}

bool Formula::late() {
  if (options.interrupt && options.interrupt->load(std::memory_order_relaxed)) given_up = "canceled";
  else if (std::chrono::steady_clock::now() > deadline_) given_up = "timeout while building the formula";
  return !given_up.empty();
}

z3::expr Formula::not_executed(uint32_t e) { return past(e) ? z3.bool_val(false) : cut <= position(e); }

void Formula::require_if_executed(uint32_t e, const z3::expr& constraint) {
  require(prefix ? constraint || cut <= position(e) : constraint);
}

z3::expr Formula::any(const std::vector<z3::expr>& options) {
  z3::expr_vector kept(z3);
  for (const z3::expr& option : options) {
    if (option.is_true()) return option;
    if (!option.is_false()) kept.push_back(option);
  }
  return kept.empty() ? z3.bool_val(false) : kept.size() == 1 ? kept[0] : z3::mk_or(kept);
}

z3::expr Formula::all(const std::vector<z3::expr>& parts) {
  z3::expr_vector kept(z3);
  for (const z3::expr& part : parts) {
    if (part.is_false()) return part;
    if (!part.is_true()) kept.push_back(part);
  }
  return kept.empty() ? z3.bool_val(true) : kept.size() == 1 ? kept[0] : z3::mk_and(kept);
}

}  // namespace stem::encoder
