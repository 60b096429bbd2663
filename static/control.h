// Which sites a branch outcome inevitably leads to: B_p of the theory.
//
// Inside a function this is control dependence: the site's block post-dominates the branch's successor but not the branch.
// A function whose call is so dominated hands that on to those of its sites that run whenever it does, provided all its
// calls agree - then the set of escorts is the union over its call sites.
#pragma once

#include <llvm/IR/Instructions.h>

#include "static/threads.h"

namespace stem::analysis {

// One way out of a branch or switch: the index of the successor.
struct Outcome {
  const llvm::Instruction* branch;
  unsigned successor;
  auto operator<=>(const Outcome&) const = default;
};

class Control {
 public:
  Control(const llvm::Module& module, const PointerAnalysis& pointers);

  // The outcomes that inevitably lead to this instruction; empty if it runs whatever branches decide.
  const std::set<Outcome>& escorts(const llvm::Instruction* instruction) const;

 private:
  void add_function(const llvm::Function& function);

  std::map<const llvm::BasicBlock*, std::set<Outcome>> blocks_;
};

}  // namespace stem::analysis
