// What every execution has in common, for the whole trace: which events must come before which others, and what locks hide.
//
// Vector clocks over program order and the edges of the model (create, join, barriers, once, allocation), changed only
// where an edge comes in: linear in the trace. With them, and with two arguments about locks, whole groups of instances of
// a static pair are refuted at once, which is what makes refutation affordable on long traces:
//   covered   r follows, in one section of m, a write of its own thread: no write under m by another thread reaches r;
//   hidden    w is followed, in one section of m, by another write of its own thread: no read under m elsewhere sees w.
#pragma once

#include <cstdint>
#include <vector>

#include "predictor/model.h"

namespace stem::predictor {

class MustOrder {
 public:
  explicit MustOrder(const Model& model);

  bool before(uint32_t a, uint32_t b) const {
    const uint32_t t = model_.trace.events[a].thread;
    if (t == model_.trace.events[b].thread) return model_.position[a] < model_.position[b];
    return known(b, t) > model_.position[a];
  }
  // How many events of the thread must come before e; the first position there that must come after it.
  uint32_t known(uint32_t e, uint32_t thread) const { return clocks_[size_t{clock_of_[e]} * model_.threads + thread]; }
  uint32_t after(uint32_t e, uint32_t thread) const;

  // Locks held exclusively at an access, as a mask over the first 64 locks; those that cover a read or hide a write.
  uint64_t held(uint32_t event) const { return held_[event]; }
  uint64_t shielded(uint32_t event) const { return shielded_[event]; }

 private:
  const Model& model_;
  std::vector<uint32_t> clock_of_;  // event -> number of its clock
  std::vector<uint32_t> clocks_;
  std::vector<uint64_t> held_, shielded_;
  void find_clocks();
  void find_locks();
};

}  // namespace stem::predictor
