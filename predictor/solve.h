// Z3 for what the engine leaves: first over the events that the instance needs (the causal cone: a small formula, enough for a
// witness), then, if these say no, over all events of the window that can come before the read (enough for a refutation
// within it). Instances of one read in one window share a formula, one selector each.
#pragma once

#include <memory>
#include <set>

#include "encoder/index.h"
#include "predictor/cone.h"
#include "predictor/worker.h"

namespace stem::predictor {

struct Solved {
  std::optional<Witness> witness;
  uint64_t given = 0, refuted = 0;   // instances
  uint64_t queries = 0;
  double seconds = 0;
  Why why = Why::SolverGaveUp;       // if neither
  std::string detail;
};

class Solver {
 public:
  Solver(const Shared& shared, const MustOrder& order);

  // Until one is shown. A static pair gets the time of some questions only, however many instances it has.
  Solved solve(const std::set<OpenInstance>& instances) const;
  // The paper's formula over the whole trace.
  Solved solve_as_paper(const std::vector<EventPair>& instances) const;

 private:
  class Asking;
  const Shared& shared_;
  const MustOrder& order_;
  const encoder::Index index_;
  const Cones cones_;
};

// Every event pair of a static pair.
std::vector<EventPair> all_instances(const Model& model, const Candidates& candidates, uint32_t pair);

}  // namespace stem::predictor
