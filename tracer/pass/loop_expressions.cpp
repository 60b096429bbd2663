// Loops that only compute: `for (i = 0; i < 40; ++i) h = (h ^ h >> 7) * c;`. A round of such a loop makes the same expressions out of
// the value that it began with, so nothing need be recorded while it runs: behind it one record says how often which
// expressions were made (STEM_RAW_Loop), and the collector makes them. A hash of forty rounds costs one record instead of 120.
//
// The loop is a straight line of blocks that is left at its beginning, touches no memory and calls nothing; one value of it may be
// symbolic when a round begins, and what is made from that only needs constants. Everything else is recorded operation by operation.
#include "tracer/pass/instrument.h"

#include "trace/raw.h"

#include <llvm/Analysis/LoopInfo.h>

using namespace llvm;

namespace stem::pass {

constexpr unsigned kMostNodes = 32;

// What a round makes of the value, in order; nothing if the loop is not of this kind.
bool FunctionInstrumenter::find_round(const Loop& loop, Computed& found) {
  BasicBlock* header = loop.getHeader();
  BasicBlock* exit = loop.getExitBlock();
  found.before = loop.getLoopPreheader();
  found.latch = loop.getLoopLatch();
  if (!loop.getSubLoops().empty() || !found.before || !found.latch || !exit || exit->getSinglePredecessor() != header || loop.getExitingBlock() != header) return false;
  SmallPtrSet<const Value*, 16> inside;
  for (BasicBlock* block = header;;) {
    if (block->hasAddressTaken()) return false;
    for (Instruction& instruction : *block) {
      if (isa<DbgInfoIntrinsic>(instruction)) continue;
      if (auto* phi = dyn_cast<PHINode>(&instruction)) {
        if (!symbolic_.may_be(phi)) continue;
        if (block != header || found.value || !phi->getType()->isIntegerTy()) return false;
        found.value = phi;
      } else if (symbolic_.may_be(&instruction)) {
        auto* binary = dyn_cast<BinaryOperator>(&instruction);
        if (!binary || binary->isIntDivRem() || found.round.size() == kMostNodes) return false;
        for (Use& operand : binary->operands())
          if (symbolic_.may_be(operand.get()) ? !inside.contains(operand.get()) || symbolic_.use(operand) != UseKind::Modelled : !isa<ConstantInt>(operand.get())) return false;
        found.round.push_back(binary);
      } else {
        if (instruction.mayReadOrWriteMemory() || isa<CallBase>(instruction) || (instruction.isTerminator() && !isa<BranchInst>(instruction))) return false;
        for (Value* operand : instruction.operands())
          if (symbolic_.may_be(operand)) return false;
        continue;
      }
      if (slots_.contains(&instruction)) return false;
      inside.insert(&instruction);
    }
    if (block == found.latch) break;
    auto* branch = cast<BranchInst>(block->getTerminator());
    BasicBlock* next = nullptr;
    for (BasicBlock* successor : branch->successors())
      if (loop.contains(successor)) next = next ? header : successor;
    if (!next || next == header) return false;
    block = next;
  }
  if (!found.value || !is_contained(found.round, found.value->getIncomingValueForBlock(found.latch))) return false;
  found.entry = static_cast<unsigned>(found.value->getBasicBlockIndex(found.before));
  found.result = found.value->getIncomingValueForBlock(found.latch);
  for (User* user : found.value->users())
    if (auto* phi = dyn_cast<PHINode>(user); phi && phi->getParent() == exit) return false;
  for (Instruction* made : found.round)
    for (User* user : made->users())
      if (!loop.contains(cast<Instruction>(user))) return false;
  return true;
}

void FunctionInstrumenter::find_computing_loops() {
  const LoopInfo loops(dominators_);
  for (Loop* loop : loops.getLoopsInPreorder()) {
    Computed found;
    if (!find_round(*loop, found)) continue;
    skipped_.insert(found.value);
    skipped_.insert(found.round.begin(), found.round.end());
    IRBuilder<> builder(&loop->getHeader()->front());
    PHINode* rounds = builder.CreatePHI(builder.getInt64Ty(), 2);
    builder.SetInsertPoint(found.latch->getTerminator());
    rounds->addIncoming(i64(0), found.before);
    rounds->addIncoming(builder.CreateAdd(rounds, i64(1)), found.latch);
    found.rounds = rounds;
    computed_[loop->getExitBlock()] = std::move(found);
  }
}

GlobalVariable* FunctionInstrumenter::round_record(const Computed& loop) {
  IntegerType* word = Type::getInt64Ty(context_);
  IntegerType* half = Type::getInt32Ty(context_);
  DenseMap<const Value*, unsigned> reference{{loop.value, 1}};
  SmallVector<Constant*, 8> nodes;
  auto* node_type = StructType::get(context_, {word, word, half, half});
  for (unsigned i = 0; i < loop.round.size(); ++i) {
    auto* binary = cast<BinaryOperator>(loop.round[i]);
    const unsigned width = width_of(binary->getType());
    uint64_t constant = 0;
    for (Value* operand : binary->operands())
      if (auto* number = dyn_cast<ConstantInt>(operand)) constant = number->getZExtValue();
    nodes.push_back(ConstantStruct::get(node_type, {i64(stem_expr_head(operation_of(*binary), width, width, 0)), i64(constant), i32(reference.lookup(binary->getOperand(0))), i32(reference.lookup(binary->getOperand(1)))}));
    reference[binary] = 2 + i;
  }
  auto* array = ConstantArray::get(ArrayType::get(node_type, nodes.size()), nodes);
  const unsigned result = reference.lookup(loop.result) - 2;
  Constant* whole = ConstantStruct::getAnon({i32(0), i32(0), i32(nodes.size()), i32(result), array});
  auto* global = new GlobalVariable(*function_.getParent(), whole->getType(), false, GlobalValue::PrivateLinkage, whole, "stem.round");
  global->setAlignment(Align(8));
  return global;
}

// At the beginning of the block behind the loop.
void FunctionInstrumenter::record_rounds(const Computed& loop, Instruction& at) {
  // Blocks before the loop may have been split since it was found.
  Value* first = id(loop.value->getIncomingValue(loop.entry), *loop.value->getIncomingBlock(loop.entry)->getTerminator());
  if (is_concrete(first)) return set_id(loop.value, first, at);
  IRBuilder<> builder(&at);
  Value* symbolic = builder.CreateIsNotNull(first);
  Instruction* inside = guard(symbolic, at);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  builder.SetInsertPoint(inside);
  Value* made = abi_.call(builder, "__stem_rounds", {round_record(loop), first, loop.rounds});
  builder.SetInsertPoint(&at);
  PHINode* result = builder.CreatePHI(builder.getInt32Ty(), 2);
  result->addIncoming(i32(0), before);
  result->addIncoming(made, inside->getParent());
  set_id(loop.value, result, at);
}

}  // namespace stem::pass
