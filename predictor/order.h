// A partial order over the events of a window, kept transitively closed, with undo and with reasons.
//
// Threads are chains, so the closure needs only, for each event and each other thread, the first event there that must
// come after it (succ) and the last that must come before it (pred). Both are monotone along a chain: a new edge a -> b
// updates, for each pair of threads, a run of cells that stops at the first one that knew better. Asking costs one look.
//
// Every cell carries the set of decisions it rests on, as a bit mask, so that a conflict names its culprits and the search
// jumps back over decisions that had no part in it. Decisions deeper than 62 share the last bit.
//
// An edge a -> b means: if b executes, a has executed before it.
#pragma once

#include <cstdint>
#include <vector>

#include "predictor/model.h"

namespace stem::predictor {

using Reasons = uint64_t;  // one bit a decision level
inline Reasons reason_of(unsigned level) { return uint64_t{1} << (level < 63 ? level : 63); }

// The events [first, last) of the trace; positions are counted from the window's start in each thread.
class Window {
 public:
  Window(const Model& model, uint32_t first, uint32_t last);

  const Model& model;
  uint32_t first, last;
  std::vector<uint32_t> base, length;  // by thread: events before the window, events in it

  bool holds(uint32_t event) const { return event >= first && event < last; }
  bool whole() const { return first == 0 && last == model.position.size(); }
  uint32_t thread(uint32_t event) const { return model.trace.events[event].thread; }
  int32_t at(uint32_t event) const {  // position in its thread's part of the window; negative: before the window
    return static_cast<int32_t>(model.position[event]) - static_cast<int32_t>(base[thread(event)]);
  }
  uint32_t event(uint32_t thread, int32_t at) const { return model.events_of[thread][base[thread] + at]; }
};

class Order {
 public:
  static constexpr int32_t kNever = INT32_MAX;

  explicit Order(const Window& window);

  struct Cell {
    int32_t at;
    Reasons why;
  };
  // First position in `thread` that must come after the event (kNever), last that must come before it (-1).
  // Only for a thread other than the event's own.
  const Cell& succ(uint32_t event, uint32_t thread) const { return succ_[(event - window_.first) * threads_ + thread]; }
  const Cell& pred(uint32_t event, uint32_t thread) const { return pred_[(event - window_.first) * threads_ + thread]; }

  bool before(uint32_t a, uint32_t b) const {
    const uint32_t t = window_.thread(b);
    return t == window_.thread(a) ? window_.at(a) < window_.at(b) : succ(a, t).at <= window_.at(b);
  }
  Reasons why_before(uint32_t a, uint32_t b) const {  // of a fact that holds
    const uint32_t t = window_.thread(b);
    return t == window_.thread(a) ? 0 : succ(a, t).why;
  }

  // False: that would be a cycle; conflict() says what it rests on.
  bool add(uint32_t a, uint32_t b, Reasons why);
  Reasons conflict() const { return conflict_; }
  uint64_t version() const { return version_; }  // grows with every change

  size_t mark() const { return trail_.size(); }
  void undo(size_t mark);

 private:
  struct Change {
    Cell* cell;
    Cell old;
  };
  void set(Cell& cell, int32_t at, Reasons why) {
    trail_.push_back({&cell, cell});
    cell = {at, why};
  }

  const Window& window_;
  uint32_t threads_;
  std::vector<Cell> succ_, pred_;
  std::vector<Change> trail_;
  Reasons conflict_ = 0;
  uint64_t version_ = 0;
};

}  // namespace stem::predictor
