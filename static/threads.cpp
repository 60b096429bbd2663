#include "static/threads.h"

#include <llvm/Analysis/CFG.h>
#include <llvm/IR/InstIterator.h>

namespace stem::analysis {

Threads::Threads(const llvm::Module& module, const PointerAnalysis& pointers) : pointers_(pointers) {
  if (const llvm::Function* entry = module.getFunction("main")) classes_.push_back({entry, {}, false, {}});
  for (const Creation& creation : pointers.creations()) {
    auto known = std::find_if(classes_.begin(), classes_.end(),
                              [&](const ThreadClass& thread) { return thread.entry == creation.entry; });
    if (known == classes_.end()) known = classes_.insert(classes_.end(), ThreadClass{creation.entry, {}, false, {}});
    known->created_at.push_back(creation.call);
  }
  for (const llvm::Function& function : module)
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        for (const llvm::Function* callee : pointers.callees(call)) {
          // The "callees" of a creation are the entries it starts: not calls in this thread.
          bool starts = std::any_of(pointers.creations().begin(), pointers.creations().end(), [&](const Creation& c) {
            return c.call == call && c.entry == callee;
          });
          if (!starts) callers_[callee].insert(call);
        }
  for (ThreadClass& thread : classes_) find_functions(thread);
  find_once(module);
}

void Threads::find_functions(ThreadClass& thread) {
  std::vector<const llvm::Function*> work{thread.entry};
  thread.functions.insert(thread.entry);
  while (!work.empty()) {
    const llvm::Function* function = work.back();
    work.pop_back();
    for (const llvm::Instruction& instruction : llvm::instructions(*function)) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (!call) continue;
      for (const llvm::Function* callee : pointers_.callees(call))
        if (callers_[callee].contains(call) && thread.functions.insert(callee).second) work.push_back(callee);
    }
  }
}

bool Threads::in_loop(const llvm::Instruction* instruction) const {
  const llvm::BasicBlock* block = instruction->getParent();
  for (const llvm::BasicBlock* next : llvm::successors(block))
    if (llvm::isPotentiallyReachable(next, block)) return true;
  return false;
}

// Grows from the entries downwards: once_ holds only functions whose whole chain of callers is known to run once.
void Threads::find_once(const llvm::Module& module) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (ThreadClass& thread : classes_) {
      bool single = thread.created_at.empty() ||
                    (thread.created_at.size() == 1 && once_.contains(thread.created_at[0]->getFunction()) &&
                     !in_loop(thread.created_at[0]));
      thread.many = !single;
      if (single && callers_[thread.entry].empty()) changed |= once_.emplace(thread.entry, nullptr).second;
    }
    for (const llvm::Function& function : module) {
      if (function.isDeclaration() || once_.contains(&function)) continue;
      const auto& callers = callers_[&function];
      if (callers.size() != 1) continue;
      const llvm::CallBase* call = *callers.begin();
      bool entry = std::any_of(classes_.begin(), classes_.end(), [&](const ThreadClass& t) { return t.entry == &function; });
      if (!entry && once_.contains(call->getFunction()) && !in_loop(call) && call->getFunction() != &function)
        changed |= once_.emplace(&function, call).second;
    }
  }
}

std::vector<uint32_t> Threads::classes_of(const llvm::Function* function) const {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < classes_.size(); ++i)
    if (classes_[i].functions.contains(function)) result.push_back(i);
  return result;
}

std::vector<const llvm::Instruction*> Threads::chain(const llvm::Instruction* instruction) const {
  std::vector<const llvm::Instruction*> result{instruction};
  for (;;) {
    auto known = once_.find(result.back()->getFunction());
    if (known == once_.end()) return {};
    if (!known->second) break;
    result.push_back(known->second);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

bool Threads::may_follow(const llvm::Instruction* first, const llvm::Instruction* second) const {
  auto a = chain(first), b = chain(second);
  if (a.empty() || b.empty()) return true;
  size_t level = 0;
  while (level + 1 < a.size() && level + 1 < b.size() && a[level] == b[level]) ++level;
  if (a[level]->getFunction() != b[level]->getFunction()) return true;  // of different threads
  if (a[level] == b[level]) return a.size() == b.size() ? in_loop(a[level]) : true;
  return llvm::isPotentiallyReachable(a[level]->getNextNode() ? a[level]->getNextNode() : a[level], b[level]);
}

bool Threads::may_precede(const llvm::Instruction* write, uint32_t writer, const llvm::Instruction* read,
                          uint32_t reader) const {
  if (writer == reader && !classes_[writer].many) return may_follow(write, read);
  // What main does before a thread exists cannot read what the thread writes.
  if (reader == 0 && writer != 0 && classes_[writer].created_at.size() > 0) {
    bool after_some_creation = false;
    for (const llvm::CallBase* creation : classes_[writer].created_at)
      after_some_creation |= classes_[0].functions.contains(creation->getFunction()) ? may_follow(creation, read) : true;
    return after_some_creation;
  }
  return true;
}

bool Threads::always_before_creation(const llvm::Instruction* instruction, uint32_t created) const {
  if (created == 0 || classes_[created].created_at.empty()) return false;
  auto path = chain(instruction);
  if (path.empty() || path[0]->getFunction() != classes_[0].entry) return false;
  for (const llvm::CallBase* creation : classes_[created].created_at) {
    auto other = chain(creation);
    if (other.empty() || other[0]->getFunction() != classes_[0].entry) return false;
    // Every step down to the instruction must be passed on every way to the creation.
    size_t level = 0;
    while (level + 1 < path.size() && level + 1 < other.size() && path[level] == other[level]) ++level;
    llvm::DominatorTree dominators(const_cast<llvm::Function&>(*path[level]->getFunction()));
    if (path[level] == other[level] || !dominators.dominates(path[level], other[level])) return false;
    for (size_t below = level + 1; below < path.size(); ++below) {
      llvm::PostDominatorTree after(const_cast<llvm::Function&>(*path[below]->getFunction()));
      if (!after.dominates(path[below]->getParent(), &path[below]->getFunction()->getEntryBlock())) return false;
    }
  }
  return true;
}

}  // namespace stem::analysis
