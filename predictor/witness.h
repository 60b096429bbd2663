// A witness: an input and a schedule prefix under which read r takes (at least one byte of) its value from write w.
//
// The schedule is a list of events of the trace, in the order in which they execute; per thread it is a prefix of the
// thread's recorded events, and its last event is r. Invisible events (branches, pins, allocations) are in it like all
// others. docs/soundness.md says what makes such a list an execution; predictor/checker.h decides it without Z3.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trace/event.h"
#include "trace/test_file.h"

namespace stem::predictor {

// The definition that was there from the start: the initialiser, the allocation, or the program's start.
constexpr uint32_t kInitial = trace::kNone;

// One flow between two events of a trace.
struct EventPair {
  uint32_t write = kInitial;  // index of a Write, Rmw or External event, or kInitial
  uint32_t read = 0;          // index of a Read or Rmw event
  bool operator==(const EventPair&) const = default;
  auto operator<=>(const EventPair&) const = default;
};

// A signal that wakes a waiter: the Signal event and the Wake event of the waiter. A broadcast wakes all, unnamed.
struct Wakeup {
  uint32_t signal = 0;
  uint32_t wake = 0;
  bool operator==(const Wakeup&) const = default;
};

// The order of a recorded run's visible events, and what the outside world answered: enough to repeat its beginning.
struct RecordedRun {
  struct Turn {
    trace::ThreadId thread = 0;
    uint32_t count = 0;     // visible events
    trace::SiteId site = 0; // of the last of them
    uint32_t wakes = 0;     // 1 + thread that it wakes; 0: nobody
    trace::Kind kind = trace::Kind::Start;
  };
  std::vector<Turn> turns;
  std::vector<trace::Answer> feed;

  void add(const trace::Event& event, size_t threads);  // the next visible one
};

struct Witness {
  EventPair pair;
  std::vector<trace::Input> inputs;  // as many as the trace has, with the same names and sizes
  std::vector<uint32_t> schedule;    // ends with pair.read (PREFIX), or holds every event of the trace (FULL)
  std::vector<Wakeup> wakeups;       // at least for every scheduled Wake that needs a signal and gets no broadcast
  // Of a part of a long trace (long_trace.h): the schedule follows so many visible events of the run, executed as recorded.
  std::shared_ptr<const RecordedRun> run = nullptr;
  uint64_t after = 0;
};

// Fills in `wakeups`: each signal goes to the waiter whose Wake comes first in the schedule, or to one that the schedule
// leaves waiting, rather than to one that is to time out. Earliest deadline first finds a matching whenever there is one;
// where there is none, the checker says so.
void assign_wakeups(const trace::Trace& trace, Witness& witness);

}  // namespace stem::predictor
