// Executes events of the trace one at a time on a concrete state: memory with its last writers, locks, semaphores, waiters.
//
// The engine's own executor, used to linearise and to harvest; the checker that judges witnesses shares none of it. It
// starts either at the program's start or in the middle of the recording, and is reset in time proportional to the number
// of locks: memory is stamped, not copied. Values are evaluated only once some read differed from the recording. With
// `keep_history` steps can be taken back, at the cost of what they changed.
#pragma once

#include <cstdint>
#include <vector>

#include "predictor/model.h"
#include "util/lazy_array.h"

namespace stem::predictor {

class Machine {
 public:
  explicit Machine(const Model& model);

  // The state after the recorded events before `first`. Cheap when `first` does not go backwards.
  void start(uint32_t first);

  // Threads, objects, synchronisation: may the event come now? (Not: its place in its thread, nor its values.)
  bool possible(uint32_t event) const;

  // Executes the thread's next event. False, and nothing has changed: a value would leave the recorded path; for a read, also
  // at a branch or pin before its thread's next visible event, unless that lies at or beyond position `limit`.
  bool step(uint32_t event, uint32_t limit = UINT32_MAX);

  uint32_t executed(uint32_t thread) const { return executed_[thread]; }  // how many of its events
  const std::vector<uint32_t>& executed() const { return executed_; }
  bool done(uint32_t event) const { return model_.position[event] < executed_[model_.trace.events[event].thread]; }
  uint32_t writer(uint32_t atom) const;                                   // last; kFromStart
  const std::vector<uint32_t>& schedule() const { return schedule_; }     // since `first`
  uint32_t violated() const { return violated_; }  // after a step that failed: the branch, pin or read that was in the way
  bool woken_before(uint32_t thread) const { return woken_at_first_[thread]; }  // a signal went to it before the window
  // A signal goes to the waiter whose Wake this is, if it waits; without a wish, to the one that woke first in the recording.
  void wish(uint32_t signal, uint32_t wake) { wishes_.emplace_back(signal, wake); }
  void clear_wishes() { wishes_.clear(); }

  // Taking steps back. Off by default; switch it on before `start`.
  void keep_history(bool keep) { history_ = keep; }
  struct Mark {
    size_t schedule, cells, reads, sync, woken, memos;
    bool differs;
  };
  Mark mark() const {
    return {schedule_.size(), old_cells_.size(), old_reads_.size(), old_sync_.size(), old_woken_.size(), memos_.size(), differs_};
  }
  void undo(const Mark& mark);

  // What distinguishes two states that have executed the same events.
  struct Content {
    uint32_t writer;
    uint64_t bits;
    bool known;
  };
  Content content(uint32_t atom) const {
    const Cell cell = read_atom(atom);
    return {cell.writer, cell.value.bits, cell.value.known};
  }
  bool woken(uint32_t thread) const { return woken_[thread]; }
  // Calls look(read, bits, known) for every executed read that may differ from the recording.
  template <typename Look>
  void differing_reads(Look look) const {
    for (uint32_t read : old_reads_) look(read, read_value_[read].bits, read_value_[read].known);
  }
  // The Wake events of those blocked at a condition variable whom a signal would help.
  void waiters(uint32_t signal, std::vector<uint32_t>& wakes) const;

 private:
  struct Value {
    uint64_t bits = 0;
    bool known = true;
  };
  struct Sync {  // one synchronisation object
    uint32_t owner = trace::kNone;
    uint32_t readers = 0;
    int32_t count = 0;
  };
  struct Cell {  // one atom
    uint32_t stamp = 0;
    uint32_t writer = kFromStart;
    Value value;
  };

  void follow(std::vector<Sync>& sync, std::vector<uint8_t>& woken, uint32_t event) const;
  void note_sync(uint32_t event);
  void awaken(uint32_t thread) {
    if (history_) old_woken_.emplace_back(thread, woken_[thread]);
    woken_[thread] = 1;
  }
  void drop_memos(size_t size);
  void deliver(uint32_t signal);
  Cell read_atom(uint32_t atom) const;
  Value read(uint32_t event) const;
  Value evaluate(trace::ExprId id);
  Value apply(trace::ExprId id) const;  // its operands are known
  bool holds(uint32_t constraint);
  bool path_ahead(uint32_t event, uint32_t limit);
  void remember(uint32_t event, Value value);
  void forget(uint32_t event);

  const Model& model_;
  uint32_t first_ = 0;
  std::vector<Sync> at_first_, sync_;             // when the window starts, now
  std::vector<uint8_t> woken_at_first_, woken_;   // by thread: a signal went to it
  std::vector<uint32_t> executed_at_first_, executed_;
  bool exited_ = false;
  uint32_t violated_ = kNoEvent;
  bool differs_ = false;                          // some read gave another value than recorded
  std::vector<Cell> memory_;
  LazyArray<uint32_t> read_stamp_;
  LazyArray<Value> read_value_;
  LazyArray<uint32_t> memo_stamp_;
  LazyArray<Value> memo_;
  std::vector<trace::ExprId> stack_;
  uint32_t stamp_ = 0, memo_epoch_ = 0;
  std::vector<uint32_t> schedule_;
  std::vector<std::pair<uint32_t, uint32_t>> wishes_;
  // What steps changed.
  bool history_ = false;
  std::vector<std::pair<uint32_t, Cell>> old_cells_;
  std::vector<uint32_t> old_reads_;
  std::vector<std::pair<uint32_t, Sync>> old_sync_;
  std::vector<std::pair<uint32_t, uint8_t>> old_woken_;
  std::vector<trace::ExprId> memos_;
};

}  // namespace stem::predictor
