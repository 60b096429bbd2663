// The loop's state, and what its parts hand each other: loop.cpp decides and runs, loop_results.cpp stores, counts and
// tells.
#pragma once

#include <memory>
#include <set>

#include "explorer/execute.h"
#include "explorer/import.h"
#include "explorer/loop.h"
#include "explorer/orders.h"
#include "explorer/points.h"
#include "tracer/launch/state.h"

namespace stem::explorer {

// The scale on which questions and tests are rated.
constexpr double kAssertion = 1000;    // may fail
constexpr double kOrder = 800;         // may deadlock
constexpr double kAnalysis = 700;      // what a new run implies
constexpr double kFreshOutcome = 400;  // a branch that went only one way so far
constexpr double kRace = 300;          // to confirm: a pair that nothing orders
constexpr double kWaiting = 350;       // everybody who ever waited waits first
constexpr double kShuffle = 250;       // a new input, with threads that take turns all the time
constexpr double kOtherOrder =
    200;  // a branch that went both ways, but not after this beginning, and depends on the order
constexpr double kOtherPath = 100;  // the same, on inputs only
constexpr double kOrderAgain = 90;  // a branch that went both ways, by another order of a run with other inputs
constexpr double kConfirm = 60;     // to confirm: any other pair
constexpr double kDeep = 10;        // another combination of what threads did
constexpr double kPatient = 1;      // a question that took too long
constexpr unsigned kPatience = 8;   // times as long it may take then
constexpr uint32_t kMostAsks = 16;  // about one point of one run

struct Pending {  // a test to run
  int64_t id = 0;
  trace::Test test;
  std::string origin, detail;
  double rating = 0;
  std::vector<PairKey> pairs;        // that it should show
  size_t run = SIZE_MAX, point = 0;  // whose other way it should take
};

struct Question {
  size_t run = 0, point = 0;
  double rating = 0;
  predictor::Wish wish;
  bool order_first = false;  // try other orders before other inputs
  bool order_only = false;
};

class Loop {
 public:
  Loop(const State& state, const LoopOptions& options, Knowledge& known, const db::Version& version);
  LoopResult run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Solver {
    std::shared_ptr<const trace::Trace> trace;
    std::unique_ptr<predictor::Alternates> alternates;
  };

  void load();
  void load_findings();
  bool stop();
  bool step();
  bool goal_reached() const;
  double rate(const RunPoints& run, const Point& point) const;
  double rate(const Pending& pending) const;
  std::vector<size_t> work_of(const RunPoints& run, const Point& point) const;
  void analyse(size_t run);
  void ask(const std::vector<Question>& batch);
  void take(const Question& question, const trace::Trace& trace, const predictor::Alternate& answer);
  void run_tests(const std::vector<size_t>& batch);
  void take(const Pending& pending, Execution& execution);
  void take_finding(const ImportedFinding& finding, trace::Test test, int64_t number);
  void check_branch(const Pending& pending, const trace::Trace& trace, std::string& detail);
  ImportedTrace keep(const Pending& pending, const Execution& execution, int64_t number);
  void add_run(RunPoints run, std::shared_ptr<const trace::Trace> trace);
  void add_orders(const trace::Trace& trace);
  Pending* add_pending(const trace::Test& test, const std::string& origin, const std::string& detail, double rating);
  std::shared_ptr<const trace::Trace> trace_of(size_t run);
  void limit(const std::string& why);
  double seconds() const;
  unsigned within_time(unsigned milliseconds) const;
  void progress(const char* doing);

  // loop_results.cpp
  void begin_step(const Pending& pending, const Execution& execution, int64_t number);
  void note_explicit(const PairKey& pair, const std::vector<size_t>& covered);
  void note_implicit(const PairKey& pair, const std::vector<size_t>& covered);
  void flush_step();
  void store_program(bool complete);
  void save_figures();
  LoopResult result();

  const State& state_;
  const LoopOptions& options_;
  Knowledge& known_;
  launch::State runs_of_;
  db::Store store_;
  db::Exploration memory_;
  db::Version version_;
  const unsigned jobs_;
  const Clock::time_point began_;

  std::vector<RunPoints> runs_;  // one for each way in which threads went
  std::map<size_t, std::shared_ptr<const trace::Trace>> traces_;
  Taken taken_;
  std::set<std::string> paths_, visible_;  // Tested
  std::vector<Pending> pending_;           // Omega
  std::map<int64_t, std::vector<PairKey>> witnesses_;
  std::map<std::pair<uint64_t, uint64_t>, double> tried_;  // questions, by site and outcome
  std::map<std::string, double> confirmed_of_;             // witnesses run, by variable
  std::vector<std::map<size_t, Solver>> solvers_;          // by worker, then run
  std::vector<std::string> limits_, divergences_;
  std::vector<FoundFailure> findings_;
  std::set<std::string> orders_;  // lock orders that were tried
  WaitingOrders waiting_;
  std::set<PairKey> fresh_;  // told of
  std::optional<Step> step_;
  std::set<std::string> shuffled_;  // inputs that were
  std::string kept_;                // the trace that was kept last
  db::Figures earlier_, figures_;
  int64_t executed_ = 0, repeated_ = 0, minimising_ = 0, diverged_ = 0;
  double solver_seconds_ = 0;
  std::string ended_;
};

}  // namespace stem::explorer
