// What the checker needs to know of a trace before it can judge witnesses: computed once, in one pass over the recording.
// Internal to the checker.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "predictor/checker.h"

namespace stem::predictor {

using CheckedPlace = std::pair<uint32_t, uint64_t>;  // object and address: a byte, or a synchronisation object
struct CheckedPlaceHash {
  size_t operator()(const CheckedPlace& p) const { return (p.second * 0x9e3779b97f4a7c15ull) ^ p.first; }
};
template <typename T>
using ByPlace = std::unordered_map<CheckedPlace, T, CheckedPlaceHash>;

// The recorded order itself, as far as its values were found right. What begins as the recording did need not be executed again up to
// where it leaves it: memory is then what the recording left there, and only synchronisation is followed.
struct CheckedRecording {
  struct Turn {
    uint32_t event, position;                    // position in its thread
  };
  uint32_t holds_until = 0;                      // the first event that is not as the rules have it, or the trace's end
  std::vector<Turn> synchronisation;
  ByPlace<std::vector<uint32_t>> writes;         // by word of eight bytes
  std::vector<uint32_t> reads_until;             // by expression: 1 + the last read that it depends on; 0: none
};

struct Checker::Static {
  // One generation of a barrier.
  struct Generation {
    uint32_t arrivals = 0;
    trace::ThreadId serial = trace::kNone;  // was told to be the serial one
    uint32_t previous = trace::kNone;       // the generation that must be complete before
  };
  // How many of its like the recording has before an event that keeps its recorded order with them.
  struct Rank {
    uint32_t inits = 0, uses = 0;           // semaphore, barrier: initialisations, and all uses with them
    uint32_t begins = 0, ends = 0;          // once
    uint32_t generation = trace::kNone;     // barrier: index into generations
  };

  Static(const trace::Trace& trace, uint32_t much);

  std::vector<uint64_t> recorded;                // by expression
  std::vector<std::vector<uint32_t>> threads;    // by thread: its events
  std::vector<uint32_t> creator;                 // by thread: the Create that names it
  ByPlace<uint8_t> first_read;                   // bytes that were read before anything wrote them
  std::unordered_map<uint32_t, std::vector<uint32_t>> source;  // by tainted read: where each byte came from
  std::unordered_map<uint32_t, Rank> rank;       // by event
  std::vector<Generation> generations;
  ByPlace<int64_t> start_count;                  // semaphores that nothing initialised
  const uint32_t much;
  mutable std::once_flag recording_known;        // for the first witness that begins with much of it
  mutable CheckedRecording recording;

 private:
  struct Pass;
};

}  // namespace stem::predictor
