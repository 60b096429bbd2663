#include "predictor/enumerate.h"

#include <algorithm>

#include "trace/eval.h"
#include "util/error.h"

namespace stem::predictor {

using trace::Kind;

namespace {

constexpr uint64_t kPatience = 4000;  // states

uint64_t mix(uint64_t x) {
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27, x *= 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

}  // namespace

Enumerate::Enumerate(const Model& model, const Independence& independence, encoder::Meaning meaning)
    : model_(model), independence_(independence), full_(meaning == encoder::Meaning::Full), machine_(model) {
  machine_.keep_history(true);
}

void Enumerate::open(uint32_t first, uint32_t last) {
  first_ = first;
  inexact_ = false;
  machine_.start(first);
  deepest_ = shallowest_ = 0;
  patience_ = kPatience;
  visited_.clear(), frames_.clear(), flows_.clear(), alternatives_.clear(), atoms_.clear(), last_reads_.clear();
  end_.resize(model_.threads);
  for (uint32_t t = 0; t < model_.threads; ++t) {
    const auto& events = model_.events_of[t];
    end_[t] = static_cast<uint32_t>(std::lower_bound(events.begin(), events.end(), last) - events.begin());
  }
  std::vector<uint32_t> atoms;
  for (uint32_t i = first; i < last; ++i)
    if (model_.atom_count[i] && model_.is_read(i))
      for (unsigned k = 0; k < model_.atom_count[i]; ++k) atoms.push_back(model_.first_atom[i] + k);
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  std::vector<uint32_t> writers(atoms.size(), kNobody);
  for (uint32_t i = first; i < last; ++i)
    for (unsigned k = 0; model_.is_write(i) && k < model_.atom_count[i]; ++k) {
      const auto it = std::lower_bound(atoms.begin(), atoms.end(), model_.first_atom[i] + k);
      if (it == atoms.end() || *it != model_.first_atom[i] + k) continue;
      uint32_t& writer = writers[static_cast<size_t>(it - atoms.begin())];
      const uint32_t thread = model_.trace.events[i].thread;
      writer = writer == kNobody || writer == thread ? thread : kSeveral;
    }
  for (size_t n = 0; n < atoms.size(); ++n) {
    if (writers[n] == kNobody) continue;  // the same in every state
    const uint32_t atom = atoms[n];
    LiveAtom live{atom, writers[n], static_cast<uint32_t>(last_reads_.size()), 0};
    for (const Chain& chain : independence_.read_chains(atom)) {
      const auto it = std::lower_bound(chain.positions.begin(), chain.positions.end(), end_[chain.thread]);
      if (it == chain.positions.begin() || *(it - 1) < machine_.executed(chain.thread)) continue;
      last_reads_.emplace_back(chain.thread, *(it - 1));
      ++live.count;
    }
    atoms_.push_back(live);
  }
}

uint32_t Enumerate::next_event(uint32_t thread) const {
  const uint32_t at = machine_.executed(thread);
  if (at >= end_[thread]) return kNoEvent;
  const uint32_t event = model_.events_of[thread][at];
  return event != model_.exit_event && machine_.possible(event) ? event : kNoEvent;
}

void Enumerate::observe(uint32_t read) {
  for (unsigned k = 0; k < model_.atom_count[read]; ++k) listener_->flow(machine_.writer(model_.first_atom[read] + k), read);
}

bool Enumerate::step(uint32_t event) {
  if (full_ && model_.atom_count[event] && model_.is_read(event))
    for (unsigned k = 0; k < model_.atom_count[event]; ++k) flows_.emplace_back(machine_.writer(model_.first_atom[event] + k), event);
  if (machine_.step(event)) return true;
  inexact_ |= independence_.input_decides(machine_.violated());
  return false;
}

// Everything that is alone; then what could be read next is looked at.
void Enumerate::advance() {
  const Independence::Progress progress{machine_.executed(), end_};
  for (bool again = true; again;) {
    again = false;
    for (uint32_t t = 0; t < model_.threads; ++t)
      for (uint32_t event; (event = next_event(t)) != kNoEvent && independence_.alone(event, progress);) {
        if (model_.trace.events[event].kind == Kind::Signal) {
          machine_.waiters(event, waiters_);
          if (waiters_.size() > 1) break;  // a choice
        }
        if (!full_ && model_.atom_count[event] && model_.is_read(event)) observe(event);
        if (!step(event)) break;
        again = true;
      }
  }
  for (uint32_t t = 0; t < model_.threads && !full_; ++t) {
    const uint32_t event = next_event(t);
    if (event != kNoEvent && model_.atom_count[event] && model_.is_read(event)) observe(event);
  }
}

// What one thread alone writes is given by how far it has come, unless it has read something else than recorded.
Enumerate::Key Enumerate::key() {
  Key key;
  const auto add = [&](uint64_t what, uint64_t value) {
    const uint64_t x = mix(what * 0x9e3779b97f4a7c15ull + mix(value));
    key.a += x, key.b += mix(x ^ 0xd1b54a32d192ed03ull);
  };
  for (uint32_t t = 0; t < model_.threads; ++t) add(t, uint64_t{machine_.executed(t)} << 1 | machine_.woken(t));
  deviates_.assign(model_.threads, 0);
  machine_.differing_reads([&](uint32_t read, uint64_t bits, bool known) {
    const trace::Event& e = model_.trace.events[read];
    const bool recorded = known && bits == (e.value & trace::width_mask(8u * e.size));
    if (recorded) return;
    deviates_[e.thread] = 1;
    if (independence_.last_use(read) >= machine_.executed(e.thread)) add(uint64_t{read} << 2 | uint64_t{1} << 42 | known, bits);
  });
  for (const LiveAtom& live : atoms_) {
    if (live.thread != kSeveral && !deviates_[live.thread]) continue;
    bool read = false;
    for (uint32_t i = live.first; i < live.first + live.count && !read; ++i)
      read = machine_.executed(last_reads_[i].first) <= last_reads_[i].second;
    if (!read) continue;
    const Machine::Content content = machine_.content(live.atom);
    const uint64_t who = model_.atoms[live.atom].tainted ? content.writer + 1ull : listener_->label(content.writer);
    if (who && live.thread == kSeveral) add(uint64_t{live.atom} << 2 | uint64_t{1} << 40, who);
    if (independence_.matters(live.atom)) add(uint64_t{live.atom} << 2 | uint64_t{1} << 41 | content.known, content.bits);
  }
  return key;
}

bool Enumerate::at_end() const {
  for (uint32_t t = 0; t < model_.threads; ++t)
    if (const uint32_t at = machine_.executed(t); at < end_[t] && model_.events_of[t][at] != model_.exit_event) return false;
  return true;
}

// FULL: the state that has been reached leads to the end, so the step that led here does, and what was read on it.
void Enumerate::leads_to_end(const Key& here) {
  here_ = here;
  const size_t from = frames_.empty() ? 0 : frames_.back().flows;
  for (size_t i = from; i < flows_.size(); ++i) listener_->flow(flows_[i].first, flows_[i].second);
  if (frames_.empty()) return;
  WayOn& known = visited_[frames_.back().key];
  if (known.step.event == kNoEvent) known = {alternatives_[frames_.back().next - 1], here};
}

// Goes on from where a step has led. False: it has been here before, or nothing is left to do.
bool Enumerate::enter() {
  advance();
  const Key here = key();
  const auto [state, fresh] = visited_.try_emplace(here);
  if (full_ && fresh && at_end()) state->second.step.event = kEnd;
  if (full_ && state->second.step.event != kNoEvent) leads_to_end(here);
  if (!fresh) return false;
  const size_t first = alternatives_.size();
  for (uint32_t t = 0; t < model_.threads; ++t) {
    const uint32_t event = next_event(t);
    if (event == kNoEvent) continue;
    waiters_.clear();
    if (model_.trace.events[event].kind == Kind::Signal) machine_.waiters(event, waiters_);
    if (waiters_.empty()) alternatives_.push_back({event, kNoEvent});
    for (uint32_t wake : waiters_) alternatives_.push_back({event, wake});
  }
  if (first == alternatives_.size()) return false;
  // As recorded first, so that witnesses differ from the recording late.
  std::sort(alternatives_.begin() + static_cast<ptrdiff_t>(first), alternatives_.end(),
            [](const Alternative& a, const Alternative& b) { return std::pair(a.event, a.wake) < std::pair(b.event, b.wake); });
  frames_.push_back({machine_.mark(), first, first, here, flows_.size()});
  if (frames_.size() > deepest_) deepest_ = shallowest_ = frames_.size();
  return true;
}

// The walk goes down once and comes back slowly, at times in fits and starts. Asked when the states are four times as many as
// the last time: will it be done within the limit at this rate? At first twice the limit will do.
bool Enumerate::hopeless(uint64_t limit) {
  if (visited_.size() < patience_) return false;
  const double allowed = static_cast<double>(patience_ == kPatience ? 2 * limit : limit);
  patience_ *= 4;
  const double returned = static_cast<double>(deepest_ - shallowest_) / static_cast<double>(deepest_ + 1);
  return static_cast<double>(visited_.size()) > returned * allowed;
}

Enumerate::Outcome Enumerate::run(uint32_t first, uint32_t last, uint64_t limit, Listener& listener) {
  listener_ = &listener;
  open(first, last);
  enter();
  for (uint64_t steps = 0; !frames_.empty(); ++steps) {
    if (visited_.size() > limit || (steps % 64 == 0 && listener.stop())) return Outcome::TooMany;
    if (hopeless(limit)) return Outcome::TooMany;
    Frame& frame = frames_.back();
    machine_.undo(frame.mark);
    flows_.resize(frame.flows);
    if (frame.next == alternatives_.size()) {
      const Key here = frame.key;
      const bool leads = full_ && visited_[here].step.event != kNoEvent;
      alternatives_.resize(frame.first);
      frames_.pop_back();
      if (leads) leads_to_end(here);
      shallowest_ = std::min(shallowest_, frames_.size());
      continue;
    }
    const Alternative taken = alternatives_[frame.next++];
    machine_.clear_wishes();
    if (taken.wake != kNoEvent) machine_.wish(taken.event, taken.wake);
    if (step(taken.event)) enter();
  }
  return inexact_ ? Outcome::Inexact : Outcome::Complete;
}

// FULL: on from the state that has been reached, by the steps that are known to lead to the end.
std::vector<uint32_t> Enumerate::complete_schedule() {
  const Machine::Mark mark = machine_.mark();
  const size_t flows = flows_.size();
  WayOn way;
  for (Key here = here_; (way = visited_.at(here)).step.event != kEnd; here = way.to) {
    machine_.clear_wishes();
    if (way.step.wake != kNoEvent) machine_.wish(way.step.event, way.step.wake);
    STEM_CHECK(step(way.step.event));
    advance();
  }
  std::vector<uint32_t> events = machine_.schedule();
  if (model_.exit_event != kNoEvent) events.push_back(model_.exit_event);
  machine_.undo(mark);
  flows_.resize(flows);
  return events;
}

std::vector<uint32_t> Enumerate::schedule(uint32_t read) {
  if (full_) return complete_schedule();
  std::vector<uint32_t> events(first_);
  for (uint32_t i = 0; i < first_; ++i) events[i] = i;
  events.insert(events.end(), machine_.schedule().begin(), machine_.schedule().end());
  events.push_back(read);
  return events;
}

}  // namespace stem::predictor
