// Potential def-use pairs: every read at a site with every write that may supply it. Which accesses are sites the
// recorder decides (what may be shared); a variable that only one thread uses has pairs too, and a trace shows them.
//
// Pairs are a product, so no more than a budget of them are listed, those of variables with few first; what is left out
// is counted. Who asks about one pair asks Facts (facts.h), which answers from the accesses and needs no list.
#pragma once

#include "static/accesses.h"
#include "static/control.h"

namespace stem::analysis {

struct InstructionPair {
  const llvm::Instruction* def;  // null: the initial value
  const llvm::Instruction* use;
  Extent where;  // of the use
  bool cross_thread;
  bool shared;  // a global, or used by several threads
};

struct PairSet {
  std::vector<InstructionPair> pairs;
  std::vector<std::pair<const llvm::Instruction*, const llvm::Instruction*>>
      refuted;                                                             // alias, but in no possible order
  std::vector<std::pair<ObjectId, const llvm::Instruction*>> overwritten;  // reads that the initial value cannot reach
  std::vector<std::pair<ObjectId, uint64_t>> unlisted;                     // and how many at most
  std::vector<const llvm::Instruction*> writes;                            // of shared variables, at sites
  std::vector<bool> shared;                                                // by object
};

PairSet find_pairs(const Accesses& accesses, const Threads& threads, size_t budget);

}  // namespace stem::analysis
