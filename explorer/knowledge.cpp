#include "explorer/knowledge.h"

#include <algorithm>

namespace stem::explorer {

using analysis::BranchOutcome;
using analysis::kInitial;

Knowledge::Knowledge(analysis::Result result, Sigma sigma) : program_(std::move(result)) {
  for (uint32_t i = 0; i < program_.sites.size(); ++i) by_key_.emplace(program_.sites[i].key, i);
  for (const analysis::PotentialPair& pair : program_.pairs) {
    if (!pair.shared) continue;
    const uint64_t use = program_.sites[pair.use].key;
    by_sites_[{pair.def == kInitial ? kInitialKey : program_.sites[pair.def].key, use}].push_back(potential_.size());
    shared_uses_.insert(use);
    shared_sites_.insert({pair.def, pair.use});
    potential_.push_back({pair.def, pair.use, pair.variable, false, false, ""});
  }
  shared_sites_.insert(program_.dead_definitions.begin(), program_.dead_definitions.end());
  open_ = potential_.size();
  for (const analysis::EscortPair& pair : program_.escorts) {
    if (sigma == Sigma::Paper && pair.def.site == kInitial) continue;
    escort_index_.emplace(pair, escorts_.size());
    escorts_.push_back({pair, {}, false});
  }
  for (const analysis::Dominated& one : program_.dominated) {
    outcomes_.insert(one.outcome);
    leads_to_[one.outcome].insert(one.sites.begin(), one.sites.end());
  }
  for (size_t i = 0; i < potential_.size(); ++i) {
    std::set<BranchOutcome> by(program_.sites[potential_[i].use].escorts.begin(),
                               program_.sites[potential_[i].use].escorts.end());
    if (potential_[i].def != kInitial)
      by.insert(program_.sites[potential_[i].def].escorts.begin(), program_.sites[potential_[i].def].escorts.end());
    for (const BranchOutcome& outcome : by) touched_[outcome].push_back(i);
  }
}

uint32_t Knowledge::site(uint64_t key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? trace::kNone : at->second;
}

std::optional<BranchOutcome> Knowledge::outcome(uint64_t site_key, uint64_t value) const {
  const uint32_t index = site(site_key);
  if (index == trace::kNone) return {};
  BranchOutcome exact{index, static_cast<int64_t>(value), false};
  if (program_.sites[index].text != "switch") return exact;
  // A case that leads to nothing of its own is not listed; it cannot be told from the default, and need not be.
  if (outcomes_.contains(exact)) return exact;
  return BranchOutcome{index, 0, true};
}

// Potential pairs that a pair of a run is an instance of.
std::vector<size_t> Knowledge::matching(uint64_t def, uint64_t use, const std::string& variable) const {
  const auto at = by_sites_.find({def, use});
  if (at == by_sites_.end()) return {};
  std::vector<size_t> out;
  for (size_t i : at->second)
    if (potential_[i].variable == variable || !names_.contains(potential_[i].variable)) out.push_back(i);
  return out;
}

bool Knowledge::wanted(uint64_t def, uint64_t use, const std::string& variable) const {
  if (def == kInputKey || found_.contains({def, use, variable})) return false;
  const std::vector<size_t> pairs = matching(def, use, variable);
  return !pairs.empty();
}

std::vector<size_t> Knowledge::cover(const PairKey& pair) {
  names_.insert(pair.variable);
  for (size_t i : matching(pair.def, pair.use, pair.variable)) {
    if (potential_[i].found) continue;
    potential_[i].found = true;
    --open_;
  }
  std::vector<size_t> covered;
  const uint32_t use = site(pair.use), def = site(pair.def);
  if (use == trace::kNone || !shared(pair.use) || (pair.def != kInitialKey && def == trace::kNone)) return covered;
  const std::vector<BranchOutcome> start{BranchOutcome{}};
  for (const BranchOutcome& from : pair.def == kInitialKey ? start : program_.sites[def].escorts)
    for (const BranchOutcome& to : program_.sites[use].escorts) {
      const auto at = escort_index_.find({from, to});
      if (at == escort_index_.end() || escorts_[at->second].by) continue;
      escorts_[at->second].by = pair;
      covered.push_back(at->second);
    }
  return covered;
}

std::vector<size_t> Knowledge::seen(const PairKey& pair) {
  Found& found = found_[pair];
  if (found.seen) return {};
  found.seen = true;
  return cover(pair);
}

std::vector<size_t> Knowledge::predicted(const PairKey& pair) {
  Found& found = found_[pair];
  if (found.predicted) return {};
  found.predicted = true;
  return cover(pair);
}

void Knowledge::diverged(const PairKey& pair) { found_[pair].diverged = true; }

const Knowledge::Found* Knowledge::find(const PairKey& pair) const {
  const auto at = found_.find(pair);
  return at == found_.end() ? nullptr : &at->second;
}

size_t Knowledge::open_escorts() const {
  return static_cast<size_t>(
      std::count_if(escorts_.begin(), escorts_.end(), [](const Escort& escort) { return escort.open(); }));
}

void Knowledge::refute_rest() {
  for (Potential& pair : potential_) {
    pair.refuted = !pair.found;
    pair.bound.clear();
  }
  open_ = 0;
  for (Escort& escort : escorts_) escort.infeasible = !escort.by;
}

void Knowledge::give_up_rest(const std::string& bound) {
  for (Potential& pair : potential_)
    if (!pair.found) pair.bound = bound;
}

size_t Knowledge::gain(const std::set<uint32_t>& sites, const BranchOutcome& outcome) const {
  const auto touched = touched_.find(outcome);
  if (touched == touched_.end()) return 0;
  const std::set<uint32_t>& ahead = leads_to_.at(outcome);
  size_t count = 0;
  for (size_t i : touched->second) {
    const Potential& pair = potential_[i];
    const auto reached = [&](uint32_t site) {
      return site == kInitial || sites.contains(site) || ahead.contains(site);
    };
    count += !pair.found && reached(pair.def) && reached(pair.use);
  }
  return count;
}

std::vector<size_t> Knowledge::open_with(const BranchOutcome& outcome, const std::set<BranchOutcome>& others) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < escorts_.size(); ++i) {
    const Escort& escort = escorts_[i];
    if (!escort.open()) continue;
    const auto there = [&](const BranchOutcome& o) { return o.site == kInitial || o == outcome || others.contains(o); };
    if ((escort.pair.def == outcome && there(escort.pair.use)) ||
        (escort.pair.use == outcome && there(escort.pair.def)))
      out.push_back(i);
  }
  return out;
}

}  // namespace stem::explorer
