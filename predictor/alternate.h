// Alternate branches: an input and a schedule that lead one branch of a recorded run the other way.
//
// For a branch event b of a trace: is there an execution of prefixes of the recorded per-thread paths (docs/soundness.md) that
// ends just before b, and in which b's condition has another value? Inputs are free, the order is free; every branch, pin,
// assertion and pinned read that executes before b keeps its outcome; nothing at or after b binds. An assertion (kind
// Assert) and a pin can be asked about in the same way: what makes the assertion fail, what gives the pinned value another.
//
// Cheapest answer first: the recorded order with other inputs (bit-vectors only), the same with only what b needs executed,
// then the order free as well. Every feasible answer is re-executed by predictor/checker.h, which shares nothing with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "predictor/verdict.h"
#include "trace/test_file.h"

namespace stem::predictor {

struct AlternateOptions {
  unsigned query_ms = 5000;                      // for one question to the solver
  uint32_t largest = 3000;                       // events: with more than these in question the order stays as recorded
  unsigned limits_ms = UINT32_MAX;               // for asking what bounds refutations, of one trace; then everything pinned does
  bool cut = false;                              // the trace is the beginning of a longer one
  bool reorder = true;                           // false: the recorded order is kept, only inputs change
  std::string dump;                              // folder for the solver's queries; empty: none
  const std::atomic<bool>* interrupt = nullptr;  // set: answer Unknown soon
};

// What the branch is to decide instead: {} anything but what it decided in the recording, {.value = 3} that case of a switch,
// {.avoid = {1, 2}} none of these either; some_before: events of which one of each group is to execute before it.
using encoder::Wish;

struct Alternate {
  enum class Kind : uint8_t { Feasible, Infeasible, Unknown };
  Kind kind = Kind::Unknown;
  uint32_t branch = trace::kNone;  // the event that was asked about
  uint64_t value = 0;              // Feasible: what it decides then

  // Infeasible. Not bounded: no execution that goes the recorded way up to this branch decides it differently, whatever the
  // inputs and the schedule. Bounded: something was held fixed that the program may change (limit says what), or only a part
  // of the trace was looked at; then it is no proof for the program.
  bool bounded = false;
  std::string limit;               // bounded: for people, "the value read at a.c:12 is pinned"

  Why why = Why::NotTried;         // Unknown
  std::string detail;              // Unknown: a clause for people

  Witness witness;                 // Feasible; its schedule ends with the branch event, pair.read names it too
  bool same_order = false;         // Feasible: the schedule keeps the recorded order, only inputs differ
  Layer layer = Layer::None;
  double seconds = 0;              // of the solver
};

class Alternates {
 public:
  // Keeps a reference to the trace.
  explicit Alternates(const trace::Trace& trace, AlternateOptions options = {});
  ~Alternates();
  Alternates(const Alternates&) = delete;
  Alternates& operator=(const Alternates&) = delete;

  // branch: a Branch, Assert or Pin event. Not for several threads at once; make one object a thread.
  Alternate negate(uint32_t branch, const Wish& wish = {});

  // The same by another order alone, with the inputs as recorded. Infeasible is always bounded then.
  Alternate reorder(uint32_t branch, const Wish& wish = {});
  // Whether inputs and order may both lead it the other way.
  bool mixed(uint32_t branch) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The branch events worth asking about, in recorded order: of those with the same site, thread and outcome the first and the
// last few, `per_site` altogether (a loop has many alike).
std::vector<uint32_t> branches_of(const trace::Trace& trace, uint32_t per_site = 4);

// (alpha, beta): the inputs and the visible operations up to the branch. After them the run is free.
trace::Test test_of(const trace::Trace& trace, const Alternate& alternate);

// What became of it on the real program.
enum class Taken : uint8_t {
  Yes,       // that branch instance was reached and decided as wished
  Same,      // it was reached and decided as in the recording (or otherwise than wished)
  NotReached // the run never came there
};
// The branch instance in another run: same thread (creation path), same site, same occurrence of that site in that thread.
Taken took(const trace::Trace& run, const trace::Trace& trace, uint32_t branch, const Wish& wish = {});

}  // namespace stem::predictor
