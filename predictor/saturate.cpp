// What follows from the facts of a query, in every execution. Each rule adds edges, requirements or flows, or finds a
// contradiction; they run in turn until none adds anything. Every rule is linear in what it looks at times the threads.
#include <algorithm>

#include "predictor/engine.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

namespace {

// Index of the last position <= limit, or -1; of the first >= limit, or size.
int last_upto(const std::vector<uint32_t>& positions, int64_t limit) {
  return static_cast<int>(std::upper_bound(positions.begin(), positions.end(), limit,
                                           [](int64_t l, uint32_t p) { return l < static_cast<int64_t>(p); }) -
                          positions.begin()) - 1;
}
size_t first_from(const std::vector<uint32_t>& positions, int64_t limit) {
  return static_cast<size_t>(std::lower_bound(positions.begin(), positions.end(), limit,
                                              [](uint32_t p, int64_t l) { return static_cast<int64_t>(p) < l; }) -
                             positions.begin());
}

}  // namespace

Reasons Engine::why_required(uint32_t event) const {
  const auto& log = why_required_[window_->thread(event)];
  const int32_t at = window_->at(event);
  for (const auto& [count, why] : log)
    if (count > at) return why;
  return 0;
}

bool Engine::require(uint32_t thread, int32_t count, Reasons why) {
  if (required_[thread] >= count) return true;
  // The pins that directly follow a read-modify-write are part of it.
  int32_t k = count - 1;
  auto kind = [&](int32_t at) { return model_.trace.events[window_->event(thread, at)].kind; };
  while (k >= 0 && kind(k) == Kind::Pin) --k;
  if (k >= 0 && kind(k) == Kind::Rmw && window_->event(thread, k) != target_)
    while (count < static_cast<int32_t>(window_->length[thread]) && kind(count) == Kind::Pin) ++count;
  required_trail_.push_back({thread, required_[thread], activated_[thread]});
  required_[thread] = count;
  why_required_[thread].emplace_back(count, why);
  ++changes_;
  return true;
}

// An event has become required: what it asks for from now on.
bool Engine::activate(uint32_t event) {
  if (event == target_) return true;
  const Event& e = model_.trace.events[event];
  if (e.kind == Kind::Exit && meaning_ == encoder::Meaning::Prefix) return fail(why_required(event));
  if (model_.atom_count[event] && model_.is_read(event) && e.flags & trace::kTainted)
    for (unsigned k = 0; k < model_.atom_count[event]; ++k)
      if (!bind(event, k, recorded_source(event, k), why_required(event))) return false;
  if (model_.is_constraint(event)) {
    constraints_.push_back(event);
    if (e.kind == Kind::Read || e.kind == Kind::Rmw) make_live(event);
    else
      for (uint32_t read : support(e.expr).reads) make_live(read);
  }
  const uint32_t section = model_.section_of[event];
  if (section != trace::kNone && model_.sections[section].acquire == event) sections_.push_back(section);
  switch (e.kind) {
    case Kind::Wake:
    case Kind::LockFail:
    case Kind::RdLockFail:
    case Kind::WrLockFail:
    case Kind::SemFail: choices_.push_back(event); break;
    case Kind::SemWait: waits_.push_back(event); break;
    case Kind::Free:
      if (release_index_[event - window_->first] != trace::kNone) releases_.push_back(release_index_[event - window_->first]);
      break;
    default: break;
  }
  return true;
}

bool Engine::close_required() {
  bool again = true;
  while (again) {
    again = false;
    for (uint32_t t = 0; t < model_.threads; ++t) {
      if (required_[t] == 0) continue;
      const uint32_t last = window_->event(t, required_[t] - 1);
      for (uint32_t x = 0; x < model_.threads; ++x) {
        if (x == t) continue;
        const Order::Cell& cell = order_->pred(last, x);
        if (cell.at < required_[x]) continue;
        again = true;
        if (!require(x, cell.at + 1, cell.why | why_required(last))) return false;
      }
    }
  }
  if (target_ != kNoEvent)  // whatever executes, executes before r
    for (uint32_t t = 0; t < model_.threads; ++t) {
      if (required_[t] == 0) continue;
      const uint32_t last = window_->event(t, required_[t] - 1);
      if (last != target_ && !add_edge(last, target_, why_required(last))) return false;
    }
  for (uint32_t t = 0; t < model_.threads; ++t)
    while (activated_[t] < required_[t]) {
      required_trail_.push_back({t, required_[t], activated_[t]});
      const int32_t upto = required_[t];
      for (int32_t p = activated_[t]; p < upto; ++p) {
        activated_[t] = p + 1;
        if (!activate(window_->event(t, p))) return false;
      }
    }
  return true;
}

bool Engine::saturate() {
  uint64_t before;
  do {
    before = version();
    if (!close_required()) return false;
    for (size_t i = 0; i < flows_.size(); ++i)
      if (!saturate_flow(Flow(flows_[i]))) return false;
    for (size_t i = 0; i < sections_.size(); ++i)
      if (!saturate_section(sections_[i])) return false;
    if (version() != before) continue;  // the rest is dearer, and better asked when the above has settled
    for (size_t i = 0; i < releases_.size(); ++i)
      if (!saturate_release(releases_[i])) return false;
    for (size_t i = 0; i < waits_.size(); ++i)
      if (!saturate_semaphore(waits_[i])) return false;
    for (size_t i = 0; i < choices_.size(); ++i)
      if (!saturate_choice(i)) return false;
    for (size_t i = 0; i < live_reads_.size(); ++i)
      if (!saturate_read(live_reads_[i])) return false;
    for (size_t i = 0; i < constraints_.size(); ++i)
      if (!check_constraint(i)) return false;
  } while (version() != before);
  return true;
}

// r takes the atom from w: any other write of it comes before w or after r.
bool Engine::saturate_flow(const Flow& f) {
  const uint32_t reader = window_->thread(f.read);
  for (const Chain& chain : model_.write_chains(f.atom)) {
    const uint32_t t = chain.thread;
    const int64_t base = window_->base[t];
    // The last write there that must come before the read.
    const bool own = t == reader;
    const Order::Cell before = own ? Order::Cell{window_->at(f.read) - 1, 0} : order_->pred(f.read, t);
    if (before.at >= 0) {
      const int i = last_upto(chain.positions, base + before.at);
      if (i >= 0 && chain.positions[i] >= base) {
        const uint32_t x = model_.events_of[t][chain.positions[i]];
        if (x != f.writer) {
          if (f.writer == kFromStart) return fail(f.why | before.why);
          if (!add_edge(x, f.writer, f.why | before.why)) return false;
        }
      }
    }
    // The first write there that must come after the write.
    size_t j;
    Reasons why = 0;
    if (f.writer == kFromStart) {
      j = first_from(chain.positions, base);
    } else if (t == window_->thread(f.writer)) {
      j = first_from(chain.positions, base + window_->at(f.writer) + 1);
    } else {
      const Order::Cell& after = order_->succ(f.writer, t);
      if (after.at == Order::kNever) continue;
      j = first_from(chain.positions, base + after.at);
      why = after.why;
    }
    if (j < chain.positions.size() && chain.positions[j] < base + window_->length[t]) {
      const uint32_t y = model_.events_of[t][chain.positions[j]];
      if (y != f.read && !add_edge(f.read, y, f.why | why)) return false;
    }
  }
  return true;
}

// Two sections of one lock do not overlap: if one has begun before the other ends, it ends before the other begins.
bool Engine::saturate_section(uint32_t id) {
  const Section& s = model_.sections[id];
  const bool released = s.release != kNoEvent && window_->holds(s.release);
  for (const Model::LockUse& use : model_.lock_uses[s.lock]) {
    if (use.thread == s.thread) continue;
    int32_t limit = static_cast<int32_t>(required_[use.thread]) - 1;
    Reasons why = 0;
    if (released) {
      const Order::Cell& cell = order_->pred(s.release, use.thread);
      limit = std::min(limit, cell.at);
      why = cell.why;
    }
    if (limit < 0) continue;
    // The last section there that began by then and excludes this one.
    auto it = std::upper_bound(use.sections.begin(), use.sections.end(), limit, [&](int32_t l, uint32_t other) {
      return l < window_->at(model_.sections[other].acquire);
    });
    while (it != use.sections.begin()) {
      const Section& other = model_.sections[*--it];
      if (s.shared && other.shared) continue;
      if (window_->at(other.acquire) < 0) break;  // before the window: see open()
      const Reasons all = why | why_required(other.acquire) | why_required(s.acquire);
      if (other.release == kNoEvent || !window_->holds(other.release)) return fail(all);
      if (!add_edge(other.release, s.acquire, all)) return false;
      break;
    }
  }
  return true;
}

// A semaphore's count: as many waits as must come before this one have to be served by posts that need not come after it.
bool Engine::saturate_semaphore(uint32_t wait) {
  const Semaphore& s = model_.semaphores[model_.sync[wait]];
  if (!window_->whole()) return true;  // the machine knows the count; nothing is claimed here
  int64_t supply = s.initial;
  Reasons why = why_required(wait);
  for (uint32_t use : s.uses)
    if (model_.trace.events[use].kind == Kind::SemInit) {
      if (use > wait) return true;  // re-initialised later: leave it to the machine
      supply += model_.raise[use];
    }
  int64_t demand = 0;
  for (const Chain& c : s.waits) {
    const bool own = c.thread == window_->thread(wait);
    const Order::Cell cell = own ? Order::Cell{window_->at(wait), 0} : order_->pred(wait, c.thread);
    const int n = last_upto(c.positions, cell.at) + 1;
    if (n > 0) demand += n, why |= cell.why;
  }
  for (const Chain& c : s.posts) {
    const bool own = c.thread == window_->thread(wait);
    const Order::Cell cell = own ? Order::Cell{window_->at(wait), 0} : order_->succ(wait, c.thread);
    supply += static_cast<int64_t>(first_from(c.positions, cell.at));
    if (cell.at != Order::kNever) why |= cell.why;
  }
  if (demand > supply) return fail(why);
  if (demand < supply) return true;
  for (const Chain& c : s.posts) {  // all of them are needed
    if (c.thread == window_->thread(wait)) continue;
    const size_t n = first_from(c.positions, order_->succ(wait, c.thread).at);
    if (n > 0 && !add_edge(model_.events_of[c.thread][c.positions[n - 1]], wait, why)) return false;
  }
  return true;
}

// What used an object before its release still does, if it executes.
bool Engine::saturate_release(uint32_t index) {
  const Release& release = model_.releases[index];
  for (const Chain& c : release.uses) {
    const int i = last_upto(c.positions, int64_t{window_->base[c.thread]} + required_[c.thread] - 1);
    if (i < 0 || c.positions[i] < window_->base[c.thread]) continue;
    const uint32_t use = model_.events_of[c.thread][c.positions[i]];
    if (!add_edge(use, release.event, why_required(use) | why_required(release.event))) return false;
  }
  return true;
}

}  // namespace stem::predictor
