// Which functions run in which threads, how often, and in what order.
//
// A thread class is main, or everything created with one entry function. A function runs once if it is the entry of a class
// with one thread and is called from nowhere else, or has a single call site, outside any loop, in a function that runs
// once. For instructions of such functions the order inside a thread, and against thread creation, is known from the
// control flow; for all others anything is possible.
#pragma once

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>

#include <memory>
#include <optional>

#include "static/pointer.h"

namespace stem::analysis {

struct ThreadClass {
  const llvm::Function* entry;
  std::vector<const llvm::CallBase*> created_at;  // empty for main
  bool many = false;                              // more than one thread may be of this class
  std::set<const llvm::Function*> functions;      // what it may run
};

class Threads {
 public:
  Threads(const llvm::Module& module, const PointerAnalysis& pointers);

  const std::vector<ThreadClass>& classes() const { return classes_; }
  std::vector<uint32_t> classes_of(const llvm::Function* function) const;
  bool runs_once(const llvm::Function* function) const { return once_.contains(function); }

  // May `second` execute after `first` in one and the same thread of this class?
  bool may_follow(const llvm::Instruction* first, const llvm::Instruction* second) const;
  // May an instruction executed by a thread of class `reader` come after one executed by a thread of class `writer`?
  bool may_precede(const llvm::Instruction* write, uint32_t writer, const llvm::Instruction* read, uint32_t reader) const;
  // Is `instruction` of the main thread executed before any thread of this class exists, on every way there?
  bool always_before_creation(const llvm::Instruction* instruction, uint32_t created) const;

 private:
  void find_functions(ThreadClass& thread);
  void find_once(const llvm::Module& module);
  // The instruction and, going up unique call sites, the calls that lead to it: outermost first.
  std::vector<const llvm::Instruction*> chain(const llvm::Instruction* instruction) const;
  bool in_loop(const llvm::Instruction* instruction) const;

  const PointerAnalysis& pointers_;
  std::vector<ThreadClass> classes_;
  std::map<const llvm::Function*, std::set<const llvm::CallBase*>> callers_;
  std::set<const llvm::Function*> address_taken_;
  std::map<const llvm::Function*, const llvm::CallBase*> once_;  // and its only call site (null for an entry)
};

}  // namespace stem::analysis
