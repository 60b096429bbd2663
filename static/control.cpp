#include "static/control.h"

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>

namespace stem::analysis {

Control::Control(const llvm::Module& module, const Threads& threads) {
  for (const llvm::Function& function : module)
    if (!function.isDeclaration()) add_function(function);
  // Hand on through calls until nothing changes; recursion adds nothing new after the first round of it.
  std::set<const llvm::Function*> too_many;
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::Function& function : module) {
      if (function.isDeclaration() || too_many.contains(&function)) continue;
      std::set<Outcome> all;
      for (const llvm::CallBase* call : threads.callers(&function)) {
        if (all.size() > kMany) break;
        const auto& escorts = this->escorts(call);
        all.insert(escorts.begin(), escorts.end());
      }
      auto& known = handed_on_[&function];
      if (all.size() == known.size()) continue;  // it only ever grows
      if (all.size() > kMany) {
        too_many.insert(&function);
        all.clear();
      }
      known.assign(all.begin(), all.end());
      changed = true;
    }
  }
}

void Control::add_function(const llvm::Function& function) {
  llvm::PostDominatorTree after(const_cast<llvm::Function&>(function));
  for (const llvm::BasicBlock& block : function) {
    const llvm::Instruction* branch = block.getTerminator();
    if (branch->getNumSuccessors() < 2 || !(llvm::isa<llvm::BranchInst>(branch) || llvm::isa<llvm::SwitchInst>(branch)))
      continue;
    for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
      // Everything from the successor up the post-dominator tree, short of what post-dominates the branch itself.
      auto* stop = after.getNode(&block) ? after.getNode(&block)->getIDom() : nullptr;
      for (auto* node = after.getNode(branch->getSuccessor(i)); node && node != stop && node->getBlock();
           node = node->getIDom())
        blocks_[node->getBlock()].push_back({branch, i});
    }
  }
}

const std::vector<Outcome>& Control::escorts(const llvm::Instruction* instruction) const {
  static const std::vector<Outcome> none;
  auto own = blocks_.find(instruction->getParent());
  if (own != blocks_.end()) return own->second;
  auto entry = handed_on_.find(instruction->getFunction());
  return entry == handed_on_.end() ? none : entry->second;
}

}  // namespace stem::analysis
