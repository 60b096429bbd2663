// `stem analyze --branches`: for every branch of a trace whether the other side can be taken, and with what.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "predictor/alternate.h"

namespace stem::cli {

struct BranchOptions {
  predictor::AlternateOptions alternates;
  uint32_t per_site = 4;    // instances of one site, thread and outcome that are asked about
  bool replay = true;       // run each test on the program
  unsigned threads = 0;     // 0: as many as there are cores
  std::string keep;         // folder for the tests, one file a branch; empty: none are kept
};

struct BranchResult {
  enum class Replay : uint8_t { None, Confirmed, Diverged };
  predictor::Alternate alternate;
  uint32_t occurrence = 0;  // which instance of its site in its thread, from 1
  Replay replay = Replay::None;
  std::string detail;       // Diverged: where
  std::string failure;      // Confirmed: how the run went on to fail; empty: it did not
  std::string test;         // file, if it was kept
};

std::vector<BranchResult> try_branches(const trace::Trace& trace, const BranchOptions& options);

std::string render(const trace::Trace& trace, const std::vector<BranchResult>& results);
nlohmann::json to_json(const trace::Trace& trace, const std::vector<BranchResult>& results);

}  // namespace stem::cli
