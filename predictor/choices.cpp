// Synchronisation that could have gone several ways: which signal woke a waiter, which section made an attempt fail.
#include <algorithm>

#include "predictor/engine.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

// Nothing to choose: it needs no signal, its attempt failed for another reason, or the thread itself holds the lock.
bool Engine::settled(size_t index) {
  const uint32_t event = choices_[index];
  const Event& e = model_.trace.events[event];
  if (e.kind == Kind::Wake) {
    if (e.flags & (trace::kTimeout | trace::kSpurious)) return true;
    const uint32_t wait = model_.wait_of[event];
    return wait != trace::kNone && wait < window_->first && machine_.woken_before(e.thread);
  }
  if (!model_.was_busy(event)) return true;
  if (e.kind == Kind::SemFail) return false;
  for (const auto& use : model_.lock_uses[model_.sync[event]])
    if (use.thread == e.thread)
      for (uint32_t id : use.sections) {
        const Section& s = model_.sections[id];
        if (e.kind == Kind::RdLockFail && s.shared) continue;
        if (s.acquire < event && (s.release == kNoEvent || s.release > event)) return true;
      }
  return false;
}

// What the event may rest on: signals for a Wake, sections for a failed attempt; the likeliest (as recorded) first.
void Engine::alternatives(size_t index, std::vector<uint32_t>& out) {
  out.clear();
  const uint32_t event = choices_[index];
  const Event& e = model_.trace.events[event];
  if (e.kind == Kind::SemFail) {
    out.push_back(0);  // the recorded order of all operations on it
    return;
  }
  if (e.kind == Kind::Wake) {
    const uint32_t wait = model_.wait_of[event];
    if (wait == trace::kNone) return;
    for (uint32_t s : model_.signals[model_.sync[event]]) {
      if (!window_->holds(s) || window_->thread(s) == e.thread || order_->before(event, s)) continue;
      if (window_->holds(wait) && order_->before(s, wait)) continue;
      if (model_.trace.events[s].kind == Kind::Signal &&
          std::any_of(wakeups_.begin(), wakeups_.end(), [&](const Wakeup& w) { return w.signal == s; }))
        continue;
      out.push_back(s);
    }
    std::stable_sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) {
      auto recorded = [&](uint32_t s) { return s > wait && s < event ? 0 : 1; };
      return recorded(a) < recorded(b);
    });
    return;
  }
  for (const auto& use : model_.lock_uses[model_.sync[event]]) {
    if (use.thread == e.thread) continue;
    for (uint32_t id : use.sections) {
      const Section& s = model_.sections[id];
      if (e.kind == Kind::RdLockFail && s.shared) continue;
      if (s.acquire >= window_->last || (s.release != kNoEvent && s.release < window_->first)) continue;
      if (window_->holds(s.acquire) && order_->before(event, s.acquire)) continue;
      if (s.release != kNoEvent && window_->holds(s.release) && order_->before(s.release, event)) continue;
      out.push_back(id);
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) {
    auto recorded = [&](uint32_t id) {
      const Section& s = model_.sections[id];
      return s.acquire < event && (s.release == kNoEvent || s.release > event) ? 0 : 1;
    };
    return recorded(a) < recorded(b);
  });
}

bool Engine::choose(size_t index, uint32_t what, Reasons why) {
  const uint32_t event = choices_[index];
  const Event& e = model_.trace.events[event];
  why |= why_required(event);
  set_flag(chosen_[event - window_->first], 1);
  ++changes_;
  if (e.kind == Kind::SemFail) {
    assumed_ = true;  // other orders might do as well
    for (uint32_t use : model_.semaphores[model_.sync[event]].uses) {
      if (use == event || !window_->holds(use)) continue;
      if (use < event ? !require_event(use, why) || !add_edge(use, event, why) : !add_edge(event, use, why)) return false;
    }
    return true;
  }
  if (e.kind == Kind::Wake) {
    const uint32_t wait = model_.wait_of[event];
    wakeups_.push_back({what, event});
    if (window_->holds(wait) && !add_edge(wait, what, why)) return false;
    return require_event(what, why) && add_edge(what, event, why);
  }
  const Section& s = model_.sections[what];
  if (window_->holds(s.acquire) && (!require_event(s.acquire, why) || !add_edge(s.acquire, event, why))) return false;
  return s.release == kNoEvent || !window_->holds(s.release) || add_edge(event, s.release, why);
}

bool Engine::saturate_choice(size_t index) {
  const uint32_t event = choices_[index];
  if (chosen_[event - window_->first]) return true;
  if (settled(index)) {
    set_flag(chosen_[event - window_->first], 1);
    return true;
  }
  std::vector<uint32_t> options;
  alternatives(index, options);
  // What rules the others out is not tracked: the reason is everything decided so far.
  if (options.empty()) return fail(kAll);
  return options.size() > 1 || choose(index, options[0], kAll);
}

}  // namespace stem::predictor
