// What every pointer of the program may point to: inclusion-based, field-sensitive, context-insensitive, with indirect
// calls resolved on the fly and library functions by static/externals.def.
//
// Heap objects get the type through which the program uses them in a second run: the first finds which typed accesses
// reach an allocation site, and the second tells its fields apart with that.
#pragma once

#include <llvm/IR/InstrTypes.h>

#include <map>
#include <memory>
#include <set>

#include "static/solver.h"

namespace stem::analysis {

struct Creation {
  const llvm::CallBase* call;  // of pthread_create or its like
  const llvm::Function* entry;
};

class PointerAnalysis {
 public:
  explicit PointerAnalysis(const llvm::Module& module);
  ~PointerAnalysis();

  const PointsTo& points_to(const llvm::Value* value) const;
  Objects& objects() const { return *objects_; }
  const std::set<const llvm::Function*>& callees(const llvm::CallBase* call) const;
  const std::vector<Creation>& creations() const { return creations_; }
  bool joins(const llvm::CallBase* call) const { return joins_.contains(call); }
  // May code we do not see hold a pointer to this object?
  bool escapes_to_external(ObjectId object) const { return external_.test(object); }
  // Everything reachable through pointers from these.
  llvm::SparseBitVector<> reachable_objects(llvm::SparseBitVector<> from) const;

 private:
  friend class ConstraintBuilder;
  void run(const llvm::Module& module, const std::map<const llvm::Value*, llvm::Type*>& heap_types);
  std::map<const llvm::Value*, llvm::Type*> infer_heap_types(const llvm::Module& module) const;

  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Solver> solver_;
  std::map<const llvm::Value*, NodeId> nodes_;
  std::map<const llvm::CallBase*, std::set<const llvm::Function*>> callees_;
  std::vector<Creation> creations_;
  std::set<const llvm::CallBase*> joins_;
  llvm::SparseBitVector<> external_;
};

}  // namespace stem::analysis
