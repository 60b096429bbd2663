// Witnesses that cost one execution each, and show many pairs.
//
// Freeze: the recorded order is executed up to just before read r; r's thread then stands still while the others go on in
// recorded order as far as they can without it. Every write to what r reads that happens on the way is a flow that r
// could take at that moment (PREFIX). Collect: an execution of the whole trace shows all its flows (FULL).
#pragma once

#include <cstdint>

#include "predictor/machine.h"
#include "predictor/model.h"

namespace stem::predictor {

class Harvest {
 public:
  explicit Harvest(const Model& model) : model_(model), machine_(model) {}

  // found(w) is called when r could take (an atom) from w next; schedule() is then its witness. It returns whether to go on.
  template <typename Found>
  void freeze(uint32_t first, uint32_t last, uint32_t r, Found found) {
    machine_.start(first);
    machine_.clear_wishes();
    const auto& events = model_.trace.events;
    const uint32_t frozen = events[r].thread;
    for (uint32_t i = first; i < r; ++i)
      if (!machine_.step(i)) return;  // the recording itself: never
    stalled_.assign(model_.threads, 0);
    stalled_[frozen] = 1;
    r_ = r;
    first_ = first;
    for (uint32_t i = r + 1; i < last; ++i) {
      const uint32_t t = events[i].thread;
      if (stalled_[t]) continue;
      if (events[i].kind == trace::Kind::Exit || !machine_.possible(i) || !machine_.step(i)) {
        stalled_[t] = 1;
        continue;
      }
      if (!model_.atom_count[i] || !model_.is_write(i) || !overlaps(i, r)) continue;
      if (!machine_.possible(r)) return;
      if (!found(i)) return;
    }
  }

  std::vector<uint32_t> schedule() const {
    std::vector<uint32_t> events;
    for (uint32_t i = 0; i < first_; ++i) events.push_back(i);
    events.insert(events.end(), machine_.schedule().begin(), machine_.schedule().end());
    events.push_back(r_);
    return events;
  }

  // found(w, r) for every flow of an execution from the start.
  template <typename Found>
  void collect(const std::vector<uint32_t>& schedule, Found found) {
    machine_.start(0);
    machine_.clear_wishes();
    for (uint32_t event : schedule) {
      if (model_.atom_count[event] && model_.is_read(event))
        for (unsigned k = 0; k < model_.atom_count[event]; ++k) found(machine_.writer(model_.first_atom[event] + k), event);
      if (!machine_.step(event)) return;
    }
  }

 private:
  bool overlaps(uint32_t a, uint32_t b) const {
    return model_.first_atom[a] < model_.first_atom[b] + model_.atom_count[b] &&
           model_.first_atom[b] < model_.first_atom[a] + model_.atom_count[a];
  }

  const Model& model_;
  Machine machine_;
  std::vector<uint8_t> stalled_;
  uint32_t r_ = 0, first_ = 0;
};

}  // namespace stem::predictor
