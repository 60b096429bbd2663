// Windows, queries, and the small search: decide what blocked the linearisation, saturate, try again; jump back over
// decisions that a contradiction does not rest on.
#include <algorithm>

#include "predictor/engine.h"

namespace stem::predictor {

using encoder::Meaning;
using trace::Event;
using trace::Kind;

Engine::Engine(const Model& model, Meaning meaning, uint32_t decisions)
    : model_(model),
      meaning_(meaning),
      limit_(decisions),
      machine_(model),
      memo_stamp_(model.trace.exprs.size()),
      memo_(model.trace.exprs.size()),
      open_stamp_(model.atoms.size(), 0),
      open_count_(model.atoms.size(), 0) {}

void Engine::open(uint32_t first, uint32_t last) {
  window_ = std::make_unique<Window>(model_, first, last);
  order_ = std::make_unique<Order>(*window_);
  machine_.start(first);
  const size_t size = last - first;
  target_ = kNoEvent;
  assumed_ = false;
  required_.assign(model_.threads, 0);
  activated_.assign(model_.threads, 0);
  why_required_.assign(model_.threads, {});
  for (auto* list : {&live_reads_, &constraints_, &sections_, &choices_, &waits_, &releases_}) list->clear();
  flows_.clear(), wakeups_.clear(), marks_.clear(), required_trail_.clear(), flags_trail_.clear(), slots_trail_.clear();
  live_.assign(size, 0), verified_.assign(size, 0), chosen_.assign(size, 0);
  leaf_stamp_.assign(size, 0), leaf_.assign(size, {}), determined_.assign(size, {}), flow_head_.assign(size, -1);
  supports_.clear(), allowed_.clear();
  unary_.assign(size, {});
  release_index_.assign(size, trace::kNone);

  uint32_t slots = 0;
  first_slot_ = UINT32_MAX;
  for (uint32_t i = first; i < last; ++i)
    if (model_.atom_count[i] && model_.is_read(i)) {
      first_slot_ = std::min(first_slot_, model_.sources_at[i]);
      slots = model_.sources_at[i] + model_.atom_count[i] - first_slot_;
    }
  bound_.assign(slots, kUnbound);
  bound_why_.assign(slots, 0);

  for (uint32_t i = first; i < last; ++i) {
    if (!model_.is_constraint(i)) continue;
    const Event& e = model_.trace.events[i];
    if (e.kind == Kind::Read || e.kind == Kind::Rmw) {
      unary_[i - first].push_back(i);
    } else {
      const Support& s = support(e.expr);
      if (s.reads.size() == 1 && !s.inputs) unary_[s.reads[0] - first].push_back(i);
    }
  }
  for (uint32_t i = 0; i < model_.releases.size(); ++i)
    if (window_->holds(model_.releases[i].event)) release_index_[model_.releases[i].event - first] = i;
  for (uint32_t i = first; i < last; ++i)
    for (const auto& [a, b] : model_.needs(i))
      if (window_->holds(a)) order_->add(a, b, 0);
  // A lock held when the window begins is released before anyone else takes it.
  if (first > 0)
    for (const Section& s : model_.sections) {
      if (s.acquire >= first || s.release == kNoEvent || !window_->holds(s.release)) continue;
      for (const auto& use : model_.lock_uses[s.lock])
        for (uint32_t id : use.sections) {
          const Section& other = model_.sections[id];
          if (use.thread == s.thread || !window_->holds(other.acquire) || (s.shared && other.shared)) continue;
          order_->add(s.release, other.acquire, 0);
          break;  // the later ones follow in program order
        }
    }
  if (meaning_ == Meaning::Full) {
    if (window_->holds(model_.exit_event))
      for (uint32_t t = 0; t < model_.threads; ++t)
        if (window_->length[t] && t != window_->thread(model_.exit_event))
          order_->add(window_->event(t, window_->length[t] - 1), model_.exit_event, 0);
    for (uint32_t t = 0; t < model_.threads; ++t) require(t, window_->length[t], 0);
    possible_ = saturate();
  } else {
    possible_ = true;
  }
}

void Engine::push() {
  marks_.push_back({order_->mark(), flags_trail_.size(), slots_trail_.size(), flows_.size(), live_reads_.size(),
                    constraints_.size(), sections_.size(), choices_.size(), waits_.size(), releases_.size(), wakeups_.size(),
                    required_trail_.size(), assumed_});
}

void Engine::pop() {
  const Mark m = marks_.back();
  marks_.pop_back();
  order_->undo(m.order);
  while (flags_trail_.size() > m.flags) {
    *flags_trail_.back().first = flags_trail_.back().second;
    flags_trail_.pop_back();
  }
  while (slots_trail_.size() > m.slots) {
    bound_[slots_trail_.back()] = kUnbound;
    slots_trail_.pop_back();
  }
  flows_.resize(m.flows);
  live_reads_.resize(m.live);
  constraints_.resize(m.constraints);
  sections_.resize(m.sections);
  choices_.resize(m.choices);
  waits_.resize(m.waits);
  releases_.resize(m.releases);
  wakeups_.resize(m.wakeups);
  assumed_ = m.assumed;
  while (required_trail_.size() > m.required) {
    const RequiredChange& c = required_trail_.back();
    if (required_[c.thread] != c.required) why_required_[c.thread].pop_back();
    required_[c.thread] = c.required;
    activated_[c.thread] = c.activated;
    required_trail_.pop_back();
  }
  ++changes_;
}

Engine::Reach Engine::extend(uint32_t event) {
  if (!possible_) return Reach::Maybe;
  inexact_ = false;
  if (require_event(event, 0) && saturate()) return Reach::Yes;
  return inexact_ || assumed_ ? Reach::Maybe : Reach::No;
}

Engine::Reach Engine::aim(uint32_t r) {
  push();
  aimed_ = r;
  if (meaning_ == Meaning::Full) return possible_ ? Reach::Yes : Reach::Maybe;
  target_ = r;
  return extend(r);
}

void Engine::leave() {
  pop();
  target_ = kNoEvent;
}

Engine::Reach Engine::reach(uint32_t w) {
  push();
  if (meaning_ == Meaning::Full) return Reach::Yes;
  return extend(w);
}

void Engine::retreat() { pop(); }

std::vector<uint32_t> Engine::cone() const {
  std::vector<uint32_t> length(model_.threads);
  for (uint32_t t = 0; t < model_.threads; ++t) length[t] = window_->base[t] + required_[t];
  return length;
}

Engine::Result Engine::decide(uint32_t w, uint32_t atom) {
  inexact_ = false;
  used_ = 0;
  push();
  Result result = Result::Infeasible;
  if (bind(aimed_, atom - model_.first_atom[aimed_], w, 0)) result = search(0);
  else if (assumed_) inexact_ = true;
  pop();
  return result == Result::Infeasible && inexact_ ? Result::Undecided : result;
}

Engine::Result Engine::search(unsigned level) {
  if (!saturate()) {
    if (assumed_) inexact_ = true;
    return Result::Infeasible;
  }
  if (linearise()) return Result::Feasible;
  if (used_++ >= limit_ || std::chrono::steady_clock::now() > deadline_) return Result::Undecided;
  std::vector<Alternative> options;
  Reasons all = 0;
  if (!pick(options, all)) {
    inexact_ = true;
    conflict_ = kAll;
    return Result::Infeasible;
  }
  const Reasons bit = reason_of(level);
  for (const Alternative& option : options) {
    push();
    Result result = Result::Infeasible;
    if (apply(option, bit)) result = search(level + 1);
    else if (assumed_) inexact_ = true;
    const Reasons why = conflict_;
    pop();
    if (result != Result::Infeasible) return result;
    if (!(why & bit)) {  // this decision had no part in it
      conflict_ = why;
      return Result::Infeasible;
    }
    all |= level > 63 ? why : why & ~bit;
  }
  conflict_ = all;
  return Result::Infeasible;
}

bool Engine::apply(const Alternative& option, Reasons why) {
  switch (option.kind) {
    case Alternative::Kind::Bind: return bind(option.a, option.k, option.b, why);
    case Alternative::Kind::Edge: return add_edge(option.a, option.b, why);
    case Alternative::Kind::Choice: return choose(option.a, option.b, why);
  }
  return false;
}

// The choice that blocked the linearisation. False: what blocked it is nothing that the search decides.
bool Engine::pick(std::vector<Alternative>& out, Reasons& why) {
  for (size_t i = 0; i < choices_.size(); ++i)
    if (!chosen_[choices_[i] - window_->first]) {
      std::vector<uint32_t> options;
      alternatives(i, options);
      for (uint32_t what : options) out.push_back({Alternative::Kind::Choice, static_cast<uint32_t>(i), what});
      why = kAll;
      return true;
    }
  if (violated_ != kNoEvent && pick_binding(violated_, out, why)) return true;
  for (uint32_t event : stuck_) {
    const uint32_t section = model_.section_of[event];
    if (section != trace::kNone && model_.sections[section].acquire == event && pick_section(event, out, why)) return true;
  }
  for (uint32_t event : stuck_)
    if (model_.atom_count[event] && model_.is_write(event) && pick_write(event, out, why)) return true;
  return false;
}

bool Engine::pick_binding(uint32_t constraint, std::vector<Alternative>& out, Reasons& why) {
  const Event& e = model_.trace.events[constraint];
  uint32_t read = kNoEvent;
  if (e.kind == Kind::Read || e.kind == Kind::Rmw) {
    for (unsigned k = 0; k < model_.atom_count[constraint] && read == kNoEvent; ++k) {
      const uint32_t w = bound_[slot(constraint, k)];
      if (w == kUnbound) read = constraint;
      else if (w != kFromStart && model_.trace.events[w].expr) read = unbound_below(model_.trace.events[w].expr);
    }
  } else {
    read = unbound_below(e.expr);
  }
  if (read == kNoEvent) return false;
  for (unsigned k = 0; k < model_.atom_count[read]; ++k) {
    if (bound_[slot(read, k)] != kUnbound) continue;
    std::vector<uint32_t> writers;
    why = candidates(read, k, SIZE_MAX, writers) | why_required(read);
    const uint32_t recorded = recorded_source(read, k);
    std::stable_partition(writers.begin(), writers.end(), [&](uint32_t w) { return w == recorded; });
    for (uint32_t w : writers) out.push_back({Alternative::Kind::Bind, read, w, k});
    return true;
  }
  return false;
}

bool Engine::pick_section(uint32_t acquire, std::vector<Alternative>& out, Reasons& why) {
  const Section& s = model_.sections[model_.section_of[acquire]];
  for (const auto& use : model_.lock_uses[s.lock]) {
    if (use.thread == s.thread) continue;
    for (uint32_t id : use.sections) {
      const Section& other = model_.sections[id];
      if (!window_->holds(other.acquire) || (s.shared && other.shared)) continue;
      if (!machine_.done(other.acquire) || (other.release != kNoEvent && machine_.done(other.release))) continue;
      why = why_required(acquire) | why_required(other.acquire);
      const bool here = s.release != kNoEvent && window_->holds(s.release);
      const bool there = other.release != kNoEvent && window_->holds(other.release);
      if (here) out.push_back({Alternative::Kind::Edge, s.release, other.acquire});
      if (there) out.push_back({Alternative::Kind::Edge, other.release, acquire});
      if (out.size() == 2 && is_required(other.release)) std::swap(out[0], out[1]);
      return true;
    }
  }
  return false;
}

bool Engine::pick_write(uint32_t write, std::vector<Alternative>& out, Reasons& why) {
  for (const Flow& f : flows_) {
    if (f.atom < model_.first_atom[write] || f.atom >= model_.first_atom[write] + model_.atom_count[write]) continue;
    if (f.writer == write || f.read == write || machine_.done(f.read)) continue;
    if (f.writer != kFromStart && !machine_.done(f.writer)) continue;
    why = f.why | why_required(write);
    if (f.writer != kFromStart) out.push_back({Alternative::Kind::Edge, write, f.writer});
    out.push_back({Alternative::Kind::Edge, f.read, write});
    return true;
  }
  return false;
}

}  // namespace stem::predictor
