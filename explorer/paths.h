// What each thread of a run did, one event after the other, as rolling hashes: whether two runs took the same paths,
// and how far two threads went together, are questions about numbers.
//
// Two hashes a run. `visible`: branches, and the order of visible events; equal ones are the same run again. `paths`:
// what every thread did for itself, whatever the order between threads, together with everything that an analysis holds
// fixed (pins, answers of the outside world): what follows from a run by reordering follows from every run with the
// same paths.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/event.h"

namespace stem::explorer {

struct ThreadPath {
  std::vector<uint64_t> rolling;  // [i]: of the thread's first i + 1 events
  std::vector<uint32_t> events;   // their indices in the trace
};

struct Paths {
  std::map<std::string, ThreadPath> threads;  // by creation path
  std::string paths, visible;                 // 32 hex digits each
  // Not empty: why not all executions of these paths are considered, besides pins: those can be asked about, one by
  // one.
  std::string inexact;
};

Paths paths_of(const trace::Trace& trace);

// How many events the two have in common from their start.
size_t common_prefix(const ThreadPath& a, const ThreadPath& b);

}  // namespace stem::explorer
