#include "tracer/pass/symbolic.h"

#include "tracer/pass/library.h"
#include "tracer/pass/prepare.h"
#include "tracer/runtime/abi.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>

using namespace llvm;

namespace stem::pass {

unsigned width_of(const Type* type) {
  if (type->isPointerTy()) return 64;
  return static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
}

bool carries_expression(const Type* type) {
  if (const auto* integer = dyn_cast<IntegerType>(type)) return integer->getBitWidth() <= 64;
  if (const auto* pointer = dyn_cast<PointerType>(type)) return pointer->getAddressSpace() == 0;
  return type->isFloatTy() || type->isDoubleTy();
}

static bool is_number(const Type* type) { return carries_expression(type) && !type->isFloatingPointTy(); }

Callee classify_callee(const CallBase& call, const TargetLibraryInfo& library) {
  if (call.isInlineAsm() || isa<CallBrInst>(call)) return Callee::Opaque;
  const Function* function = call.getCalledFunction();
  if (!function) {
    // A call through another type than the definition's would mix up which argument is which.
    const auto* target = dyn_cast<Function>(call.getCalledOperand()->stripPointerCasts());
    return target ? Callee::Opaque : Callee::Unknown;
  }
  if (function->isIntrinsic()) return Callee::Intrinsic;
  if (auto* direct = dyn_cast<CallInst>(&call); direct && direct->isMustTailCall()) return Callee::Opaque;
  if (!function->isDeclaration()) {
    if (!instrumentable(*function)) return Callee::Opaque;
    const bool certain = function->hasLocalLinkage() || (function->isDSOLocal() && !function->isInterposable());
    return certain ? Callee::Instrumented : Callee::Unknown;
  }
  if (intercepted(function->getName()) != Intercept::No || function->getName().starts_with("__stem_wrap_")) return Callee::Intercepted;
  LibFunc known;
  if (is_allocation(call) || is_release(call) || is_posix_memalign(call) || is_assertion_failure(call) || library.getLibFunc(*function, known)) return Callee::Opaque;
  return Callee::Unknown;
}

bool Symbolic::models(const Instruction& instruction) {
  const Type* type = instruction.getType();
  if (isa<PHINode>(instruction) || isa<SelectInst>(instruction) || isa<FreezeInst>(instruction)) return carries_expression(type);
  if (isa<GetElementPtrInst>(instruction)) return type->isPointerTy();
  if (isa<BinaryOperator>(instruction)) return is_number(type);
  if (isa<ICmpInst>(instruction)) return is_number(instruction.getOperand(0)->getType());
  if (const auto* cast = dyn_cast<CastInst>(&instruction)) {
    if (!carries_expression(type) || !carries_expression(cast->getSrcTy())) return false;
    return isa<BitCastInst>(cast) || isa<AddrSpaceCastInst>(cast) || (is_number(type) && is_number(cast->getSrcTy()));
  }
  if (const auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
    switch (intrinsic->getIntrinsicID()) {
      case Intrinsic::abs:
      case Intrinsic::smax:
      case Intrinsic::smin:
      case Intrinsic::umax:
      case Intrinsic::umin:
      case Intrinsic::expect:
      case Intrinsic::expect_with_probability:
      case Intrinsic::ssa_copy:
      case Intrinsic::launder_invariant_group:
      case Intrinsic::strip_invariant_group:
        return is_number(type);
      default:
        return false;
    }
  }
  if (const auto* extract = dyn_cast<ExtractValueInst>(&instruction))
    return isa<AtomicCmpXchgInst>(extract->getAggregateOperand()) && carries_expression(cast<AtomicCmpXchgInst>(extract->getAggregateOperand())->getCompareOperand()->getType());
  return false;
}

// What an index or an offset is made by: another operand gives another address, but for products that overflow or are by 0.
bool Symbolic::makes_address(const Value* value) {
  if (const auto* binary = dyn_cast<BinaryOperator>(value)) return binary->getOpcode() == Instruction::Add || binary->getOpcode() == Instruction::Sub || binary->getOpcode() == Instruction::Mul;
  return isa<GetElementPtrInst>(value) || isa<SExtInst>(value) || isa<ZExtInst>(value);
}

// Values that only become addresses: offsets, indices and what they are computed from. Instead of the address, what it came from is
// pinned: i * width + j needs no expression for an access to be held where it was.
bool Symbolic::address_only(const Instruction* value) {
  if (!makes_address(value)) return false;
  if (value->getType()->isVectorTy() || !carries_expression(value->getType())) return false;
  auto [it, fresh] = address_only_.try_emplace(value, false);
  if (!fresh) return it->second;
  bool all = !value->use_empty();
  for (const Use& use : value->uses()) {
    const auto* user = cast<Instruction>(use.getUser());
    const bool address = (isa<LoadInst>(user) && true) || (isa<StoreInst>(user) && use.getOperandNo() == StoreInst::getPointerOperandIndex()) ||
                         (isa<AtomicRMWInst>(user) && use.getOperandNo() == AtomicRMWInst::getPointerOperandIndex()) ||
                         (isa<AtomicCmpXchgInst>(user) && use.getOperandNo() == AtomicCmpXchgInst::getPointerOperandIndex()) ||
                         address_only(user);
    if (!address) {
      all = false;
      break;
    }
  }
  address_only_[value] = all;
  return all;
}

UseKind Symbolic::use_by_call(const CallBase& call, const Use& use) {
  if (!call.isArgOperand(&use)) return call.isCallee(&use) ? UseKind::Pinned : UseKind::None;
  const unsigned number = call.getArgOperandNo(&use);
  if (const auto* intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    if (models(*intrinsic)) return number == 0 || intrinsic->getIntrinsicID() == Intrinsic::smax || intrinsic->getIntrinsicID() == Intrinsic::smin ||
                                           intrinsic->getIntrinsicID() == Intrinsic::umax || intrinsic->getIntrinsicID() == Intrinsic::umin
                                       ? UseKind::Modelled
                                       : UseKind::None;
    switch (intrinsic->getIntrinsicID()) {
      case Intrinsic::lifetime_start:
      case Intrinsic::lifetime_end:
      case Intrinsic::assume:
      case Intrinsic::invariant_start:
      case Intrinsic::invariant_end:
      case Intrinsic::sideeffect:
      case Intrinsic::prefetch:
      case Intrinsic::is_constant:
      case Intrinsic::objectsize:
      case Intrinsic::var_annotation:
      case Intrinsic::donothing:
        return UseKind::None;
      case Intrinsic::memset:
      case Intrinsic::memset_inline:
        if (number == 1 && sharing_.of(call.getArgOperand(0)) == Memory::Shared) return UseKind::Modelled;
        return UseKind::Pinned;
      default:
        return isa<DbgInfoIntrinsic>(intrinsic) ? UseKind::None : UseKind::Pinned;
    }
  }
  if (call.isByValArgument(number)) return UseKind::Pinned;
  const bool variadic = number >= call.getFunctionType()->getNumParams();
  switch (classify_callee(call, library_)) {
    case Callee::Intercepted:
      return number < STEM_MAX_ARGS ? UseKind::Modelled : UseKind::Pinned;
    case Callee::Instrumented:
    case Callee::Unknown:
      return number < STEM_MAX_ARGS && !variadic ? UseKind::Modelled : UseKind::Pinned;
    case Callee::Intrinsic:
    case Callee::Opaque:
      return UseKind::Pinned;
  }
  return UseKind::Pinned;
}

UseKind Symbolic::use(const Use& use) {
  if (!carries_expression(use->getType())) return UseKind::None;
  const auto* user = dyn_cast<Instruction>(use.getUser());
  if (!user) return UseKind::None;
  if (const auto* call = dyn_cast<CallBase>(user)) return use_by_call(*call, use);
  if (isa<LoadInst>(user)) return UseKind::Pinned;
  if (isa<StoreInst>(user)) return use.getOperandNo() == StoreInst::getPointerOperandIndex() ? UseKind::Pinned : UseKind::Modelled;
  if (isa<AtomicRMWInst>(user) || isa<AtomicCmpXchgInst>(user)) return use.getOperandNo() == 0 || use->getType()->isFloatingPointTy() ? UseKind::Pinned : UseKind::Modelled;
  if (isa<BranchInst>(user) || isa<SwitchInst>(user) || isa<ReturnInst>(user)) return UseKind::Modelled;
  if (address_only(user)) return UseKind::Address;
  if (!models(*user)) return UseKind::Pinned;
  if (const auto* binary = dyn_cast<BinaryOperator>(user); binary && use.getOperandNo() == 1) {
    if (binary->isIntDivRem()) return UseKind::Pinned;
    // Beyond the width the machine and the expression would disagree.
    if (binary->isShift() && !isa<Constant>(use.get())) {
      const KnownBits known = computeKnownBits(use.get(), function_.getDataLayout());
      if (known.getMaxValue().uge(known.getBitWidth())) return UseKind::Pinned;
    }
  }
  return UseKind::Modelled;
}

// Is a pin the first thing that happens to the value, before anything that others could see?
bool Symbolic::pinned_at_once(const Instruction* access) {
  SmallPtrSet<const Value*, 8> same{access};
  for (const Instruction* next = access->getNextNode(); next; next = next->getNextNode()) {
    for (const Use& operand : next->operands()) {
      if (!same.contains(operand.get())) continue;
      const UseKind kind = use(operand);
      if (kind == UseKind::Pinned) return true;
      if (kind == UseKind::Address) same.insert(next);
    }
    if (next->isTerminator()) return false;
    if (isa<IntrinsicInst>(next) && !isa<MemIntrinsic>(next)) continue;
    if (isa<CallBase>(next) || isa<AtomicRMWInst>(next) || isa<AtomicCmpXchgInst>(next)) return false;
    const Value* pointer = getLoadStorePointerOperand(next);
    if (pointer && sharing_.of(const_cast<Value*>(pointer)) == Memory::Shared) return false;
  }
  return false;
}

ReadKind Symbolic::decide_read(const Instruction* access) {
  const bool exchange = isa<AtomicCmpXchgInst>(access);
  const Type* type = exchange ? cast<AtomicCmpXchgInst>(access)->getCompareOperand()->getType() : access->getType();
  if (exchange) return carries_expression(type) ? ReadKind::Leaf : ReadKind::Pinned;  // its outcome depends on the value
  if (isa<AtomicRMWInst>(access)) {
    const auto operation = cast<AtomicRMWInst>(access)->getOperation();
    // What it writes depends on what it read, unless it just exchanges.
    if (operation != AtomicRMWInst::Xchg) return is_number(type) ? ReadKind::Leaf : ReadKind::Pinned;
  }
  bool any = false, modelled = false, non_address = false;
  for (const Use& operand : access->uses()) {
    if (!carries_expression(type)) return ReadKind::Pinned;
    const UseKind kind = use(operand);
    any |= kind != UseKind::None;
    modelled |= kind == UseKind::Modelled;
    non_address |= kind != UseKind::Address;
  }
  if (!any) return ReadKind::Plain;
  if (type->isFloatingPointTy() && !modelled) return ReadKind::Pinned;
  return pinned_at_once(access) ? ReadKind::Pinned : ReadKind::Leaf;
}

void Symbolic::decide_reads() {
  for (const Instruction& instruction : instructions(function_)) {
    if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
      if (sharing_.of(const_cast<Value*>(load->getPointerOperand())) == Memory::Shared) reads_[load] = decide_read(load);
    } else if (isa<AtomicRMWInst>(instruction) || isa<AtomicCmpXchgInst>(instruction)) {
      reads_[&instruction] = decide_read(&instruction);
    }
  }
}

bool Symbolic::mark_object(Value* pointer) {
  bool changed = false;
  for (const Value* object : Sharing::objects(pointer))
    if (sharing_.is_private(object)) changed |= objects_.insert(object).second;
  return changed;
}

bool Symbolic::holds_any(Value* pointer) const {
  for (const Value* object : Sharing::objects(pointer))
    if (objects_.contains(object)) return true;
  return false;
}

void Symbolic::propagate() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Instruction& instruction : instructions(function_)) {
      if (auto* store = dyn_cast<StoreInst>(&instruction)) {
        if (values_.contains(store->getValueOperand()) && sharing_.of(store->getPointerOperand()) == Memory::Private) changed |= mark_object(store->getPointerOperand());
      } else if (auto* copy = dyn_cast<MemTransferInst>(&instruction)) {
        if (sharing_.of(copy->getDest()) == Memory::Private && (sharing_.of(copy->getSource()) == Memory::Shared || holds_any(copy->getSource()))) changed |= mark_object(copy->getDest());
      } else if (auto* load = dyn_cast<LoadInst>(&instruction)) {
        if (sharing_.of(load->getPointerOperand()) == Memory::Private && carries_expression(load->getType()) && holds_any(load->getPointerOperand())) changed |= values_.insert(load).second;
      } else if (auto* extract = dyn_cast<ExtractValueInst>(&instruction)) {
        if (models(*extract) && values_.contains(extract->getAggregateOperand())) changed |= values_.insert(extract).second;
      } else if (models(instruction) && !values_.contains(&instruction) && !address_only(&instruction)) {
        for (const Use& operand : instruction.operands())
          if (values_.contains(operand.get()) && use(operand) == UseKind::Modelled) {
            values_.insert(&instruction);
            changed = true;
            break;
          }
      }
    }
  }
}

bool Symbolic::pinned_elsewhere(const Value* value) {
  const BasicBlock* home = isa<Instruction>(value) ? cast<Instruction>(value)->getParent() : &function_.getEntryBlock();
  SmallVector<const Value*, 8> work{value};
  SmallPtrSet<const Value*, 8> seen;
  while (!work.empty()) {
    const Value* next = work.pop_back_val();
    if (!seen.insert(next).second) continue;
    for (const Use& operand : next->uses()) {
      const auto* user = cast<Instruction>(operand.getUser());
      const UseKind kind = use(operand);
      if (kind == UseKind::Address) work.push_back(user);
      if (kind == UseKind::Pinned && user->getParent() != home) return true;
    }
  }
  return false;
}

Symbolic::Symbolic(Function& function, const Sharing& sharing, const TargetLibraryInfo& library) : function_(function), sharing_(sharing), library_(library) {
  decide_reads();
  for (const auto& [access, kind] : reads_)
    if (kind == ReadKind::Leaf) values_.insert(access);
  for (Argument& argument : function.args()) {
    if (argument.getArgNo() < STEM_MAX_ARGS && carries_expression(argument.getType()) && !argument.hasByValAttr()) values_.insert(&argument);
    if (sharing.is_private(&argument) && !argument.hasByValAttr()) objects_.insert(&argument);
  }
  for (Instruction& instruction : instructions(function)) {
    auto* call = dyn_cast<CallBase>(&instruction);
    if (!call || isa<IntrinsicInst>(call)) continue;
    for (Value* argument : call->args())
      if (!is_release(*call) && argument->getType()->isPointerTy() && sharing.of(argument) == Memory::Private) mark_object(argument);
    const Callee callee = classify_callee(*call, library);
    if (callee != Callee::Opaque && carries_expression(call->getType()) && !call->use_empty()) values_.insert(call);
  }
  for (const GlobalVariable& global : function.getParent()->globals())
    if (sharing.is_private(&global)) objects_.insert(&global);
  propagate();
  // Decided now: instrumentation puts other users in place of the program's.
  for (const Instruction& instruction : instructions(function)) address_only(&instruction);
}

}  // namespace stem::pass
