// Which events may as well execute at once: those that nothing another thread can do before them is in conflict with.
//
// An enumeration that executes such an event without trying anything else in its stead loses no flow: whatever else could
// have come first still can come after it. Two events are in conflict if they touch the same memory and one writes, or
// compete for the same lock, semaphore or condition variable. What another thread can come to is limited by the order that
// always holds (must_order.h) and by the locks held: behind its next acquisition of one of them nothing can happen before
// they are released. So a critical section whose data is always locked is one step, and what only one thread touches is none.
//
// Computed once for a trace, linear in it; asking costs a binary search for each other thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "predictor/model.h"
#include "predictor/must_order.h"

namespace stem::predictor {

class Independence {
 public:
  Independence(const Model& model, const MustOrder& order);

  // How far each thread has come, and how far it may go (positions).
  struct Progress {
    const std::vector<uint32_t>& executed;
    const std::vector<uint32_t>& end;
  };
  // The event is its thread's next one, and possible.
  bool alone(uint32_t event, const Progress& progress) const;

  // Whether any branch, pin or pinned read depends on what the atom holds; whether an input may change what it holds.
  bool matters(uint32_t atom) const { return matters_[atom]; }
  bool input_decides(uint32_t constraint) const;
  // The last position of its thread at which a read's value is used; 0: nowhere.
  uint32_t last_use(uint32_t read) const { return last_use_[read]; }
  const std::vector<Chain>& read_chains(uint32_t atom) const { return reads_[atom]; }

 private:
  using Chains = std::vector<Chain>;
  bool conflict(const Chains& chains, uint32_t event, const Progress& progress) const;
  uint32_t next_acquisition(uint32_t event, uint32_t thread, uint32_t from) const;
  void find_chains();
  void find_held();
  void find_uses();
  void find_values();
  void find_inputs();

  const Model& model_;
  const MustOrder& order_;
  std::vector<Chains> reads_;                    // by atom
  std::vector<Chains> takes_, fails_;            // by sync id: what competes for it; attempts that failed
  std::vector<uint32_t> release_at_;             // Free event -> index of its release (by object)
  std::vector<uint32_t> held_;                   // event -> set of locks its thread holds exclusively before it
  std::vector<std::vector<uint32_t>> sets_;      // the sets
  std::vector<uint8_t> matters_;                 // by atom
  std::vector<uint8_t> input_atom_, input_expr_; // by atom, by expression: an input may change it
  std::vector<uint32_t> last_use_;               // by event
};

}  // namespace stem::predictor
