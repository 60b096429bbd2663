// The loop of def-use testing: static analysis says which pairs may exist, executions show some of them, predictions
// find more, and alternate branches lead to executions that nobody has seen; until nothing is left to cover or to run.
//
// The sets of the theory: Gamma (pairs found) and Sigma (escort branch pairs to cover) are explorer/knowledge.h; Omega
// (tests to run) is the table `test`, Tested the signatures of table `run`. Everything is stored as soon as it is
// known, each step in one transaction, so an exploration that was killed goes on where it was, and a later one adds to
// it.
//
// Best first: questions to the solver and tests to run are rated on one scale by what they may show - a failing
// assertion before a deadlock, a branch that went only one way before one that did not, a race before a flow under a
// lock, each less the more often it was tried - and the best is done next. Executions and questions go in rounds of
// `jobs`, and their results are taken in a fixed order, so that an exploration can be repeated.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/exploration.h"
#include "explorer/knowledge.h"
#include "explorer/state.h"
#include "trace/test_file.h"

namespace stem::explorer {

enum class Goal : uint8_t { Pairs, Escort };

// What one execution brought, for people who want to follow: a row of the paper's Table I.
struct Step {
  int64_t execution = 0;
  std::string origin;    // of the test: start, branch, assertion, order, witness
  std::string inputs;    // a=2, b=2, c=3
  std::string schedule;  // main/1 x3, main/2 x1; empty: free
  std::string path;      // 1T, 2, 6F, 9
  bool tested = false;   // its threads did what they did in an earlier one
  std::string divergence, failure;
  std::vector<PairKey> explicit_pairs, implicit_pairs, fresh;
  std::vector<size_t> covered_explicit, covered_implicit;  // indices into Knowledge::escorts()
  std::vector<size_t> open;                                // Sigma after it
  std::vector<size_t> work;                                // WS: what alternate branches may cover
  std::vector<std::string> omega;                          // tests to run after it
};

struct LiveFigures {
  int64_t executions = 0;
  size_t pairs = 0, open_escorts = 0, omega = 0, findings = 0;
  double seconds = 0;
  const char* doing = "";
};

struct LoopOptions {
  trace::Test start;  // program, arguments, inputs, a schedule if there is one
  Goal goal = Goal::Pairs;
  Sigma sigma = Sigma::Ours;
  int64_t runs = 0;                   // executions of this session; 0: no limit
  std::chrono::milliseconds time{0};  // 0: no limit
  unsigned jobs = 0;                  // 0: as many as there are cores
  unsigned query_ms = 2000;           // for one question to the solver
  std::chrono::milliseconds run_timeout{10000};
  uint32_t per_site = 4;  // branches of one site, thread and outcome of a run that are asked about
  bool minimise = true;
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void(const LiveFigures&)> progress;
  std::function<void(const Knowledge&, const Step&)> step;
};

struct FoundFailure {
  std::string kind, message, fingerprint, file, function, text, thread;
  uint32_t line = 0;
  int64_t id = 0, execution = -1, switches = -1;
};

struct LoopResult {
  db::Figures figures;                   // over all sessions
  int64_t executions = 0;                // of this session
  std::vector<FoundFailure> findings;    // over all sessions
  std::vector<std::string> divergences;  // of this session
  std::vector<std::string> limits;       // why what was not found is not refuted
  size_t omega = 0;                      // tests left
  size_t found = 0, explicit_pairs = 0, implicit_pairs = 0, confirmed = 0, not_confirmed = 0;  // on shared variables
  size_t potential = 0, infeasible = 0, unknown = 0;
  size_t escorts = 0, escorts_covered = 0, escorts_infeasible = 0;
  double seconds = 0, solver_seconds = 0;  // of this session
};

// Throws UserError: not a program built by stem-cc, a database that cannot be written, ...
LoopResult explore(const State& state, const LoopOptions& options, std::optional<Knowledge>& known);

}  // namespace stem::explorer
