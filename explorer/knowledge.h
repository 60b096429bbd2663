// What an exploration knows of a program's pairs: the potential ones of static analysis, which of them were found (the
// set Gamma), and which escort branch pairs are still to cover (the set Sigma). In memory only: explorer/loop.cpp keeps
// it in the database, and fills it from there when an exploration goes on.
//
// Static and recorded pairs are matched by the keys of their two sites, and by the variable's name where static
// analysis and recorder agree on it: a local that the optimiser left nameless is one variable to the former.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "static/analysis.h"
#include "trace/event.h"

namespace stem::explorer {

constexpr uint64_t kInitialKey = 0;  // "definition" of the initial value
constexpr uint64_t kInputKey = 1;    // a write without a site: what stem_input() put there

struct PairKey {
  uint64_t def = kInitialKey, use = 0;  // site keys
  std::string variable;
  auto operator<=>(const PairKey&) const = default;
};

enum class Sigma : uint8_t { Ours, Paper };  // with and without initial definitions

class Knowledge {
 public:
  Knowledge(analysis::Result result, Sigma sigma);

  struct Potential {  // on a variable that several threads may use
    uint32_t def = analysis::kInitial, use = 0;
    std::string variable;
    bool found = false;
    bool refuted = false;  // for the whole program
    std::string bound;     // not found: what the search met
  };
  struct Escort {
    analysis::EscortPair pair;
    std::optional<PairKey> by;  // covered
    bool infeasible = false;    // every pair it stands for is refuted
    bool open() const { return !by && !infeasible; }
  };
  struct Found {
    bool seen = false;       // a run showed it
    bool predicted = false;  // an analysis did, before any run
    bool diverged = false;   // its witness was run and did not show it
  };

  const analysis::Result& program() const { return program_; }
  std::vector<Potential>& potential() { return potential_; }
  const std::vector<Potential>& potential() const { return potential_; }
  const std::vector<Escort>& escorts() const { return escorts_; }
  const std::map<PairKey, Found>& found() const { return found_; }

  // Adds a pair to Gamma. What that covers of Sigma is returned, as indices into escorts().
  std::vector<size_t> seen(const PairKey& pair);
  std::vector<size_t> predicted(const PairKey& pair);
  void diverged(const PairKey& pair);
  const Found* find(const PairKey& pair) const;

  // Worth asking an analysis about: possible as far as the source says, and not found.
  bool wanted(uint64_t def, uint64_t use, const std::string& variable) const;
  // Whether the use is one of a variable that several threads may use.
  bool shared(uint64_t use) const { return shared_uses_.contains(use); }

  // Whether the site is the definition or the use of such a pair.
  bool concerns(uint32_t site) const { return shared_sites_.contains(site); }

  size_t open_pairs() const { return open_; }
  size_t open_escorts() const;
  void refute_rest();  // everything not found is infeasible
  void give_up_rest(const std::string& bound);

  // Sites that static analysis knows, by key; kNone if it does not.
  uint32_t site(uint64_t key) const;
  // The outcome of a branch event as static analysis names it.
  std::optional<analysis::BranchOutcome> outcome(uint64_t site_key, uint64_t value) const;

  // The open pairs that an execution may show which has executed `sites`, if the branch went that way as well.
  size_t gain(const std::set<uint32_t>& sites, const analysis::BranchOutcome& outcome) const;
  // WS of the theory: the open escort pairs of this outcome and one of `others` (or the initial definitions).
  std::vector<size_t> open_with(const analysis::BranchOutcome& outcome,
                                const std::set<analysis::BranchOutcome>& others) const;

 private:
  std::vector<size_t> cover(const PairKey& pair);
  std::vector<size_t> matching(uint64_t def, uint64_t use, const std::string& variable) const;

  analysis::Result program_;
  std::vector<Potential> potential_;
  std::vector<Escort> escorts_;
  std::map<PairKey, Found> found_;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<size_t>> by_sites_;  // potential pairs by the keys of their sites
  std::unordered_map<uint64_t, uint32_t> by_key_;
  std::set<uint64_t> shared_uses_;
  std::set<uint32_t> shared_sites_;
  std::map<analysis::EscortPair, size_t> escort_index_;
  std::map<analysis::BranchOutcome, std::vector<size_t>> touched_;  // potential pairs with a site that it leads to
  std::map<analysis::BranchOutcome, std::set<uint32_t>> leads_to_;
  std::set<analysis::BranchOutcome> outcomes_;
  std::set<std::string> names_;  // of variables, as runs gave them
  size_t open_ = 0;
};

}  // namespace stem::explorer
