// Every candidate event pair of a (small) trace, decided one by one: what the random tests compare with brute force, and
// what the paper's method is measured against. Analyses of real traces ask about static pairs instead (analysis.h).
#pragma once

#include <map>
#include <string>

#include "predictor/verdict.h"

namespace stem::predictor {

struct AllPairsOptions {
  Meaning meaning = Meaning::Prefix;
  bool harvest = true;
  bool check = true;              // put every witness through the checker; a rejected one throws InternalError
  bool enumerate = true;          // walk over all executions, if there are few, where the engine would have to search long
  bool solver = true;             // ask Z3 about what the engine leaves; otherwise that stays unknown
  bool witnesses = false;         // keep them
  uint32_t decisions = 2000;
  unsigned query_ms = 5000;       // for the solver
};

struct LayerCounts {
  uint64_t candidates = 0;
  std::map<Layer, uint64_t> decided;  // by layer
  uint64_t unknown = 0;
  double solver_seconds = 0;
};

// Pairs that share an atom; witnesses in the verdicts only if asked for.
std::map<EventPair, Verdict> decide_all(const trace::Trace& trace, const AllPairsOptions& options, LayerCounts* counts = nullptr);

}  // namespace stem::predictor
