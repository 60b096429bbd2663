#include "explorer/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "explorer/explain.h"

namespace stem::explorer {

using trace::Event;
using trace::Kind;

namespace {

struct Held {
  uint64_t lock;
  uint32_t event;  // that took it
};

struct Edge {  // holding `from`, the thread asked for `to`
  trace::ThreadId thread;
  uint64_t from, to;
  uint32_t took, asked;     // events
  std::set<uint64_t> held;  // besides
};

std::vector<Edge> edges_of(const trace::Trace& trace) {
  std::map<trace::ThreadId, std::vector<Held>> held;
  std::set<std::tuple<trace::ThreadId, uint64_t, uint64_t, trace::SiteId, trace::SiteId>> known;
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    std::vector<Held>& own = held[e.thread];
    const auto drop = [&](uint64_t lock) { std::erase_if(own, [&](const Held& h) { return h.lock == lock; }); };
    switch (e.kind) {
      case Kind::Lock:
      case Kind::WrLock:
      case Kind::RdLock:
        if (e.kind == Kind::Lock && e.value > 1) break;  // again by the same thread
        if (!(e.flags & (trace::kTry | trace::kTimed)))
          for (const Held& h : own) {
            if (!known.insert({e.thread, h.lock, e.addr, trace.events[h.event].site, e.site}).second) continue;
            Edge edge{e.thread, h.lock, e.addr, h.event, i, {}};
            for (const Held& other : own)
              if (other.lock != h.lock) edge.held.insert(other.lock);
            edges.push_back(std::move(edge));
          }
        own.push_back({e.addr, i});
        break;
      case Kind::Unlock:
        if (e.value == 0) drop(e.addr);
        break;
      case Kind::RwUnlock:
        drop(e.addr);
        break;
      case Kind::Wait:
        drop(e.value);
        break;
      default:
        break;  // holds and releases nothing
    }
  }
  return edges;
}

bool disjoint(const std::set<uint64_t>& a, const std::set<uint64_t>& b) {
  return std::none_of(a.begin(), a.end(), [&](uint64_t lock) { return b.contains(lock); });
}

class Cycles {
 public:
  Cycles(const trace::Trace& trace, size_t most) : trace_(trace), most_(most), edges_(edges_of(trace)) {}

  std::vector<OrderTest> run() {
    for (size_t i = 0; i < edges_.size() && out_.size() < most_; ++i) {
      chain_ = {i};
      extend();
    }
    return std::move(out_);
  }

 private:
  void extend() {
    const Edge& last = edges_[chain_.back()];
    if (chain_.size() > 1 && last.to == edges_[chain_[0]].from) {
      emit();
      return;
    }
    if (chain_.size() >= 4) return;
    for (size_t j = chain_[0] + 1; j < edges_.size() && out_.size() < most_; ++j) {
      const Edge& next = edges_[j];
      if (next.from != last.to) continue;
      const bool apart = std::all_of(chain_.begin(), chain_.end(), [&](size_t k) {
        return edges_[k].thread != next.thread && edges_[k].from != next.from && disjoint(edges_[k].held, next.held);
      });
      if (!apart) continue;
      chain_.push_back(j);
      extend();
      chain_.pop_back();
    }
  }

  // Visible operations of a thread up to (not with) an event; its creation comes first.
  void run_to(trace::ThreadId thread, uint32_t end) {
    if (thread && !started_.contains(thread)) {
      started_.insert(thread);
      for (uint32_t i = 0; i < trace_.events.size(); ++i)
        if (trace_.events[i].kind == Kind::Create && trace_.events[i].value == thread) {
          run_to(trace_.events[i].thread, i + 1);
          break;
        }
    }
    for (uint32_t i = at_[thread]; i < end; ++i) {
      const Event& e = trace_.events[i];
      if (e.thread != thread || !trace::is_visible(e.kind)) continue;
      std::string wakes;
      if (e.kind == Kind::Signal && e.value != 0 && e.value <= trace_.threads.size())
        wakes = trace_.threads[e.value - 1].path;
      trace::extend(schedule_, trace_.threads[thread].path, e.site ? &trace_.sites[e.site] : nullptr, e.kind, wakes);
    }
    at_[thread] = std::max(at_[thread], end);
  }

  void emit() {
    std::vector<std::string> names;
    std::string what = "locks in different orders:";
    for (size_t k : chain_) {
      const trace::Site &took = trace_.sites[trace_.events[edges_[k].took].site],
                        &asked = trace_.sites[trace_.events[edges_[k].asked].site];
      names.push_back(fmt::format("{:x}-{:x}", took.key, asked.key));
      what += fmt::format(" {} takes {} and {}", trace_.threads[edges_[k].thread].path,
                          place_text(took.file, took.line), place_text(asked.file, asked.line));
    }
    std::sort(names.begin(), names.end());
    const std::string name = fmt::format("{}", fmt::join(names, " "));
    if (!named_.insert(name).second) return;
    schedule_.clear();
    at_.clear();
    started_.clear();
    for (size_t k : chain_) run_to(edges_[k].thread, edges_[k].took);
    for (size_t k : chain_) run_to(edges_[k].thread, edges_[k].asked);
    OrderTest test{name, what, trace::test_of(trace_, 0)};
    test.test.schedule = schedule_;
    out_.push_back(std::move(test));
  }

  const trace::Trace& trace_;
  const size_t most_;
  const std::vector<Edge> edges_;
  std::vector<size_t> chain_;
  std::vector<OrderTest> out_;
  std::set<std::string> named_;
  std::vector<trace::Step> schedule_;
  std::map<trace::ThreadId, uint32_t> at_;
  std::set<trace::ThreadId> started_;
};

}  // namespace

std::vector<OrderTest> lock_orders(const trace::Trace& trace, size_t most) { return Cycles(trace, most).run(); }

std::vector<OrderTest> WaitingOrders::add(const trace::Trace& trace) {
  // What threads do up to their first wait, learned once for each function.
  std::map<trace::ThreadId, std::vector<Operation>> so_far;
  std::set<trace::ThreadId> over;
  bool learned = false;
  for (const Event& e : trace.events) {
    if (!trace::is_visible(e.kind) || !e.thread || over.contains(e.thread)) continue;
    std::vector<Operation>& operations = so_far[e.thread];
    operations.push_back({trace.sites[e.site].key, e.kind});
    const bool gives =
        e.kind == Kind::Signal || e.kind == Kind::Broadcast || e.kind == Kind::SemPost || e.kind == Kind::Wake;
    if (e.kind == Kind::Wait) learned |= waits_.emplace(trace.threads[e.thread].start, operations).second;
    if (gives || e.kind == Kind::Wait || operations.size() > 200) over.insert(e.thread);
  }
  Known known;
  known.test = trace::test_of(trace, 0);
  known.test.schedule.clear();
  std::string name;
  for (const trace::Input& input : trace.inputs) name += input.name + "=" + trace::hex(input.bytes) + " ";
  if (seen_.insert(name).second) {
    size_t last = 0;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      if (trace.events[i].thread) continue;
      if (trace.events[i].kind == Kind::Create) last = i + 1;
      if (trace.events[i].kind == Kind::Join) break;
    }
    for (size_t i = 0; i < last; ++i) {
      const Event& e = trace.events[i];
      if (e.thread || !trace::is_visible(e.kind)) continue;
      trace::extend(known.creates, trace.threads[0].path, e.site ? &trace.sites[e.site] : nullptr, e.kind);
      if (e.kind == Kind::Create && e.value < trace.threads.size())
        known.threads.emplace_back(trace.threads[e.value].path, trace.threads[e.value].start);
    }
    inputs_.push_back(std::move(known));
  } else if (!learned) {
    return {};
  }
  std::vector<OrderTest> out;
  if (waits_.empty()) return out;
  for (size_t i = learned ? 0 : inputs_.size() - 1; i < inputs_.size(); ++i) {
    OrderTest order{fmt::format("waiting {} {}", waits_.size(), i), "everybody who may wait does so first",
                    inputs_[i].test};
    order.test.schedule = inputs_[i].creates;
    size_t waiting = 0;
    for (const auto& [path, function] : inputs_[i].threads) {
      const auto at = waits_.find(function);
      if (at == waits_.end()) continue;
      ++waiting;
      for (const Operation& operation : at->second) {
        trace::Site site;
        site.key = operation.site;
        trace::extend(order.test.schedule, path, operation.site ? &site : nullptr, operation.kind);
      }
    }
    if (waiting) out.push_back(std::move(order));
  }
  return out;
}

}  // namespace stem::explorer
