// A trace that is too long to be held in memory, as parts that overlap. Each part is a trace in its own right: what
// still matters of everything before it (prologue.h), then a stretch of the run. Sites, threads, variables and inputs
// have the numbers that they have in the whole trace, events, objects and expressions numbers of their own.
//
// What an expression took from before the part is a constant: up to there the run is as recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trace/event.h"

namespace stem::predictor {

struct Part {
  trace::Trace trace;
  uint32_t from = 0;               // the events before it are the prologue
  uint64_t first = 0;              // number of the event at `from` in the whole trace
  uint64_t operations = 0;         // visible events of the whole trace before that one
  std::vector<uint64_t> prologue;  // numbers of the prologue's events
  std::vector<uint32_t> objects;   // numbers of its objects
  bool last = false;               // reaches the end of the run
  bool calm = true;                // at its start nobody who was signalled is still on the way out of a wait

  uint64_t number(uint32_t event) const { return event < from ? prologue[event] : first + (event - from); }
};

struct PartOptions {
  uint64_t size = 0;     // events
  uint64_t overlap = 0;  // that a part shares with the next one
};

// For a trace that ends before its run does: an update whose own pins may be missing (docs/soundness.md, path) keeps
// its value.
void hold_last_updates(trace::Trace& trace);

// Reads the trace and calls `use` for every part that is `wanted` (at most the events [first, end)); `use` says whether
// to go on.
void each_part(const std::string& path, const PartOptions& options,
               const std::function<bool(uint64_t first, uint64_t end)>& wanted,
               const std::function<bool(Part&& part)>& use);

}  // namespace stem::predictor
