// Which values of a function may depend on a shared read or an input, and what each use of such a value asks for.
//
// A use either is modelled (the expression goes on), pins the value (the operation is outside the model), or only forms an
// address (what it was formed from is pinned where memory is accessed). A value that cannot be symbolic costs nothing at run time.
#pragma once

#include "tracer/pass/sharing.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace stem::pass {

// Can a value of this type carry an expression? Numbers and pointers of at most 64 bits; floating point is only carried around.
bool carries_expression(const llvm::Type* type);
unsigned width_of(const llvm::Type* type);

enum class UseKind { None, Modelled, Pinned, Address };
enum class ReadKind { Plain, Leaf, Pinned };

// How a call treats expression ids.
enum class Callee {
  Intrinsic,   // handled by name
  Opaque,      // known not to be instrumented: pins everything
  Intercepted, // the runtime takes ids
  Instrumented,// takes ids
  Unknown,     // found out at run time by its mark
};
Callee classify_callee(const llvm::CallBase& call, const llvm::TargetLibraryInfo& library);

class Symbolic {
 public:
  Symbolic(llvm::Function& function, const Sharing& sharing, const llvm::TargetLibraryInfo& library);

  bool may_be(const llvm::Value* value) const { return values_.contains(value); }
  // A replacement takes over what is known of the value.
  void replaced(const llvm::Value* old, const llvm::Value* now) {
    if (values_.contains(old)) values_.insert(now);
  }
  UseKind use(const llvm::Use& use);
  ReadKind read(const llvm::Instruction* access) const { return reads_.lookup(access); }
  // May a private object hold symbolic values?
  bool holds(const llvm::Value* object) const { return objects_.contains(object); }
  bool holds_any(llvm::Value* pointer) const;
  // Is the value pinned in a block other than its own? Then one pin should do for all, also in loops.
  bool pinned_elsewhere(const llvm::Value* value);

  static bool models(const llvm::Instruction& instruction);
  static bool makes_address(const llvm::Value* value);

 private:
  bool address_only(const llvm::Instruction* value);
  UseKind use_by_call(const llvm::CallBase& call, const llvm::Use& use);
  bool pinned_at_once(const llvm::Instruction* access);
  ReadKind decide_read(const llvm::Instruction* access);
  void decide_reads();
  void propagate();
  bool mark_object(llvm::Value* pointer);

  llvm::Function& function_;
  const Sharing& sharing_;
  const llvm::TargetLibraryInfo& library_;
  llvm::DenseSet<const llvm::Value*> values_;
  llvm::DenseSet<const llvm::Value*> objects_;
  llvm::DenseMap<const llvm::Instruction*, ReadKind> reads_;
  llvm::DenseMap<const llvm::Instruction*, bool> address_only_;
};

}  // namespace stem::pass
