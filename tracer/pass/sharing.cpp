#include "tracer/pass/sharing.h"

#include "tracer/pass/library.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

using namespace llvm;

namespace stem::pass {

SmallVector<const Value*, 4> Sharing::objects(Value* pointer) {
  SmallVector<const Value*, 4> found;
  getUnderlyingObjects(pointer, found, nullptr, 0);
  return found;
}

static bool is_null(const Value* value) { return isa<ConstantPointerNull>(value) || isa<UndefValue>(value); }

Memory Sharing::of(Value* pointer) const {
  bool any_private = false, any_constant = false;
  for (const Value* object : objects(pointer)) {
    if (private_.contains(object)) any_private = true;
    else if (constant_.contains(object)) any_constant = true;
    else if (const auto* global = dyn_cast<GlobalVariable>(object); global && global->isConstant()) any_constant = true;
    else if (!is_null(object)) return Memory::Shared;
  }
  if (any_private) return Memory::Private;
  return any_constant ? Memory::Constant : Memory::Shared;
}

// May the object still be private after this use? Uses that derive another pointer to it are added to `more`.
bool Sharing::use_keeps_private(Use& use, SmallVectorImpl<Value*>& more) const {
  auto* user = use.getUser();
  if (auto* load = dyn_cast<LoadInst>(user)) return !load->isAtomic();
  if (auto* store = dyn_cast<StoreInst>(user)) return use.getOperandNo() == StoreInst::getPointerOperandIndex() && !store->isAtomic();
  if (isa<GEPOperator>(user) || isa<BitCastOperator>(user)) {
    if (user->getType()->isVectorTy()) return false;
    more.push_back(user);
    return true;
  }
  if (isa<PHINode>(user) || isa<SelectInst>(user)) {
    more.push_back(user);
    return of(user) == Memory::Private;
  }
  if (isa<ICmpInst>(user)) return true;
  if (auto* intrinsic = dyn_cast<IntrinsicInst>(user)) {
    switch (intrinsic->getIntrinsicID()) {
      case Intrinsic::lifetime_start:
      case Intrinsic::lifetime_end:
      case Intrinsic::memcpy:
      case Intrinsic::memmove:
      case Intrinsic::memcpy_inline:
      case Intrinsic::memset:
      case Intrinsic::memset_inline:
      case Intrinsic::invariant_start:
      case Intrinsic::invariant_end:
      case Intrinsic::objectsize:
        return true;
      case Intrinsic::threadlocal_address:
        more.push_back(user);
        return true;
      default:
        return isa<DbgInfoIntrinsic>(intrinsic);
    }
  }
  if (auto* call = dyn_cast<CallBase>(user)) {
    if (!call->isArgOperand(&use)) return false;
    if (call->isByValArgument(call->getArgOperandNo(&use))) return true;  // what it holds is pinned there, the address stays
    if (is_release(*call)) return call->getArgOperandNo(&use) == 0;
    Function* callee = call->getCalledFunction();
    if (!callee || callee->isVarArg() || call->getArgOperandNo(&use) >= callee->arg_size()) return false;
    return private_.contains(callee->getArg(call->getArgOperandNo(&use)));
  }
  return false;
}

bool Sharing::stays_private(Value* object) const {
  SmallVector<Value*, 16> work{object};
  SmallPtrSet<Value*, 16> seen;
  while (!work.empty()) {
    Value* value = work.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (Use& use : value->uses()) {
      SmallVector<Value*, 1> more;
      if (!use_keeps_private(use, more)) return false;
      work.append(more.begin(), more.end());
    }
  }
  if (auto* argument = dyn_cast<Argument>(object); argument && !argument->hasByValAttr()) return callers_pass_private(*argument);
  return true;
}

bool Sharing::callers_pass_private(Argument& argument) const {
  for (Use& use : argument.getParent()->uses()) {
    auto* call = cast<CallBase>(use.getUser());
    if (of(call->getArgOperand(argument.getArgNo())) != Memory::Private) return false;
  }
  return true;
}

// An internal function that is only ever called, directly and with its own type.
static bool all_callers_known(Function& function) {
  if (!function.hasLocalLinkage() || function.isVarArg() || function.use_empty()) return false;
  for (Use& use : function.uses()) {
    auto* call = dyn_cast<CallBase>(use.getUser());
    if (!call || !call->isCallee(&use) || call->getFunctionType() != function.getFunctionType() || call->isMustTailCall()) return false;
  }
  return true;
}

bool Sharing::never_written(GlobalVariable& global) const {
  SmallVector<Value*, 16> work{&global};
  SmallPtrSet<Value*, 16> seen;
  while (!work.empty()) {
    Value* value = work.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (Use& use : value->uses()) {
      User* user = use.getUser();
      if (auto* load = dyn_cast<LoadInst>(user); load && load->isSimple()) continue;
      if (isa<ICmpInst>(user)) continue;
      if (isa<GEPOperator>(user) && !user->getType()->isVectorTy()) {
        work.push_back(user);
        continue;
      }
      if (auto* copy = dyn_cast<MemTransferInst>(user); copy && &use == &copy->getRawSourceUse()) continue;
      return false;
    }
  }
  return true;
}

Sharing::Sharing(Module& module) {
  for (GlobalVariable& global : module.globals()) {
    if (!global.hasLocalLinkage() || global.isDeclaration() || global.getName().starts_with("llvm.")) continue;
    if (global.isThreadLocal()) candidates_.insert(&global);
    else if (!global.isConstant() && !global.hasSection() && never_written(global)) constant_.insert(&global);
  }
  for (Function& function : module) {
    if (function.isDeclaration()) continue;
    const bool known = all_callers_known(function);
    for (Argument& argument : function.args())
      if (argument.getType()->isPointerTy() && (argument.hasByValAttr() || (known && !argument.hasPassPointeeByValueCopyAttr() && !argument.hasStructRetAttr()))) candidates_.insert(&argument);
    for (Instruction& instruction : instructions(function)) {
      if (isa<AllocaInst>(instruction)) candidates_.insert(&instruction);
      else if (auto* call = dyn_cast<CallBase>(&instruction); call && is_allocation(*call)) candidates_.insert(call);
    }
  }
  for (const Value* candidate : candidates_) private_.insert(candidate);
  for (bool changed = true; changed;) {
    changed = false;
    for (Value* candidate : candidates_) {
      if (!private_.contains(candidate) || stays_private(candidate)) continue;
      private_.erase(candidate);
      changed = true;
    }
  }
}

}  // namespace stem::pass
