// What an exploration remembers of a version, besides runs and verdicts: the tests that are still to run, what is known about
// branches, and its figures. Every call is one transaction, so that a killed exploration goes on where it was.
#pragma once

#include <string>
#include <vector>

#include "db/store.h"

namespace stem::db {

struct StoredRun {
  int64_t id = 0;
  std::string trace_path, trace_hash, paths, visible, outcome;
  bool analysed = false;
};

struct StoredTest {
  int64_t id = 0;
  Test test;
};

struct StoredNegation {
  int64_t run = 0;
  uint32_t event = 0, ask = 0;
  std::string state;  // feasible, infeasible, unknown
  bool bounded = false;
  std::string detail;
  int64_t test = 0;   // 0: none
};

struct StoredPair {
  uint64_t def = 0;   // site key; 0: the initial value, 1: a write without a site (an input)
  uint64_t use = 0;
  std::string variable;
  bool seen = false;                 // in a run
  bool predicted = false;            // a witness exists
  int64_t test = 0;                  // of the witness, 0: none
};

struct Figures {
  std::string goal = "pairs";
  int64_t executions = 0, repeated = 0, minimising = 0, diverged = 0;
  double seconds = 0, solver_seconds = 0;
  int64_t memory_kb = 0;
  std::string ended;  // empty: under way, or killed
};

class Exploration {
 public:
  // Makes the version's row if there is none.
  Exploration(Store& store, const Version& version);

  std::vector<StoredRun> runs();
  std::vector<StoredPair> pairs();
  std::vector<StoredNegation> negations();
  std::vector<StoredTest> pending();      // highest priority first
  bool static_done();

  // A test that is there already keeps its status; `fresh` tells.
  int64_t add_test(const Test& test, bool* fresh = nullptr);
  int64_t find_test(const std::string& json);  // 0: none
  // Ran as it should ("done") or not ("diverged", with where): so are the witnesses it belongs to.
  void end_test(int64_t test, bool followed, const std::string& detail = "", const std::string& failure = "");
  // Not needed any more: another run showed what it was for.
  void drop_test(int64_t test);

  void add_negation(const StoredNegation& negation);
  // The finding gets a (smaller) test.
  void set_finding_test(const std::string& fingerprint, const Test& test, int64_t switches);

  bool known(Figures& figures);           // from earlier sessions; false: this is the first
  void set(const Figures& figures);

 private:
  Store& store_;
  int64_t version_ = 0, program_ = 0;
};

}  // namespace stem::db
