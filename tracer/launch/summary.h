// What a trace says about its run as a whole, without holding its events in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/event.h"

namespace stem::launch {

struct Summary {
  trace::Trace names;                 // meta, threads, sites, objects, inputs; no events and no expressions
  uint64_t events = 0;
  trace::Outcome outcome = trace::Outcome::Truncated;
  int code = 0;                       // exit code, or the signal
  bool whole = true;                  // false: the file ends early, what is readable of it was read
  std::vector<std::string> messages;  // JSON, see tracer/launch/message.h
};

// Throws UserError when it is no trace, or one of another version.
Summary summarize(const std::string& trace);

}  // namespace stem::launch
