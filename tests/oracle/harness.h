// Compares a predictor with the brute force on random programs; a program on which they differ is shrunk and saved.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "encoder/encoder.h"
#include "oracle/enumerate.h"
#include "oracle/program.h"

namespace stem::oracle {

using encoder::Meaning;

// Something that predicts pairs. It may throw; that counts as a failure. Pairs on tainted objects are not compared.
struct Subject {
  std::string name;
  std::function<std::set<EventPair>(const trace::Trace& trace, Meaning meaning)> predict;
  bool prefix = true, full = true;  // which meanings it knows
  // Which branches, pins and assertions can be decided otherwise; empty: it does not say.
  std::function<std::set<uint32_t>(const trace::Trace& trace)> alternates = {};
};

struct Plan {
  uint64_t first_seed = 1;
  size_t programs = 1000;
  size_t limit = 40000;      // states of one program; a larger one is skipped, and another takes its place
  std::string save = ".";    // folder for shrunk failures
};

struct Tally {
  size_t programs = 0, skipped = 0, failures = 0;
  size_t events = 0, states = 0, prefix_pairs = 0, full_pairs = 0, observed = 0, deadlocks = 0;
  size_t alternates = 0;
  size_t sampled_runs = 0, sampled_pairs = 0, sampled_alternates = 0;  // of the oracle against executions of the programs themselves
  double subject_seconds = 0, oracle_seconds = 0;
};

Tally compare(const Plan& plan, const Subject& subject);

// The oracle itself against the programs: every flow that a random execution shows while all threads follow their recorded
// events must be in its PREFIX set. Says what is wrong, or nothing.
std::optional<std::string> sample(const Program& program, const trace::Trace& trace, const Truth& truth, uint64_t seed,
                                  size_t runs, Tally& tally);

// Is the pair on an object that code nobody recorded has written?
bool on_tainted_object(const trace::Trace& trace, const EventPair& pair);

// The flows of the recording itself.
std::set<EventPair> observed_pairs(const trace::Trace& trace);

// All pairs of a write (or the initial value) and a read that share a byte.
std::set<EventPair> candidates(const trace::Trace& trace);

}  // namespace stem::oracle
