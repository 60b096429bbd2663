// Potential def-use pairs: every read at a site with every write that may supply it. Which accesses are sites the recorder
// decides (what may be shared); a variable that only one thread uses has pairs too, and a trace shows them.
#pragma once

#include "static/control.h"

namespace stem::analysis {

struct Access {
  const llvm::Instruction* instruction;
  LocationId location;
  uint64_t size;
  bool write;
};

struct InstructionPair {
  const llvm::Instruction* def;  // null: the initial value
  const llvm::Instruction* use;
  LocationId location;           // of the use
  bool cross_thread;
  bool shared;                   // a global, or used by several threads
};

struct PairSet {
  std::vector<InstructionPair> pairs;
  std::vector<const llvm::Instruction*> writes;  // of shared variables, at sites
  size_t shared_objects = 0;
};

// `wanted` says which instructions are sites.
PairSet find_pairs(const llvm::Module& module, const PointerAnalysis& pointers, const Threads& threads,
                   const std::function<bool(const llvm::Instruction&)>& wanted);

}  // namespace stem::analysis
