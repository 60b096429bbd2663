// Executing the required events under the facts of a query: always the enabled event that came first in the recording, so
// that a witness differs from the recording only where it must.
#include <algorithm>

#include "predictor/engine.h"

namespace stem::predictor {

using trace::Kind;

// All that the facts put before it has executed.
bool Engine::ready(uint32_t event) const {
  const uint32_t t = window_->thread(event);
  for (uint32_t x = 0; x < model_.threads; ++x)
    if (x != t && order_->pred(event, x).at >= static_cast<int32_t>(machine_.executed(x)) - static_cast<int32_t>(window_->base[x]))
      return false;
  return true;
}

// Some read still waits for the value that this write would overwrite.
bool Engine::blocked_by_flow(uint32_t write) const {
  for (unsigned k = 0; k < model_.atom_count[write]; ++k) {
    const uint32_t atom = model_.first_atom[write] + k;
    if (open_stamp_[atom] != run_ || open_count_[atom] == 0) continue;
    const bool own = model_.is_read(write) && bound_[slot(write, k)] != kUnbound;
    if (open_count_[atom] > (own ? 1u : 0u)) return true;
  }
  return false;
}

// The flows from and to an event that has just executed.
void Engine::started(uint32_t event) {
  if (!model_.atom_count[event]) return;
  if (model_.is_read(event))
    for (unsigned k = 0; k < model_.atom_count[event]; ++k)
      if (bound_[slot(event, k)] != kUnbound) --open_count_[model_.first_atom[event] + k];
  if (!model_.is_write(event)) return;
  for (int32_t f = flow_head_[event - window_->first]; f >= 0; f = flow_next_[f]) {
    const uint32_t atom = flows_[f].atom;
    if (open_stamp_[atom] != run_) open_stamp_[atom] = run_, open_count_[atom] = 0;
    ++open_count_[atom];
  }
}

bool Engine::linearise() {
  machine_.start(window_->first);
  machine_.clear_wishes();
  for (const Wakeup& w : wakeups_) machine_.wish(w.signal, w.wake);
  ++run_;
  flow_next_.assign(flows_.size(), -1);
  for (size_t f = 0; f < flows_.size(); ++f) {
    if (flows_[f].writer == kFromStart) {
      if (open_stamp_[flows_[f].atom] != run_) open_stamp_[flows_[f].atom] = run_, open_count_[flows_[f].atom] = 0;
      ++open_count_[flows_[f].atom];
    } else {
      int32_t& head = flow_head_[flows_[f].writer - window_->first];
      flow_next_[f] = head;
      head = static_cast<int32_t>(f);
    }
  }
  size_t left = 0;
  for (uint32_t t = 0; t < model_.threads; ++t) left += required_[t];

  violated_ = kNoEvent;
  stuck_.clear();
  bool arrived = true;
  while (left > 0) {
    if (left == 1 && target_ != kNoEvent) break;
    uint32_t tried = 0;  // events at or before this one were tried in vain since the last step
    bool stepped = false;
    while (!stepped) {
      uint32_t best = kNoEvent;
      for (uint32_t t = 0; t < model_.threads; ++t) {
        const int32_t at = static_cast<int32_t>(machine_.executed(t) - window_->base[t]);
        if (at >= required_[t]) continue;
        const uint32_t next = window_->event(t, at);
        if (next >= best || next < tried || next == target_) continue;
        if (ready(next)) best = next;
      }
      if (best == kNoEvent) break;
      tried = best + 1;
      const uint32_t t = window_->thread(best);
      const bool writes = model_.atom_count[best] && model_.is_write(best);
      if (!machine_.possible(best) || (writes && blocked_by_flow(best))) {
        stuck_.push_back(best);
        continue;
      }
      if (!machine_.step(best, window_->base[t] + required_[t])) {
        violated_ = machine_.violated();
        stuck_.push_back(best);
        continue;
      }
      started(best);
      stepped = true;
    }
    if (!stepped) {
      arrived = false;
      break;
    }
    stuck_.clear();
    violated_ = kNoEvent;
    --left;
  }
  for (const Flow& f : flows_)
    if (f.writer != kFromStart) flow_head_[f.writer - window_->first] = -1;
  return arrived;
}

std::vector<uint32_t> Engine::schedule() const {
  std::vector<uint32_t> events;
  events.reserve(window_->first + machine_.schedule().size() + 1);
  for (uint32_t i = 0; i < window_->first; ++i) events.push_back(i);
  events.insert(events.end(), machine_.schedule().begin(), machine_.schedule().end());
  if (target_ != kNoEvent) events.push_back(target_);
  if (meaning_ == encoder::Meaning::Full)
    for (uint32_t i = window_->last; i < model_.trace.events.size(); ++i) events.push_back(i);
  return events;
}

}  // namespace stem::predictor
