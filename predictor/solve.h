// Z3 for what the engine leaves: first over the events that the instance needs (enough for a witness), then, if these say
// no, over all that could matter (enough for a refutation).
#pragma once

#include "predictor/worker.h"

namespace stem::predictor {

enum class SolveMode : uint8_t { Left, Paper };

struct Solved {
  std::optional<Witness> witness;
  uint64_t asked = 0, refuted = 0;   // instances
  uint64_t queries = 0;
  double seconds = 0;
  Why why = Why::SolverGaveUp;       // if neither
  std::string detail;
};

Solved solve_instances(const Shared& shared, std::vector<EventPair> instances, SolveMode mode);

// Every event pair of a static pair.
std::vector<EventPair> all_instances(const Model& model, const Candidates& candidates, uint32_t pair);

}  // namespace stem::predictor
