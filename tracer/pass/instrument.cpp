#include "tracer/pass/instrument.h"

#include "trace/raw.h"
#include "tracer/pass/library.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

using namespace llvm;

namespace stem::pass {

// Above so many accesses a function is big enough that what the compiler must chew matters more than the calls.
constexpr unsigned kMany = 200, kManyInlined = 8;

FunctionInstrumenter::FunctionInstrumenter(Function& function, const Abi& abi, Sites& sites, const Sharing& sharing, const TargetLibraryInfo& library, const SiteMap& site_of)
    : function_(function), context_(function.getContext()), layout_(function.getDataLayout()), abi_(abi), sites_(sites), sharing_(sharing), library_(library), site_of_(site_of),
      symbolic_(function, sharing, library), dominators_(function) {
  for (const BasicBlock& block : function) {
    unsigned ordinal = 0;
    for (const Instruction& instruction : block) positions_[&instruction] = {&block, ordinal++};
  }
}

void FunctionInstrumenter::run() {
  std::vector<std::pair<BasicBlock*, std::vector<Instruction*>>> blocks;
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_)) {
    std::vector<Instruction*> instructions;
    for (Instruction& instruction : *block) instructions.push_back(&instruction);
    blocks.push_back({block, std::move(instructions)});
  }
  // Values that keep their id in a slot, decided while all uses are still the program's own.
  SmallVector<Value*, 16> wanted;
  for (Argument& argument : function_.args())
    if (symbolic_.may_be(&argument) && symbolic_.pinned_elsewhere(&argument)) wanted.push_back(&argument);
  for (Instruction& instruction : instructions(function_))
    if (symbolic_.may_be(&instruction) && !isa<AtomicCmpXchgInst>(instruction) && symbolic_.pinned_elsewhere(&instruction)) wanted.push_back(&instruction);

  unsigned accesses = 0;
  for (const auto& [instruction, position] : positions_) accesses += isa<LoadInst>(instruction) || isa<StoreInst>(instruction);
  calls_only_ = accesses > (function_.hasFnAttribute(Attribute::AlwaysInline) ? kManyInlined : kMany);

  BasicBlock& entry = function_.getEntryBlock();
  entry_ = &*entry.getFirstInsertionPt();
  while (isa<AllocaInst>(entry_) && cast<AllocaInst>(entry_)->isStaticAlloca()) entry_ = entry_->getNextNode();
  // A place that stays, whatever is replaced around it.
  entry_ = IRBuilder<>(entry_).CreateIntrinsic(Type::getVoidTy(context_), Intrinsic::donothing, {});
  for (Value* value : wanted) {
    IRBuilder<> builder(&entry, entry.getFirstInsertionPt());
    slots_[value] = builder.CreateAlloca(builder.getInt32Ty(), nullptr, "stem.id");
  }
  find_computing_loops();
  // Ids of phis first: a loop uses them before they are complete.
  for (auto& [block, list] : blocks) {
    for (Instruction* instruction : list) {
      auto* phi = dyn_cast<PHINode>(instruction);
      if (!phi || !symbolic_.may_be(phi) || skipped_.contains(phi)) continue;
      auto* ids = PHINode::Create(Type::getInt32Ty(context_), phi->getNumIncomingValues(), "", phi->getIterator());
      phis_.push_back({phi, ids});
      set_id(phi, ids, *block->getFirstInsertionPt());
    }
  }
  prologue();
  for (auto& [block, list] : blocks) {
    if (const auto loop = computed_.find(block); loop != computed_.end()) record_rounds(loop->second, *block->getFirstInsertionPt());
    for (Instruction* instruction : list) {
      if (skipped_.contains(instruction)) continue;
      if (instruction->isTerminator()) force_all(*instruction);
      visit(*instruction);
    }
    pending_.clear();
  }
  finish_phis();
  entry_->eraseFromParent();
  for (Instruction* instruction : dead_) instruction->deleteValue();
}

void FunctionInstrumenter::visit(Instruction& instruction) {
  if (auto* load = dyn_cast<LoadInst>(&instruction)) return visit_load(*load);
  if (auto* store = dyn_cast<StoreInst>(&instruction)) return visit_store(*store);
  if (auto* rmw = dyn_cast<AtomicRMWInst>(&instruction)) return visit_rmw(*rmw);
  if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) return visit_exchange(*exchange);
  if (auto* copy = dyn_cast<MemTransferInst>(&instruction)) return visit_copy(*copy);
  if (auto* fill = dyn_cast<MemSetInst>(&instruction)) return visit_fill(*fill);
  if (auto* local = dyn_cast<AllocaInst>(&instruction)) return visit_alloca(*local);
  if (auto* branch = dyn_cast<BranchInst>(&instruction)) {
    if (branch->isConditional()) visit_branch(*branch, branch->getCondition());
    return;
  }
  if (auto* choice = dyn_cast<SwitchInst>(&instruction)) return visit_switch(*choice);
  if (auto* result = dyn_cast<ReturnInst>(&instruction)) return visit_return(*result);
  if (isa<PHINode>(instruction)) return;
  if (auto* call = dyn_cast<CallBase>(&instruction); call && !isa<IntrinsicInst>(call)) return visit_call(*call);
  if (Symbolic::models(instruction) || symbolic_.may_be(&instruction)) return visit_expression(instruction);
  pin_operands(instruction);
}

// The failed assertion that one way of a branch leads straight to, and which way that is.
static std::pair<const CallBase*, bool> failing_edge(const BranchInst& branch) {
  for (unsigned i = 0; i < 2; ++i) {
    const BasicBlock* next = branch.getSuccessor(i);
    for (int steps = 0; next && steps < 4; ++steps) {
      for (const Instruction& instruction : *next)
        if (const auto* call = dyn_cast<CallBase>(&instruction); call && is_assertion_failure(*call)) return {call, i == 0};
      next = next->getSingleSuccessor();
    }
  }
  return {nullptr, false};
}

void FunctionInstrumenter::visit_branch(Instruction& instruction, Value* condition) {
  Value* symbol = id(condition, instruction);
  if (is_concrete(symbol)) return;
  Value* place = site(instruction);
  const auto [failure, fails_if_true] = failing_edge(cast<BranchInst>(instruction));
  IRBuilder<> builder(&instruction);
  Instruction* inside = guard(builder.CreateIsNotNull(symbol), instruction);
  builder.SetInsertPoint(inside);
  Value* outcome = builder.CreateZExt(condition, builder.getInt64Ty());
  if (failure) {
    // The condition that must hold is the branch's own, or its negation. A failure is recorded where it is reported.
    Value* held_id = !fails_if_true ? symbol : abi_.call(builder, "__stem_binary", {i32(STEM_OP_Eq), i32(1), symbol, i32(0), outcome, i64(0)});
    Value* held = !fails_if_true ? condition : builder.CreateNot(condition);
    Instruction* then = SplitBlockAndInsertIfThen(held, builder.GetInsertPoint(), false);
    builder.SetInsertPoint(then);
    abi_.call(builder, "__stem_assert", {held_id, i64(1), site_of_.lookup(failure)});
    builder.SetInsertPoint(inside);
  }
  abi_.call(builder, "__stem_branch", {symbol, outcome, place});
  pins_[condition].push_back(&instruction);
}

void FunctionInstrumenter::visit_switch(SwitchInst& instruction) {
  Value* symbol = id(instruction.getCondition(), instruction);
  if (is_concrete(symbol)) return;
  Value* place = site(instruction);
  IRBuilder<> builder(&instruction);
  builder.SetInsertPoint(guard(builder.CreateIsNotNull(symbol), instruction));
  abi_.call(builder, "__stem_branch", {symbol, as_number(builder, instruction.getCondition()), place});
}

Value* FunctionInstrumenter::site(Instruction& instruction) {
  if (GlobalVariable* known = site_of_.lookup(&instruction)) return known;
  GlobalVariable*& made = pin_sites_[&instruction];
  if (!made) made = sites_.add(instruction, {STEM_SITE_PIN, instruction.getOpcodeName(), "", "", 0});
  return made;
}

// What stands before the place moves to a new block, not what stands after it: blocks are worked through from their beginning, and
// moving the long rest at every guard would take time in the square of their size. A block that is jumped to by its address must
// stay the first part, so there the rest moves.
Instruction* FunctionInstrumenter::guard(Value* condition, Instruction& before) {
  MDNode* weights = MDBuilder(context_).createUnlikelyBranchWeights();
  BasicBlock* rest = before.getParent();
  if (rest->hasAddressTaken()) return SplitBlockAndInsertIfThen(condition, before.getIterator(), false, weights);
  BasicBlock* first = rest->splitBasicBlockBefore(before.getIterator());
  BasicBlock* then = BasicBlock::Create(context_, "", &function_, rest);
  BranchInst* end = BranchInst::Create(rest, then);
  end->setDebugLoc(before.getDebugLoc());
  Instruction* jump = first->getTerminator();
  BranchInst* choice = BranchInst::Create(then, rest, condition, jump->getIterator());
  choice->setDebugLoc(before.getDebugLoc());
  choice->setMetadata(LLVMContext::MD_prof, weights);
  jump->eraseFromParent();
  return end;
}

Value* FunctionInstrumenter::as_number(IRBuilder<>& builder, Value* value) {
  Type* type = value->getType();
  if (type->isPointerTy()) return builder.CreatePtrToInt(value, builder.getInt64Ty());
  if (type->isFloatingPointTy()) value = builder.CreateBitCast(value, builder.getIntNTy(width_of(type)));
  return builder.CreateZExt(value, builder.getInt64Ty());
}

Value* FunctionInstrumenter::as_number(Value* value, Instruction& at) {
  IRBuilder<> builder(&at);
  return as_number(builder, value);
}

void FunctionInstrumenter::replace(Instruction& old, Value* now) {
  symbolic_.replaced(&old, now);
  if (auto found = ids_.find(&old); found != ids_.end()) {
    Value* kept = found->second;
    ids_[now] = kept;
  }
  if (auto found = slots_.find(&old); found != slots_.end()) {
    AllocaInst* kept = found->second;
    slots_[now] = kept;
  }
  if (auto found = exchange_ids_.find(&old); found != exchange_ids_.end()) {
    const auto kept = found->second;
    exchange_ids_[now] = kept;
  }
  if (!isa<Constant>(now)) now->takeName(&old);
  old.replaceAllUsesWith(now);
  // Not deleted yet: its address must not come back as another instruction while the maps know it.
  old.removeFromParent();
  dead_.push_back(&old);
}

Value* FunctionInstrumenter::tls_load(IRBuilder<>& builder, Type* type, size_t offset) { return builder.CreateLoad(type, abi_.tls(builder, offset)); }

void FunctionInstrumenter::tls_store(IRBuilder<>& builder, Value* value, size_t offset) { builder.CreateStore(value, abi_.tls(builder, offset)); }

}  // namespace stem::pass
