// A plain read from the same address, in a loop that neither synchronises nor calls nor writes there, is one that every optimiser
// takes out of the loop: the program that runs without STEM reads once. So do we, or a loop over an array whose bound is a
// global variable would be recorded three times as dearly as TSan does it. Only with optimisation: at -O0 every read is recorded.
//
// The loop is the outermost one in which this holds. Each site keeps an event: the first time that its block comes up after the
// loop was entered, all of its reads are made; then the values are those of the first read, and a flag says that it was made. No
// read is made that the source would not make, none before its time.
//
// Not merged: a read that decides alone when a loop ends (`while (!stop)`, `if (done) break;`): somebody waits for another
// thread there.
//
// Costs: a test of a flag for each block that had such reads, in registers.
#include "tracer/pass/loop_reads.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

using namespace llvm;

namespace stem::pass {

namespace {

constexpr unsigned kMostStores = 100;  // in a loop; beyond that nobody is asked whether they write where a load reads

class LoopReads {
 public:
  LoopReads(Function& function, FunctionAnalysisManager& analyses)
      : function_(function), loops_(analyses.getResult<LoopAnalysis>(function)), dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        aliases_(analyses.getResult<AAManager>(function)) {}

  void run() {
    for (Loop* loop : loops_) visit(*loop);
    if (chosen_.empty()) return;
    plan();
    for (size_t i = 0; i < flags_.size(); ++i) rewrite((places_.begin() + static_cast<ptrdiff_t>(i))->second, flags_[i]);
    DominatorTree fresh(function_);
    PromoteMemToReg(slots_, fresh);
  }

 private:
  // Nothing in it but arithmetic and plain accesses.
  static bool is_quiet(const Loop& loop) {
    for (const BasicBlock* block : loop.blocks()) {
      if (block->hasAddressTaken()) return false;
      for (const Instruction& instruction : *block) {
        if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
          if (!load->isSimple()) return false;
        } else if (const auto* store = dyn_cast<StoreInst>(&instruction)) {
          if (!store->isSimple()) return false;
        } else if (const auto* call = dyn_cast<CallBase>(&instruction)) {
          if (!isa<IntrinsicInst>(call) || (!call->doesNotAccessMemory() && !isa<AssumeInst>(call))) return false;
        } else if (instruction.mayReadOrWriteMemory() || instruction.isEHPad()) {
          return false;
        }
      }
    }
    return true;
  }

  bool is_written(const LoadInst& load, const Loop& loop) {
    unsigned asked = 0;
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block)
        if (isa<StoreInst>(instruction) && (++asked > kMostStores || isModSet(aliases_.getModRefInfo(&instruction, MemoryLocation::get(&load))))) return true;
    return false;
  }

  void visit(Loop& loop) {
    if (!loop.getLoopPreheader() || !is_quiet(loop)) {
      for (Loop* inner : loop.getSubLoops()) visit(*inner);
      return;
    }
    SmallSetVector<LoadInst*, 16> candidates;
    for (BasicBlock* block : loop.blocks()) {
      for (Instruction& instruction : *block) {
        auto* load = dyn_cast<LoadInst>(&instruction);
        if (!load || chosen_.contains(load) || !load->getType()->isSingleValueType() || !loop.isLoopInvariant(load->getPointerOperand()) || is_written(*load, loop)) continue;
        candidates.insert(load);
      }
    }
    keep_deciding(loop, candidates);
    for (LoadInst* load : candidates) chosen_[load] = &loop;
    for (Loop* inner : loop.getSubLoops()) visit(*inner);
  }

  // Takes out of the candidates what decides by itself when this loop or one in it ends.
  void keep_deciding(Loop& loop, SmallSetVector<LoadInst*, 16>& candidates) {
    for (Loop* inner : loop.getLoopsInPreorder()) {
      SmallVector<BasicBlock*, 4> exiting;
      inner->getExitingBlocks(exiting);
      for (BasicBlock* block : exiting) {
        SmallVector<Value*, 8> work;
        if (auto* branch = dyn_cast<BranchInst>(block->getTerminator()); branch && branch->isConditional()) work.push_back(branch->getCondition());
        if (auto* choice = dyn_cast<SwitchInst>(block->getTerminator())) work.push_back(choice->getCondition());
        SmallPtrSet<Value*, 8> seen;
        while (!work.empty()) {  // conditions that are joined by && and || stand for themselves
          Value* condition = work.pop_back_val();
          auto* instruction = dyn_cast<Instruction>(condition);
          if (!instruction || !seen.insert(condition).second) continue;
          const bool joins = instruction->getType()->isIntegerTy(1) && (isa<BinaryOperator>(instruction) || isa<SelectInst>(instruction) ||
                                                                        (isa<PHINode>(instruction) && instruction->getParent() != inner->getHeader()));
          if (joins) {
            for (Value* operand : instruction->operands()) work.push_back(operand);
            continue;
          }
          SmallVector<LoadInst*, 4> reads;
          if (varies(condition, *inner, candidates, reads)) continue;
          for (LoadInst* read : reads) candidates.remove(read);
        }
      }
    }
  }

  // Does it take another value in another round, though the candidates keep theirs? Also collects which of them it is made from.
  static bool varies(Value* value, const Loop& loop, const SmallSetVector<LoadInst*, 16>& candidates, SmallVectorImpl<LoadInst*>& reads) {
    SmallVector<Value*, 8> work{value};
    SmallPtrSet<Value*, 16> seen;
    bool varies = false;
    while (!work.empty()) {
      auto* instruction = dyn_cast<Instruction>(work.pop_back_val());
      if (!instruction || !seen.insert(instruction).second) continue;
      auto* load = dyn_cast<LoadInst>(instruction);
      if (load && candidates.contains(load)) {
        reads.push_back(load);
        continue;
      }
      if (!loop.contains(instruction)) continue;
      if (load || (isa<PHINode>(instruction) && instruction->getParent() == loop.getHeader())) {
        varies = true;
        continue;
      }
      for (Value* operand : instruction->operands()) work.push_back(operand);
    }
    return varies;
  }

  // Reads of one address in one loop share the value of the first, where there is one that comes before all of them.
  void plan() {
    struct First {
      LoadInst* load;
      Loop* loop;
      AllocaInst* slot;
    };
    std::vector<First> firsts;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_)) {
      for (Instruction& instruction : *block) {
        auto* load = dyn_cast<LoadInst>(&instruction);
        Loop* loop = load ? chosen_.lookup(load) : nullptr;
        if (!loop) continue;
        const auto first = find_if(firsts, [&](const First& f) {
          return f.loop == loop && f.load->getPointerOperand() == load->getPointerOperand() && f.load->getType() == load->getType() && dominators_.dominates(f.load, load);
        });
        const bool is_first = first == firsts.end();
        AllocaInst* slot = is_first ? new_slot(load->getType(), *loop) : first->slot;
        if (is_first) firsts.push_back({load, loop, slot});
        places_[{block, loop}].push_back({load, slot, is_first});
      }
    }
    for (auto& [where, reads] : places_) flags_.push_back(new_slot(Type::getInt1Ty(function_.getContext()), *where.second));
  }

  AllocaInst* new_slot(Type* type, Loop& loop) {
    BasicBlock& entry = function_.getEntryBlock();
    slots_.push_back(IRBuilder<>(&entry, entry.begin()).CreateAlloca(type, nullptr, "stem.once"));
    IRBuilder<>(loop.getLoopPreheader()->getTerminator()).CreateStore(Constant::getNullValue(type), slots_.back());
    return slots_.back();
  }

  struct Read {
    LoadInst* load;
    AllocaInst* slot;
    bool first;
  };

  static void rewrite(ArrayRef<Read> reads, AllocaInst* flag) {
    IRBuilder<> builder(reads.front().load);
    Value* open = builder.CreateNot(builder.CreateLoad(builder.getInt1Ty(), flag));
    Instruction* inside = SplitBlockAndInsertIfThen(open, reads.front().load->getIterator(), false);
    builder.SetInsertPoint(inside);
    builder.CreateStore(builder.getTrue(), flag);
    for (const Read& read : reads) {
      IRBuilder<> at(read.load);
      Value* kept = at.CreateLoad(read.load->getType(), read.slot);
      read.load->replaceAllUsesWith(kept);
      read.load->moveBefore(inside);
      builder.SetInsertPoint(inside);
      if (read.first) builder.CreateStore(read.load, read.slot);
    }
  }

  Function& function_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  AAResults& aliases_;
  DenseMap<LoadInst*, Loop*> chosen_;
  MapVector<std::pair<BasicBlock*, Loop*>, SmallVector<Read, 4>> places_;
  SmallVector<AllocaInst*, 8> flags_;  // one a place: its reads were made
  SmallVector<AllocaInst*, 16> slots_;
};

}  // namespace

void merge_loop_reads(Function& function, FunctionAnalysisManager& analyses) {
  if (function.hasOptNone()) return;
  LoopReads(function, analyses).run();
  analyses.invalidate(function, PreservedAnalyses::none());
}

}  // namespace stem::pass
