// Calls and returns: expression ids cross them through the thread's state, guarded on both sides (tracer/runtime/abi.def).
#include "tracer/pass/instrument.h"

#include "trace/raw.h"
#include "tracer/pass/library.h"
#include "tracer/pass/prepare.h"
#include "tracer/runtime/abi.h"

#include <llvm/Transforms/Utils/BuildLibCalls.h>

using namespace llvm;

namespace stem::pass {

constexpr uint64_t kInlineByValue = 64;

// Called from instrumented code only, and always directly?
static bool always_called_properly(const Function& function) {
  if (!function.hasLocalLinkage()) return false;
  for (const Use& use : function.uses()) {
    const auto* call = dyn_cast<CallBase>(use.getUser());
    if (!call || !call->isCallee(&use) || call->getFunctionType() != function.getFunctionType() || !instrumentable(*call->getFunction())) return false;
    if (isa<CallInst>(call) && cast<CallInst>(call)->isMustTailCall()) return false;
  }
  return true;
}

static bool passes_ids(const FunctionType& type) {
  return carries_expression(type.getReturnType()) || any_of(type.params(), [](Type* t) { return carries_expression(t); });
}

// By what caller and function recognise each other: the function's address. One that is always inlined and defined elsewhere (an
// inline member of an extern template) may have no address at all: what stands for it is a byte of this module.
static Value* identity(Function& function) {
  if (!function.hasAvailableExternallyLinkage() || !function.hasFnAttribute(Attribute::AlwaysInline)) return &function;
  Module& module = *function.getParent();
  const std::string name = ("stem.identity." + function.getName()).str();
  if (GlobalVariable* known = module.getGlobalVariable(name, true)) return known;
  Type* byte = Type::getInt8Ty(module.getContext());
  return new GlobalVariable(module, byte, true, GlobalValue::InternalLinkage, ConstantInt::get(byte, 0), name);
}

// This function's own address, as the linker sees it here: another definition of the same name is somebody else.
Value* FunctionInstrumenter::self() {
  if (self_) return self_;
  self_ = identity(function_);
  if (!function_.isDSOLocal() && !function_.hasLocalLinkage() && !function_.hasAvailableExternallyLinkage())
    self_ = GlobalAlias::create(function_.getFunctionType(), 0, GlobalValue::PrivateLinkage, "stem.self", &function_, function_.getParent());
  return self_;
}

void FunctionInstrumenter::prologue() {
  Instruction& at = *entry_;
  SmallVector<Argument*, 8> symbolic;
  for (Argument& argument : function_.args()) {
    if (symbolic_.may_be(&argument)) symbolic.push_back(&argument);
    if (!argument.hasByValAttr()) continue;
    const bool is_private = sharing_.is_private(&argument);
    if (is_private && !symbolic_.holds(&argument)) continue;
    const uint64_t size = layout_.getTypeAllocSize(argument.getParamByValType()).getFixedValue();
    Value* place = is_private ? nullptr : sites_.add(at, {STEM_SITE_STACK, ("parameter " + Twine(argument.getArgNo() + 1)).str(), "", "", 0});
    begin_local(&argument, i64(size), place, is_private, at);
  }
  if (symbolic.empty() && !carries_expression(function_.getReturnType())) return;

  IRBuilder<> builder(&at);
  Value* given = builder.CreateICmpNE(tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, arg_count)), i32(0));
  if (!always_called_properly(function_)) {
    called_properly_ = builder.CreateICmpEQ(tls_load(builder, builder.getPtrTy(), offsetof(stem_tls, callee)), self());
    tls_store(builder, ConstantPointerNull::get(builder.getPtrTy()), offsetof(stem_tls, callee));
    given = builder.CreateAnd(given, called_properly_);
  }
  if (symbolic.empty()) return;
  Instruction* inside = guard(given, at);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  for (Argument* argument : symbolic) {
    builder.SetInsertPoint(inside);
    Value* passed = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, args) + sizeof(uint32_t) * argument->getArgNo());
    builder.SetInsertPoint(at.getParent(), at.getParent()->begin());
    PHINode* ids = builder.CreatePHI(builder.getInt32Ty(), 2);
    ids->addIncoming(i32(0), before);
    ids->addIncoming(passed, inside->getParent());
    set_id(argument, ids, at);
  }
}

void FunctionInstrumenter::visit_return(ReturnInst& instruction) {
  Value* value = instruction.getReturnValue();
  if (!value || instruction.getParent()->getTerminatingMustTailCall()) return;
  if (!carries_expression(value->getType())) return pin_operands(instruction);
  Value* known = id(value, instruction);
  if (called_properly_ && !is_concrete(known)) {
    // Back to code that takes no ids: what goes there is held fixed.
    IRBuilder<> builder(&instruction);
    Value* place = site(instruction);
    Value* condition = builder.CreateAnd(builder.CreateIsNotNull(known), builder.CreateNot(called_properly_));
    builder.SetInsertPoint(guard(condition, instruction));
    abi_.call(builder, "__stem_pin", {known, as_number(builder, value), place});
  }
  IRBuilder<> builder(&instruction);
  tls_store(builder, known, offsetof(stem_tls, result_id));
  Value* who = self();
  if (called_properly_) who = builder.CreateSelect(called_properly_, who, ConstantPointerNull::get(builder.getPtrTy()));
  tls_store(builder, who, offsetof(stem_tls, returner));
}

Instruction* FunctionInstrumenter::after(CallBase& call) {
  if (auto* invoke = dyn_cast<InvokeInst>(&call)) return &*invoke->getNormalDest()->getFirstInsertionPt();
  return call.getNextNode();
}

// An instrumented function carries a mark before its entry. Without it, symbolic arguments are pinned.
void FunctionInstrumenter::check_mark(CallBase& call, Value* target) {
  SmallVector<std::pair<Value*, Value*>, 8> symbols;
  Value* any = nullptr;
  for (unsigned i = 0; i < std::min<unsigned>(call.arg_size(), STEM_MAX_ARGS); ++i) {
    if (symbolic_.use(call.getArgOperandUse(i)) != UseKind::Modelled) continue;
    Value* known = id(call.getArgOperand(i), call);
    if (is_concrete(known)) continue;
    symbols.push_back({known, call.getArgOperand(i)});
    IRBuilder<> builder(&call);
    any = any ? builder.CreateOr(any, known) : known;
  }
  if (symbols.empty()) return;
  Value* place = site(call);
  IRBuilder<> builder(&call);
  Instruction* inside = guard(builder.CreateIsNotNull(any), call);
  builder.SetInsertPoint(inside);
  Value* first = builder.CreateAlignedLoad(builder.getInt64Ty(), builder.CreateConstGEP1_64(builder.getInt8Ty(), target, static_cast<uint64_t>(-16)), Align(1));
  Value* second = builder.CreateAlignedLoad(builder.getInt64Ty(), builder.CreateConstGEP1_64(builder.getInt8Ty(), target, static_cast<uint64_t>(-8)), Align(1));
  Value* unmarked = builder.CreateOr(builder.CreateICmpNE(first, i64(STEM_FUNCTION_MARK_0)), builder.CreateICmpNE(second, i64(STEM_FUNCTION_MARK_1)));
  Instruction* pins = guard(unmarked, *inside);
  for (auto& [known, value] : symbols) {
    builder.SetInsertPoint(pins);
    builder.SetInsertPoint(guard(builder.CreateIsNotNull(known), *pins));
    abi_.call(builder, "__stem_pin", {known, as_number(builder, value), place});
  }
}

void FunctionInstrumenter::pass_arguments(CallBase& call, Callee callee, Value* target) {
  if (callee != Callee::Intercepted && !passes_ids(*call.getFunctionType())) return;
  if (callee == Callee::Unknown && !isa<GlobalVariable>(target)) check_mark(call, target);
  const unsigned count = std::min<unsigned>(call.arg_size(), STEM_MAX_ARGS);
  SmallVector<Value*, STEM_MAX_ARGS> ids;
  bool any = false;
  for (unsigned i = 0; i < count; ++i) {
    const bool modelled = symbolic_.use(call.getArgOperandUse(i)) == UseKind::Modelled;
    ids.push_back(modelled ? id(call.getArgOperand(i), call) : i32(0));
    any |= !is_concrete(ids.back());
  }
  IRBuilder<> builder(&call);
  if (any)
    for (unsigned i = 0; i < count; ++i) tls_store(builder, ids[i], offsetof(stem_tls, args) + sizeof(uint32_t) * i);
  tls_store(builder, i32(any ? count : 0), offsetof(stem_tls, arg_count));
  const bool nobody = callee == Callee::Intercepted && !any;
  tls_store(builder, nobody ? ConstantPointerNull::get(builder.getPtrTy()) : target, offsetof(stem_tls, callee));
}

void FunctionInstrumenter::take_result(CallBase& call, Value* target) {
  if (!symbolic_.may_be(&call)) return;
  Instruction& at = *after(call);
  IRBuilder<> builder(&at);
  Value* same = builder.CreateICmpEQ(tls_load(builder, builder.getPtrTy(), offsetof(stem_tls, returner)), target);
  set_id(&call, builder.CreateSelect(same, tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, result_id)), i32(0)), at);
}

// A struct passed by value is copied by the call itself: what it holds is pinned first.
void FunctionInstrumenter::pin_by_value(CallBase& call) {
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    if (!call.isByValArgument(i)) continue;
    Value* pointer = call.getArgOperand(i);
    const Memory memory = sharing_.of(pointer);
    if (memory == Memory::Constant || (memory == Memory::Private && !symbolic_.holds_any(pointer))) continue;
    const uint64_t bytes = layout_.getTypeAllocSize(call.getParamByValType(i)).getFixedValue();
    Value* place = site(call);
    Instruction* at = memory == Memory::Private ? guard_live_shadow(call) : &call;
    if (bytes > kInlineByValue) {
      IRBuilder<> builder(at);
      abi_.call(builder, "__stem_pin_range", {pointer, i64(bytes), i32(memory == Memory::Private), place});
      continue;
    }
    for (uint64_t done = 0; done < bytes;) {
      const unsigned piece = bytes - done >= 8 ? 8 : bytes - done >= 4 ? 4 : bytes - done >= 2 ? 2 : 1;
      IRBuilder<> builder(at);
      Value* address = builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, done);
      if (memory == Memory::Shared) {
        record_load({address, piece, STEM_AUX_PINNED, place, Align(1)}, *at, nullptr);
      } else {
        Value* value = builder.CreateZExt(builder.CreateAlignedLoad(builder.getIntNTy(8 * piece), address, Align(1)), builder.getInt64Ty());
        Value* known = abi_.call(builder, "__stem_shadow_get", {address, i32(piece), value});
        builder.SetInsertPoint(guard(builder.CreateIsNotNull(known), *at));
        abi_.call(builder, "__stem_pin", {known, value, place});
      }
      done += piece;
    }
  }
}

// Memory whose beginning nobody knows (a local variable, a heap block) goes to a function that may write it unseen.
void FunctionInstrumenter::expose_arguments(CallBase& call, Callee callee) {
  if (callee != Callee::Opaque && callee != Callee::Unknown) return;
  Function* library = call.getCalledFunction();
  if (library && (!library->isDeclaration() || only_synchronises(*library))) return;
  if (is_allocation(call) || is_release(call) || is_posix_memalign(call) || is_assertion_failure(call) || call.onlyReadsMemory() || call.doesNotReturn()) return;
  if (library) inferNonMandatoryLibFuncAttrs(*library, library_);
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    Value* pointer = call.getArgOperand(i);
    if (!pointer->getType()->isPointerTy() || call.isByValArgument(i) || call.onlyReadsMemory(i) || sharing_.of(pointer) != Memory::Shared) continue;
    if (all_of(Sharing::objects(pointer), [](const Value* object) { return isa<Constant>(object); })) continue;  // how globals begin is known
    IRBuilder<> builder(&call);
    Value* target = callee == Callee::Unknown ? call.getCalledOperand() : ConstantPointerNull::get(builder.getPtrTy());
    abi_.call(builder, "__stem_expose", {pointer, target});
  }
}

void FunctionInstrumenter::visit_allocation(CallBase& call) {
  Instruction& at = *after(call);
  const auto [size, count] = size_arguments(call);
  IRBuilder<> builder(&at);
  Value* bytes = builder.CreateZExtOrTrunc(call.getArgOperand(size), builder.getInt64Ty());
  if (count >= 0) bytes = builder.CreateMul(bytes, builder.CreateZExtOrTrunc(call.getArgOperand(count), builder.getInt64Ty()));
  if (sharing_.is_private(&call)) {
    if (!symbolic_.holds(&call)) return;
    builder.SetInsertPoint(guard_live_shadow(at));
    abi_.call(builder, "__stem_shadow_clear", {&call, bytes});
    return;
  }
  abi_.call(builder, "__stem_alloc", {&call, bytes, i32(is_zeroing(call)), site(call)});
}

void FunctionInstrumenter::visit_call(CallBase& call) {
  const Callee callee = classify_callee(call, library_);
  pin_operands(call);
  pin_by_value(call);
  if (is_assertion_failure(call)) {
    IRBuilder<> builder(&call);
    abi_.call(builder, "__stem_assert", {i32(0), i64(0), site(call)});
  }
  if (is_release(call) && sharing_.of(call.getArgOperand(0)) != Memory::Private) {
    IRBuilder<> builder(&call);
    abi_.call(builder, "__stem_free", {call.getArgOperand(0), site(call)});
  }
  Function* library = library_callee(call);
  if (library && intercepted(library->getName()) == Intercept::Wrap) {
    FunctionCallee wrapper = function_.getParent()->getOrInsertFunction(("__stem_wrap_" + library->getName()).str(), call.getFunctionType());
    call.setCalledFunction(call.getFunctionType(), wrapper.getCallee());
  }
  if (!call.isInlineAsm()) expose_arguments(call, callee);
  Value* target = call.getCalledOperand();
  if (Function* direct = call.getCalledFunction()) target = identity(*direct);
  if (callee != Callee::Opaque) pass_arguments(call, callee, target);
  if (library) {
    Value* place = site(call);
    IRBuilder<> builder(&call);
    tls_store(builder, place, offsetof(stem_tls, site));
  }
  if (auto* direct = dyn_cast<CallInst>(&call); direct && direct->isMustTailCall()) return;
  if (callee != Callee::Opaque) take_result(call, target);
  if (is_allocation(call)) visit_allocation(call);
  if (is_posix_memalign(call)) {
    Instruction& at = *after(call);
    Value* place = site(call);
    IRBuilder<> builder(&at);
    builder.SetInsertPoint(guard(builder.CreateIsNull(&call), at));
    Value* block = builder.CreateLoad(builder.getPtrTy(), call.getArgOperand(0));
    abi_.call(builder, "__stem_alloc", {block, call.getArgOperand(2), i32(0), place});
    abi_.call(builder, "__stem_store", {call.getArgOperand(0), builder.CreatePtrToInt(block, builder.getInt64Ty()), i32(0), i32(8), place});
  }
}

}  // namespace stem::pass
