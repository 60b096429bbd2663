// What static analysis says about a whole program, as plain data: which definitions may reach which reads, and which
// branch outcomes escort them. An over-approximation: every pair an execution can show is among the potential pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "static/facts.h"
#include "trace/program.h"

namespace stem::analysis {

constexpr uint32_t kInitial = UINT32_MAX;  // "site" of the initial definition of a variable

// One outcome of a branch. A two-way branch: 1 true, 0 false; a switch: the case value as a Branch event has it
// (extended with zeros), or the default, which is every other value.
struct BranchOutcome {
  uint32_t site =
      kInitial;  // index into Result::sites; kInitial: the program's start, which escorts initial definitions
  int64_t outcome = 0;
  bool is_default = false;
  auto operator<=>(const BranchOutcome&) const = default;
};

enum class SiteKind : uint8_t { Access, Branch };

struct StaticSite {
  uint64_t key = 0;
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string function;
  std::string text;
  SiteKind kind = SiteKind::Access;
  std::vector<BranchOutcome> escorts;  // the outcomes that inevitably lead here; none: it runs whatever branches decide
};

struct PotentialPair {
  uint32_t def = kInitial;  // index into Result::sites
  uint32_t use = 0;
  std::string variable;
  bool cross_thread = false;  // may the two be executed by different threads?
  bool shared = false;        // a global, or memory that several threads may use
  auto operator<=>(const PotentialPair&) const = default;
};

// What an outcome of a branch inevitably leads to: B_p of the theory. Branches are among the sites, so chains can be
// followed.
struct Dominated {
  BranchOutcome outcome;
  std::vector<uint32_t> sites;
};

struct EscortPair {
  BranchOutcome def, use;
  auto operator<=>(const EscortPair&) const = default;
};

struct ThreadInfo {
  std::string entry;
  bool many = false;
};

// A variable with so many potential pairs that they are not (all) listed.
struct Unlisted {
  std::string variable;
  uint64_t pairs = 0;  // at most
};

struct Result {
  std::vector<StaticSite> sites;  // accesses and branches of code that some thread may run; keys are unique
  std::vector<ThreadInfo> threads;
  std::vector<PotentialPair> pairs;  // sorted by variable, use, definition
  std::vector<EscortPair>
      escorts;  // of pairs on shared variables: the paper's, and ours with initial definitions (def.site == kInitial)
  std::vector<Dominated> dominated;        // by outcome
  std::vector<uint32_t> dead_definitions;  // writes of shared variables that no read may see
  std::vector<Unlisted> unlisted;          // most pairs first
  bool escorts_cut = false;                // more escort pairs than are listed
  Facts facts;                             // knows about pairs that are not listed, too
  size_t instructions = 0, pointer_nodes = 0, shared_objects = 0;

  // No escort pair stands for this pair: its read or its write runs whatever branches decide.
  bool bare(const PotentialPair& pair) const;
};

struct Limits {
  size_t pairs = 300000, escorts = 300000;  // listed at most
};

// Analyses the bitcode inside an executable built by stem-cc. Throws UserError if there is none.
Result analyze_program(const trace::Program& program, const Limits& limits = {});

// The same on modules given directly (bitcode or textual IR), for tests. Sites are the instructions with !stem.site
// metadata, or, when `every_access` is set, all of them, named by file and line.
Result analyze_modules(const std::vector<std::string>& modules, bool every_access, const Limits& limits = {});

}  // namespace stem::analysis
