// Which sites a branch outcome inevitably leads to: B_p of the theory.
//
// Inside a function this is control dependence: the site's block post-dominates the branch's successor but not the
// branch. A function whose call is so dominated hands that on to those of its sites that run whenever it does: the
// union over its call sites. One that is called in more ways than kMany hands on nothing: that one of so many branches
// was taken says little, and the sets would grow with the product of calls and branches. Its pairs are bare then, which
// is safe.
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
  Control(const llvm::Module& module, const Threads& threads);

  // The outcomes that inevitably lead to this instruction; empty if it runs whatever branches decide.
  const std::vector<Outcome>& escorts(const llvm::Instruction* instruction) const;

 private:
  static constexpr size_t kMany = 16;
  void add_function(const llvm::Function& function);

  std::unordered_map<const llvm::BasicBlock*, std::vector<Outcome>> blocks_;   // inside the function, sorted
  std::unordered_map<const llvm::Function*, std::vector<Outcome>> handed_on_;  // to its blocks without one of their own
};

}  // namespace stem::analysis
