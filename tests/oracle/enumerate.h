// Brute force: every execution of a small trace, by the rules of docs/soundness.md, one event at a time.
//
// Written to be read next to that page, not to be fast: the state of an execution is kept whole (positions of the threads,
// memory with the last writer of every byte, values read, waiters that a signal went to), every enabled event of every
// thread is tried, and a state seen before is not expanded again.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "predictor/witness.h"
#include "trace/event.h"

namespace stem::oracle {

using predictor::EventPair;
using InputVector = std::vector<std::vector<uint8_t>>;  // bytes of each input of the trace

struct Truth {
  std::set<EventPair> prefix;
  std::set<EventPair> full;
  std::set<uint32_t> alternates;  // branches, pins, assertions that some execution reaches and decides otherwise
  size_t states = 0;
};

// Over all given inputs. Nothing if more than `limit` states were reached: then nothing was proved.
std::optional<Truth> enumerate(const trace::Trace& trace, const std::vector<InputVector>& inputs, size_t limit);

}  // namespace stem::oracle
