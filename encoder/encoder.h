// A trace as constraints, after the paper: order, semantics, matching, def-use (docs/soundness.md). One file each:
//
//   order_program.cpp    program order, create/join, allocation and release, end of the run
//   order_locks.cpp      mutexes, atomic sections, read-write locks
//   order_cond.cpp       condition variables with signal/broadcast matching
//   order_sync.cpp       semaphores, barriers, once
//   start.cpp            what a window that begins inside the trace begins with
//   terms.cpp            bit-vector expressions, opaque values
//   semantics.cpp        branches and pins
//   matching.cpp         which write each byte of each read takes
//   defuse.cpp           the pair that is asked for
//   alternate.cpp        the branch that is to go the other way
//   paper.cpp            the paper's formula, literally, as the baseline
//
// An Encoder is one formula over a scope of the trace, built once; a pair is asked by assumption, so pairs share what the
// solver has learnt. Encoding is cheap, solving is not: give it
// the smallest scope that is known to matter. Z3 does not appear in this header.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "encoder/index.h"
#include "trace/event.h"

namespace stem::encoder {

constexpr uint32_t kInitial = trace::kNone;  // the definition that was there from the start

// What "feasible" asks of the rest of the trace (docs/soundness.md).
enum class Meaning : uint8_t {
  Prefix,  // only what comes before r executes as recorded; what r reads and all after it is free
  Full,    // the whole trace still executes
};

struct Options {
  Meaning meaning = Meaning::Prefix;
  bool paper = false;          // the paper's formula, FULL, with a fresh solver for every pair
  unsigned timeout_ms = 5000;  // per pair, and for building the formula; 0: none
  std::string dump;            // folder that every query is written to as <name>.smt2; empty: none
  const std::atomic<bool>* interrupt = nullptr;  // set: building the formula is given up; a question is by interrupt()
  bool free_inputs = true;     // false: inputs keep their recorded values
  bool incremental = true;     // one solver for all pairs; false: a fresh one each (better from about 400 events)
};

// Which events may execute before r: for each thread a prefix of its recorded events from `first` on, closed under what must
// come before them (creation of the thread, all events of a joined thread, arrivals at a barrier, allocation, ...). All events
// before `first` have executed as recorded: memory, owners of locks, counts and values computed by then are constants, inputs
// keep their recorded values. SAT within a scope is SAT; UNSAT is UNSAT within the scope only, unless it leaves out
// nothing but what can only come after r.
struct Scope {
  std::vector<uint32_t> events;  // in recorded order, none before `first`; empty: all events of the trace
  uint32_t target = trace::kNone;  // the branch, assertion, pin or read that negate() will ask about
  uint32_t first = 0;              // PREFIX only
  std::string name;                // added to the names of its queries
};

// What a branch is to decide instead of what it decided in the recording: `value`, or anything else, but none of `avoid`.
struct Wish {
  std::optional<uint64_t> value;
  std::vector<uint64_t> avoid;
  // Besides, of each of these groups of events at least one executes before the branch.
  std::vector<std::vector<uint32_t>> some_before = {};
};

struct Answer {
  enum class Kind : uint8_t { Feasible, Infeasible, Unknown };
  Kind kind = Kind::Unknown;
  std::string name;                  // of the query: "pair_w12_r30"
  std::string reason;                // Unknown: why ("timeout", "canceled", ...)
  std::vector<uint32_t> schedule;    // Feasible: events in order from the program's start, up to and with r (PREFIX), or all (FULL)
  std::vector<trace::Input> inputs;  // Feasible
  double seconds = 0;                // encoding and solving
};

class Encoder {
 public:
  // Keeps a reference to the index (or to the trace, of which it makes one).
  Encoder(const Index& index, Options options, Scope scope = {});
  Encoder(const trace::Trace& trace, Options options);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Can r take at least one byte from w (kInitial: from the start)? r must be in the scope; w may come before it. Throws
  // UserError when options.dump cannot be written.
  Answer decide(uint32_t w, uint32_t r);

  // Can the scope's target be reached, and then decide as wished? PREFIX with the target as r: what executes before it
  // executes as recorded, it and all after it is free. The schedule ends with the target. Pins of a read-modify-write are asked
  // about together with it: they do not bind when one of them is the target.
  Answer negate(const Wish& wish);

  // From here on a question may take so long; 0: for ever.
  void set_timeout(unsigned ms);
  // Makes a decide() that another thread is in return Unknown soon.
  void interrupt();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stem::encoder
