// Which memory only one thread can see, so that its accesses need not be events. A location is recorded everywhere or nowhere:
// an object counts as private only if every pointer to it, wherever it goes, stays in code that knows so.
//
// Private:   a local variable or by-value parameter whose address is never stored, returned, converted or given away;
//            a heap object that the function allocates and that obeys the same rule; a thread-local variable that only
//            this translation unit can name, likewise; what a parameter points to, if the function is internal, never has
//            its address taken, and all its callers pass private memory.
// Constant:  constants, and internal variables that nothing ever writes. Reads of them are no events: nobody defines them.
// Everything else is shared. The solution is the greatest one: all candidates are assumed, then refuted until none falls.
#pragma once

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace stem::pass {

enum class Memory { Shared, Private, Constant };

class Sharing {
 public:
  explicit Sharing(llvm::Module& module);

  Memory of(llvm::Value* pointer) const;
  // An alloca, by-value parameter, heap allocation, thread-local variable or private parameter that was found private.
  bool is_private(const llvm::Value* object) const { return private_.contains(object); }
  // The objects a pointer may point into, looked through casts, offsets, phis and selects.
  static llvm::SmallVector<const llvm::Value*, 4> objects(llvm::Value* pointer);

 private:
  bool stays_private(llvm::Value* object) const;
  bool use_keeps_private(llvm::Use& use, llvm::SmallVectorImpl<llvm::Value*>& more) const;
  bool callers_pass_private(llvm::Argument& argument) const;
  bool never_written(llvm::GlobalVariable& global) const;

  llvm::SmallSetVector<llvm::Value*, 32> candidates_;
  llvm::DenseSet<const llvm::Value*> private_;
  llvm::DenseSet<const llvm::Value*> constant_;
};

}  // namespace stem::pass
