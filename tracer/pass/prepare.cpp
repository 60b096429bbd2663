#include "tracer/pass/prepare.h"

#include "tracer/pass/loop_reads.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/CodeGen/AtomicExpandUtils.h>
#include <llvm/IR/GlobalIFunc.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

using namespace llvm;

namespace stem::pass {

// A function that resolves another while the program is still being linked cannot call the runtime.
static bool resolves_ifunc(const Function& function) {
  for (const GlobalIFunc& ifunc : function.getParent()->ifuncs())
    if (ifunc.getResolverFunction() == &function) return true;
  return false;
}

bool instrumentable(const Function& function) {
  return !function.isDeclaration() && !function.hasFnAttribute(Attribute::Naked) && !function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) &&
         !function.getName().starts_with("__stem_") && !resolves_ifunc(function);
}

static void promote_locals(Function& function, FunctionAnalysisManager& analyses) {
  const bool not_optimised = function.hasOptNone();
  if (not_optimised) function.removeFnAttr(Attribute::OptimizeNone);
  removeUnreachableBlocks(function);
  analyses.invalidate(function, PreservedAnalyses::none());
  SROAPass(SROAOptions::PreserveCFG).run(function, analyses);
  analyses.invalidate(function, PreservedAnalyses::none());
  if (not_optimised) function.addFnAttr(Attribute::OptimizeNone);
}

// A load or store of { i64, i64 } becomes one of each member.
static void split_aggregates(Function& function) {
  SmallVector<Instruction*, 8> work;
  for (Instruction& instruction : instructions(function)) {
    if (auto* load = dyn_cast<LoadInst>(&instruction); load && load->getType()->isAggregateType()) work.push_back(load);
    if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->getValueOperand()->getType()->isAggregateType()) work.push_back(store);
  }
  const DataLayout& layout = function.getDataLayout();
  while (!work.empty()) {
    Instruction* access = work.pop_back_val();
    IRBuilder<> builder(access);
    Value* pointer = getLoadStorePointerOperand(access);
    Type* type = getLoadStoreType(access);
    const unsigned count = type->isArrayTy() ? static_cast<unsigned>(type->getArrayNumElements()) : type->getStructNumElements();
    Value* whole = PoisonValue::get(type);
    for (unsigned i = 0; i < count; ++i) {
      const uint64_t offset = type->isArrayTy() ? i * layout.getTypeAllocSize(type->getArrayElementType()).getFixedValue() : layout.getStructLayout(cast<StructType>(type))->getElementOffset(i).getFixedValue();
      Type* element = type->isArrayTy() ? type->getArrayElementType() : type->getStructElementType(i);
      Value* address = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), pointer, offset);
      const Align align = commonAlignment(getLoadStoreAlignment(access), offset);
      Instruction* piece;
      if (auto* store = dyn_cast<StoreInst>(access)) {
        piece = builder.CreateAlignedStore(builder.CreateExtractValue(store->getValueOperand(), i), address, align, store->isVolatile());
      } else {
        piece = builder.CreateAlignedLoad(element, address, align, cast<LoadInst>(access)->isVolatile());
        whole = builder.CreateInsertValue(whole, piece, i);
      }
      if (element->isAggregateType()) work.push_back(piece);
    }
    if (!access->getType()->isVoidTy()) access->replaceAllUsesWith(whole);
    access->eraseFromParent();
  }
}

// What nobody initialised (a lambda without captures, a local that was never set) has any value, another one at each use: the optimiser
// drops the store of it after we have told of it. From here on it is zero.
static void settle_undefined(Function& function) {
  for (Instruction& instruction : instructions(function)) {
    if (auto* store = dyn_cast<StoreInst>(&instruction))
      if (auto* part = dyn_cast<ExtractValueInst>(store->getValueOperand()))
        if (Value* inserted = FindInsertedValue(part->getAggregateOperand(), part->getIndices())) store->setOperand(0, inserted);
    auto* call = dyn_cast<CallBase>(&instruction);
    const bool takes = isa<StoreInst, PHINode, SelectInst, ReturnInst, CmpInst, BinaryOperator, CastInst>(instruction) || (call && !isa<IntrinsicInst>(call));
    if (!takes) continue;
    for (Use& use : call ? call->args() : instruction.operands())
      if (isa<UndefValue>(use.get()) && use->getType()->isSingleValueType()) use.set(Constant::getNullValue(use->getType()));
  }
}

// The runtime knows the integer operations; the others become loops around a compare-and-swap.
static void expand_atomics(Function& function) {
  SmallVector<AtomicRMWInst*, 4> work;
  for (Instruction& instruction : instructions(function)) {
    auto* rmw = dyn_cast<AtomicRMWInst>(&instruction);
    if (!rmw) continue;
    const auto operation = rmw->getOperation();
    if (operation > AtomicRMWInst::UMin || (operation == AtomicRMWInst::Xchg && rmw->getType()->isFloatingPointTy())) work.push_back(rmw);
  }
  for (AtomicRMWInst* rmw : work) {
    expandAtomicRMWToCmpXchg(rmw, [](IRBuilderBase& builder, Value* address, Value* loaded, Value* wanted, Align align, AtomicOrdering ordering, SyncScope::ID scope, Value*& success, Value*& now) {
      Type* type = wanted->getType();
      Type* number = builder.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue()));
      Value* pair = builder.CreateAtomicCmpXchg(address, builder.CreateBitCast(loaded, number), builder.CreateBitCast(wanted, number), align, ordering,
                                                AtomicCmpXchgInst::getStrongestFailureOrdering(ordering), scope);
      success = builder.CreateExtractValue(pair, 1);
      now = builder.CreateBitCast(builder.CreateExtractValue(pair, 0), type);
    });
  }
}

static void loosen_calls(Function& function) {
  SmallVector<InvokeInst*, 8> invokes;
  for (Instruction& instruction : instructions(function)) {
    if (auto* call = dyn_cast<CallInst>(&instruction); call && call->isMustTailCall() && !function.isVarArg()) call->setTailCallKind(CallInst::TCK_None);
    if (auto* invoke = dyn_cast<InvokeInst>(&instruction)) invokes.push_back(invoke);
  }
  for (InvokeInst* invoke : invokes)
    if (!invoke->getNormalDest()->getSinglePredecessor() || isa<PHINode>(invoke->getNormalDest()->front())) SplitEdge(invoke->getParent(), invoke->getNormalDest());
}

void prepare(Function& function, FunctionAnalysisManager& analyses) {
  promote_locals(function, analyses);
  split_aggregates(function);
  settle_undefined(function);
  expand_atomics(function);
  loosen_calls(function);
  analyses.invalidate(function, PreservedAnalyses::none());
  merge_loop_reads(function, analyses);
  analyses.invalidate(function, PreservedAnalyses::none());
}

}  // namespace stem::pass
