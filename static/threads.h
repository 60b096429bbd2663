// Which functions run in which threads, how often, and in what order.
//
// A thread class is main, everything created with one entry function, or the threads that code we do not see may start
// with functions it was given. A function runs once if it is the entry of a class with one thread and is called from
// nowhere else, or has a single call site, outside any loop, in a function that runs once. For instructions of such
// functions the order inside a thread, and against thread creation and joins, is known from the control flow; for all
// others anything is possible.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>

#include <map>
#include <memory>

#include "static/joins.h"
#include "static/pointer.h"

namespace stem::analysis {

struct ThreadClass {
  const llvm::Function* entry;                    // null: whatever code we do not see starts
  std::vector<const llvm::CallBase*> created_at;  // empty for main and the unseen
  bool many = false;                              // more than one thread may be of this class
};

class Threads {
 public:
  Threads(const llvm::Module& module, const PointerAnalysis& pointers);

  const std::vector<ThreadClass>& classes() const { return classes_; }
  const std::vector<uint32_t>& classes_of(const llvm::Function* function) const;
  bool runs_once(const llvm::Function* function) const { return once_.contains(function); }
  // Every way a function may be called, other than by code we do not see.
  const std::vector<const llvm::CallBase*>& callers(const llvm::Function* function) const;

  // May `second` execute after `first` in one and the same thread?
  bool may_follow(const llvm::Instruction* first, const llvm::Instruction* second) const;
  // May an instruction executed by a thread of class `reader` come after one executed by a thread of class `writer`?
  bool may_precede(const llvm::Instruction* write, uint32_t writer, const llvm::Instruction* read,
                   uint32_t reader) const;
  // Is `instruction` of the main thread executed before any thread of this class exists, on every way there?
  bool always_before_creation(const llvm::Instruction* instruction, uint32_t created) const;
  // Have all threads of this class ended, whenever `instruction` of the main thread is executed?
  bool always_after_end(const llvm::Instruction* instruction, uint32_t ended) const;
  // Is the first, in the same function, passed on every way to the second?
  bool dominates(const llvm::Instruction* first, const llvm::Instruction* second) const;

 private:
  using Chain = std::vector<const llvm::Instruction*>;
  void find_callers(const llvm::Module& module);
  void find_functions(uint32_t thread, std::vector<const llvm::Function*> roots);
  void find_once(const llvm::Module& module);
  // The calls that lead to a function going up unique call sites, outermost first; null if it may run more than once.
  const Chain* chain(const llvm::Function* function) const;
  // Two instructions of functions that run once: is the first (or the beginning of a block in its function) passed on
  // every way to the second?
  bool passed_before(const llvm::Instruction* first, const llvm::BasicBlock* beginning,
                     const llvm::Instruction* second) const;
  bool dominates(const llvm::BasicBlock* first, const llvm::Instruction* second) const;
  bool of_main(const llvm::Instruction* instruction) const;
  bool by_main_only(const llvm::Instruction* instruction) const;
  bool in_loop(const llvm::Instruction* instruction) const;
  bool reaches(const llvm::Instruction* from, const llvm::Instruction* to) const;
  const llvm::DenseSet<const llvm::BasicBlock*>& after(const llvm::BasicBlock* block) const;

  const PointerAnalysis& pointers_;
  std::vector<ThreadClass> classes_;
  std::unordered_map<const llvm::Function*, std::vector<uint32_t>> classes_of_;
  std::unordered_map<const llvm::Function*, std::vector<const llvm::CallBase*>> callers_;
  std::unordered_map<const llvm::Function*, std::vector<const llvm::Function*>> callees_;  // defined ones
  llvm::DenseSet<const llvm::Function*> calls_unknown_, returns_twice_, not_once_;
  std::map<const llvm::Function*, const llvm::CallBase*> once_;    // and its only call site (null for an entry)
  std::map<const llvm::CallBase*, std::vector<JoinPoint>> joins_;  // by creation
  mutable std::map<std::pair<const llvm::Instruction*, uint32_t>, bool> after_end_;
  mutable std::unordered_map<const llvm::Function*, Chain> chains_;
  mutable std::unordered_map<const llvm::BasicBlock*, llvm::DenseSet<const llvm::BasicBlock*>> after_;
  mutable std::unordered_map<const llvm::Function*, std::unique_ptr<llvm::DominatorTree>> dominators_;
};

}  // namespace stem::analysis
