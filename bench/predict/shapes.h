// Traces of four shapes, of any length, with the same sites and variables whatever their length: as if one program ran longer.
// The same seed gives the same run; a longer one begins like a shorter one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/event.h"

namespace stem::bench {

struct Shape {
  const char* name;
  trace::Trace (*generate)(uint32_t shared_events, uint64_t seed);
};

trace::Trace locked(uint32_t shared_events, uint64_t seed);      // counters under their mutexes
trace::Trace queue(uint32_t shared_events, uint64_t seed);       // producers and consumers; branches on what they read
trace::Trace phased(uint32_t shared_events, uint64_t seed);      // array code in phases between barriers
trace::Trace random(uint32_t shared_events, uint64_t seed);      // unprotected accesses, some of them branched on

inline const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{"locked", locked}, {"queue", queue}, {"phased", phased}, {"random", random}};
  return all;
}

}  // namespace stem::bench
