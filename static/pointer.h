// What every pointer of the program may point to: inclusion-based, field-sensitive, context-insensitive, with indirect
// calls resolved on the fly and library functions by static/externals.def.
//
// Heap objects get the type through which the program uses them: first a guess, by where the result of the allocation goes
// by itself; then which typed accesses reach the allocation site, and where that is not what was guessed, a second run.
#pragma once

#include <llvm/IR/InstrTypes.h>

#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "static/solver.h"

namespace stem::analysis {

struct Creation {
  const llvm::CallBase* call;  // of pthread_create or its like
  const llvm::Function* entry;
};

using HeapTypes = std::unordered_map<const llvm::Value*, llvm::Type*>;

class PointerAnalysis {
 public:
  explicit PointerAnalysis(const llvm::Module& module);
  ~PointerAnalysis();

  // The locations a pointer may point to; if it is `unknown`, all external objects besides.
  const PointsTo& points_to(const llvm::Value* value) const;
  bool unknown(const llvm::Value* value) const;
  Objects& objects() const { return *objects_; }
  using Functions = std::set<const llvm::Function*>;
  const Functions& callees(const llvm::CallBase* call) const;
  // Functions among its arguments that a library function calls before it returns, as often as it likes.
  const Functions& call_backs(const llvm::CallBase* call) const;
  // May it run code we do not see, which may call any external function?
  bool calls_unknown(const llvm::CallBase* call) const { return unknown_calls_.contains(call); }
  const Functions& external_functions() const { return external_functions_; }
  // Handlers and destructors: any thread may run them, at any time.
  const Functions& anywhere() const { return anywhere_; }
  const std::vector<Creation>& creations() const { return creations_; }
  bool joins(const llvm::CallBase* call) const { return joins_.contains(call); }
  bool is_external(ObjectId object) const { return objects_->object(object).external; }
  // Every object that can be reached through pointers from these locations; `unknown`: external ones besides.
  std::set<ObjectId> reachable(const PointsTo& from, bool& unknown) const;
  size_t node_count() const { return solver_->node_count(); }

 private:
  friend class ConstraintBuilder;
  void run(const llvm::Module& module, const HeapTypes& heap_types);
  HeapTypes infer_heap_types(const llvm::Module& module) const;

  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Solver> solver_;
  std::unordered_map<const llvm::Value*, NodeId> nodes_;
  std::unordered_map<const llvm::CallBase*, Functions> callees_, call_backs_;
  std::unordered_set<const llvm::CallBase*> unknown_calls_;
  Functions external_functions_, anywhere_;
  std::vector<Creation> creations_;
  std::set<const llvm::CallBase*> joins_;
};

}  // namespace stem::analysis
