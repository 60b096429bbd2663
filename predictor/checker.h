// Re-executes a witness on the trace's own semantics, without Z3 and without a line of the engine that found it.
//
// It walks the schedule event by event with a concrete memory, lock, condition and semaphore state, evaluates expressions
// with the values actually read along the way, and refuses at the first event that could not happen then and there. The
// rules are those of docs/soundness.md. Linear in the schedule (times the size of the expressions it evaluates); the recorded order itself
// is executed once, and a witness that begins with much of it goes on from there: only its synchronisation is followed again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "predictor/verdict.h"

namespace stem::predictor {

struct Rejection {
  uint32_t step = 0;     // position in the schedule
  std::string reason;    // "thread main/1 locks m, which main/2 holds"
};

// Nothing: the witness is good. Set-up (memory at the start, objects, barrier groups) is computed once per trace.
class Checker {
 public:
  // `much`: so many events in the recorded order at a witness's beginning are worth not being executed again.
  explicit Checker(const trace::Trace& trace, uint32_t much = 4096);
  ~Checker();
  Checker(Checker&&) noexcept;
  std::optional<Rejection> check(const Witness& witness, Meaning meaning = Meaning::Prefix) const;

  // A witness whose schedule ends with a branch, assertion or pin (pair.read) that is to decide otherwise than recorded. What
  // it decides is put into `decided`.
  std::optional<Rejection> check_alternate(const Witness& witness, uint64_t& decided) const;

 private:
  friend class WitnessRun;
  struct Static;
  const trace::Trace& trace_;
  std::unique_ptr<const Static> static_;
};

}  // namespace stem::predictor
