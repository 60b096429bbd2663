// Where a recorded run could have gone another way: its branches, assertions and pins, and what is known about each of
// them.
//
// A point is asked about again and again until the answer is no. The first question is for any other outcome. When a
// run took it, the next question is for an execution that goes the same way at this point, but is not one of those that
// the runs so far stand for: some other thread has gone further than they share with this run. When that is refuted
// too, every execution that follows this run up to the point is covered: this is what makes "infeasible for the
// program" a proof.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "explorer/knowledge.h"
#include "explorer/paths.h"
#include "predictor/alternate.h"

namespace stem::explorer {

struct Point {
  uint32_t event = 0;     // that is asked about
  uint32_t decision = 0;  // that shows how it was decided: of an assertion, the branch behind it
  trace::Kind kind = trace::Kind::Branch;
  std::string thread;          // creation path
  uint32_t position = 0;       // among the thread's events
  uint64_t before = 0;         // rolling hash of what the thread did before it
  uint64_t site = 0;           // key
  uint64_t value = 0;          // what was decided
  bool binary = false;         // there is only one other outcome
  bool shared = false;         // it was decided by what another thread writes too: the order matters
  bool order_refuted = false;  // another order alone does not change it
  bool reordered = false;      // the first answer was another order, with the same inputs
  uint32_t asks = 0;           // answers so far
  bool closed = false;         // nothing more to ask
  bool waiting = false;        // a test is under way
  bool patient = false;        // the solver's time was too short: it gets more when nothing else is left
};

// A run that questions are asked about.
struct RunPoints {
  int64_t run = 0;  // id
  std::string file, hash;
  Paths paths;
  std::set<uint32_t> sites;                    // executed, as static analysis numbers them
  std::set<analysis::BranchOutcome> outcomes;  // taken
  std::vector<Point> points;
  bool analysed = false;
  bool left_out = false;  // there are more branches than these points
  bool cut = false;       // it ended before all its threads did: what they would have done is not known
};

// `most`: with more branches of one site, thread and outcome than that, the first and the last of them are taken.
RunPoints points_of(const trace::Trace& trace, const Knowledge& known, uint32_t most);

// Which outcomes runs have shown after the same beginning of a thread.
class Taken {
 public:
  void add(size_t run, const RunPoints& points);
  struct Way {
    size_t run;
    uint64_t value;
  };
  // Of runs whose thread did the same up to the point, and decided something else there.
  std::vector<Way> others(const Point& point) const;
  bool outcome_seen(uint64_t site, uint64_t value) const { return outcomes_.contains({site, value}); }
  bool other_seen(const Point& point) const;  // any other outcome of its site, in whatever run

 private:
  static uint64_t key(uint64_t before, uint64_t site) { return before * 0x9e3779b97f4a7c15ull ^ site; }
  std::unordered_map<uint64_t, std::vector<Way>> ways_;
  std::set<std::pair<uint64_t, uint64_t>> outcomes_;
  std::unordered_map<uint64_t, std::set<uint64_t>> values_;  // by site
};

// The next question about a point, or nothing: then it is covered. `deep`: there is a run that took the other way
// already.
struct NextWish {
  predictor::Wish wish;
  bool deep = false;
  bool none = false;
};
NextWish next_wish(const std::vector<RunPoints>& runs, const Taken& taken, const RunPoints& run, const Point& point);

}  // namespace stem::explorer
