#include "static/joins.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

namespace stem::analysis {

namespace {

// What a function's loops do; costs too much for functions without creations or joins.
struct Loops {
  explicit Loops(llvm::Function& function)
      : dominators(function),
        loops(dominators),
        assumptions(function),
        library_info(llvm::Triple(function.getParent()->getTargetTriple())),
        library(library_info, &function),
        evolution(function, library, assumptions, dominators, loops) {}

  llvm::DominatorTree dominators;
  llvm::LoopInfo loops;
  llvm::AssumptionCache assumptions;
  llvm::TargetLibraryInfoImpl library_info;
  llvm::TargetLibraryInfo library;
  llvm::ScalarEvolution evolution;
};

// Where a handle is: so many bytes into a variable; nothing: not a constant.
struct Handle {
  const llvm::Value* variable;
  std::optional<int64_t> offset;
  const llvm::Value* address;
};

class Finder {
 public:
  Finder(const llvm::Module& module, const PointerAnalysis& pointers,
         const std::function<bool(const llvm::Function*)>& once)
      : layout_(module.getDataLayout()), pointers_(pointers), once_(once) {
    for (const Creation& creation : pointers.creations()) calls_.insert(creation.call);
  }

  std::map<const llvm::CallBase*, std::vector<JoinPoint>> run(const llvm::Module& module) {
    std::vector<const llvm::CallBase*> joins;
    for (const llvm::Function& function : module) {
      if (function.isDeclaration() || !once_(&function)) continue;
      for (const llvm::BasicBlock& block : function)
        for (const llvm::Instruction& instruction : block)
          if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && waits(*call)) joins.push_back(call);
    }
    std::map<const llvm::CallBase*, std::vector<JoinPoint>> found;
    for (const llvm::CallBase* call : calls_) {
      const std::optional<Handle> made = handle_of_creation(*call);
      if (!made || !only_created(*made, call)) continue;
      for (const llvm::CallBase* join : joins)
        if (auto point = matches(*call, *made, *join)) found[call].push_back(*point);
    }
    return found;
  }

 private:
  bool waits(const llvm::CallBase& call) const {
    const llvm::Function* callee = call.getCalledFunction();
    return callee && pointers_.joins(&call) &&
           (callee->getName() == "pthread_join" || callee->getName() == "thrd_join");
  }

  Handle handle_at(const llvm::Value* address) const {
    Handle handle{address, 0, address};
    while (auto* step = llvm::dyn_cast<llvm::GEPOperator>(handle.variable)) {
      handle.variable = step->getPointerOperand();
      llvm::APInt offset(64, 0);
      if (handle.offset && step->accumulateConstantOffset(layout_, offset))
        *handle.offset += offset.getSExtValue();
      else
        handle.offset.reset();
    }
    return handle;
  }

  // pthread_create(&handle, no attributes, ...), thrd_create(&handle, ...).
  std::optional<Handle> handle_of_creation(const llvm::CallBase& call) const {
    const llvm::Function* callee = call.getCalledFunction();
    if (!callee || !once_(call.getFunction())) return std::nullopt;
    const bool posix = callee->getName() == "pthread_create";
    if (!posix && callee->getName() != "thrd_create") return std::nullopt;
    if (posix && !llvm::isa<llvm::ConstantPointerNull>(call.getArgOperand(1))) return std::nullopt;
    return handle_at(call.getArgOperand(0));
  }

  // Does nobody but this creation write there? The variable's address must not go anywhere else.
  bool only_created(const Handle& made, const llvm::CallBase* creation) const {
    if (!llvm::isa<llvm::AllocaInst>(made.variable) && !llvm::isa<llvm::GlobalVariable>(made.variable)) return false;
    std::vector<const llvm::Value*> todo{made.variable};
    while (!todo.empty()) {
      const llvm::Value* value = todo.back();
      todo.pop_back();
      for (const llvm::User* user : value->users()) {
        if (llvm::isa<llvm::LoadInst>(user)) continue;
        if (llvm::isa<llvm::GEPOperator>(user)) {
          todo.push_back(user);
          continue;
        }
        auto* call = llvm::dyn_cast<llvm::CallBase>(user);
        if (!call) return false;
        if (call == creation || llvm::isa<llvm::LifetimeIntrinsic>(call)) continue;
        // Another creation, elsewhere in the variable.
        if (!calls_.contains(call) || call->getArgOperand(0) != value) return false;
        for (unsigned i = 1; i < call->arg_size(); ++i)
          if (call->getArgOperand(i) == value) return false;
        const Handle other = handle_at(call->getArgOperand(0));
        if (!made.offset || !other.offset || *made.offset == *other.offset) return false;
      }
    }
    return true;
  }

  Loops& loops_of(const llvm::Function* function) {
    auto& known = loops_[function];
    if (!known) known = std::make_unique<Loops>(const_cast<llvm::Function&>(*function));
    return *known;
  }

  // Does the join wait for all that the creation made?
  std::optional<JoinPoint> matches(const llvm::CallBase& creation, const Handle& made, const llvm::CallBase& join) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(join.getArgOperand(0));
    if (!load) return std::nullopt;
    const Handle waited = handle_at(load->getPointerOperand());
    if (waited.variable != made.variable) return std::nullopt;
    Loops &makes = loops_of(creation.getFunction()), &waits = loops_of(join.getFunction());
    llvm::Loop *first = makes.loops.getLoopFor(creation.getParent()),
               *second = waits.loops.getLoopFor(join.getParent());
    if (!first && !second) {
      if (!made.offset || !waited.offset || *made.offset != *waited.offset) return std::nullopt;
      return JoinPoint{&join, nullptr};
    }
    if (!first || !second || first == second || creation.getFunction() != join.getFunction()) return std::nullopt;
    if (first->getParentLoop() || second->getParentLoop()) return std::nullopt;
    // The loop of joins has one way out, at its end or its beginning, and joins every time round. One that is left at
    // its beginning joins once less often than that is passed, and so must the other create.
    llvm::BasicBlock *latch = second->getLoopLatch(), *last = second->getExitingBlock(), *out = second->getExitBlock();
    if (!latch || !last || !out || out->getSinglePredecessor() != last) return std::nullopt;
    if (!waits.dominators.dominates(join.getParent(), latch)) return std::nullopt;
    const bool at_beginning = last != latch && last == second->getHeader() && join.getParent() != last &&
                              first->getExitingBlock() == first->getHeader() &&
                              creation.getParent() != first->getHeader();
    if (last != latch && !at_beginning) return std::nullopt;
    llvm::ScalarEvolution& evolution = makes.evolution;
    const llvm::SCEV *times = evolution.getBackedgeTakenCount(first), *again = evolution.getBackedgeTakenCount(second);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(times) || times != again) return std::nullopt;
    auto* filled = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(const_cast<llvm::Value*>(made.address)));
    auto* emptied = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(const_cast<llvm::Value*>(waited.address)));
    if (!filled || !emptied || filled->getLoop() != first || emptied->getLoop() != second || !filled->isAffine() ||
        !emptied->isAffine() || filled->getStart() != emptied->getStart() ||
        filled->getStepRecurrence(evolution) != emptied->getStepRecurrence(evolution) ||
        filled->getStepRecurrence(evolution)->isZero())
      return std::nullopt;
    return JoinPoint{&join, out};
  }

  const llvm::DataLayout& layout_;
  const PointerAnalysis& pointers_;
  const std::function<bool(const llvm::Function*)>& once_;
  std::set<const llvm::CallBase*> calls_;
  std::map<const llvm::Function*, std::unique_ptr<Loops>> loops_;
};

}  // namespace

std::map<const llvm::CallBase*, std::vector<JoinPoint>> find_joins(
    const llvm::Module& module, const PointerAnalysis& pointers,
    const std::function<bool(const llvm::Function*)>& once) {
  for (const char* name : {"pthread_detach", "thrd_detach", "pthread_attr_setdetachstate"})
    if (const llvm::Function* detach = module.getFunction(name); detach && !detach->use_empty()) return {};
  return Finder(module, pointers, once).run(module);
}

}  // namespace stem::analysis
