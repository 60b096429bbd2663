// What static analysis says about a whole program, as plain data: which definitions may reach which reads, and which branch
// outcomes escort them. An over-approximation: every pair an execution can show is among the potential pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/program.h"

namespace stem::analysis {

constexpr uint32_t kInitial = UINT32_MAX;  // "site" of the initial definition of a variable

struct StaticSite {
  uint64_t key = 0;
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string function;
  std::string text;
};

struct PotentialPair {
  uint32_t def = kInitial;  // index into Result::sites
  uint32_t use = 0;
  std::string variable;
  bool cross_thread = false;  // may the two be executed by different threads?
  auto operator<=>(const PotentialPair&) const = default;
};

// One outcome of a branch. A two-way branch: 1 true, 0 false; a switch: the case value, or the default.
struct BranchOutcome {
  uint32_t site = kInitial;  // index into Result::sites; kInitial: the program's start, which escorts initial definitions
  int64_t outcome = 0;
  bool is_default = false;
  auto operator<=>(const BranchOutcome&) const = default;
};

struct EscortPair {
  BranchOutcome def, use;
  auto operator<=>(const EscortPair&) const = default;
};

struct ThreadInfo {
  std::string entry;
  bool many = false;
};

struct Result {
  std::vector<StaticSite> sites;
  std::vector<ThreadInfo> threads;
  std::vector<PotentialPair> pairs;
  std::vector<EscortPair> escorts;           // the paper's, and ours with initial definitions (def.site == kInitial)
  std::vector<uint32_t> dead_definitions;    // writes of shared variables that no read may see
  size_t instructions = 0, pointer_nodes = 0, shared_objects = 0;
};

// Analyses the bitcode inside an executable built by stem-cc. Throws UserError if there is none.
Result analyze_program(const trace::Program& program);

// The same on modules given directly (bitcode or textual IR), for tests. Sites are the instructions with !stem.site metadata, or,
// when `every_access` is set, all of them, named by file and line.
Result analyze_modules(const std::vector<std::string>& modules, bool every_access);

}  // namespace stem::analysis
