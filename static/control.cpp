#include "static/control.h"

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>

namespace stem::analysis {

Control::Control(const llvm::Module& module, const PointerAnalysis& pointers) {
  for (const llvm::Function& function : module)
    if (!function.isDeclaration()) add_function(function);
  // Hand on through calls until nothing changes; recursion adds nothing new after the first round of it.
  std::map<const llvm::Function*, std::vector<const llvm::BasicBlock*>> unconditional;
  for (const llvm::Function& function : module)
    for (const llvm::BasicBlock& block : function)
      if (blocks_[&block].empty()) unconditional[&function].push_back(&block);
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::Function& function : module)
      for (const llvm::Instruction& instruction : llvm::instructions(function)) {
        auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        if (!call) continue;
        const auto escorts = blocks_[call->getParent()];
        if (escorts.empty()) continue;
        for (const llvm::Function* callee : pointers.callees(call))
          for (const llvm::BasicBlock* block : unconditional[callee]) {
            auto& target = blocks_[block];
            size_t before = target.size();
            target.insert(escorts.begin(), escorts.end());
            changed |= target.size() != before;
          }
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
        blocks_[node->getBlock()].insert({branch, i});
    }
  }
}

const std::set<Outcome>& Control::escorts(const llvm::Instruction* instruction) const {
  static const std::set<Outcome> none;
  auto entry = blocks_.find(instruction->getParent());
  return entry == blocks_.end() ? none : entry->second;
}

}  // namespace stem::analysis
