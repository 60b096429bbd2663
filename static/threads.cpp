#include "static/threads.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace stem::analysis {

namespace {

// Constructors run before main, destructors after it, both in main's thread.
void add_structors(const llvm::Module& module, const char* name, std::vector<const llvm::Function*>& roots) {
  const llvm::GlobalVariable* list = module.getGlobalVariable(name);
  if (!list || !list->hasInitializer()) return;
  auto* entries = llvm::dyn_cast<llvm::ConstantArray>(list->getInitializer());
  if (!entries) return;
  for (const llvm::Use& entry : entries->operands())
    if (auto* fields = llvm::dyn_cast<llvm::ConstantStruct>(entry.get()))
      if (auto* function = llvm::dyn_cast<llvm::Function>(fields->getOperand(1)->stripPointerCastsAndAliases()))
        roots.push_back(function);
}

}  // namespace

Threads::Threads(const llvm::Module& module, const PointerAnalysis& pointers) : pointers_(pointers) {
  find_callers(module);
  const auto& anywhere = pointers.anywhere();
  std::vector<const llvm::Function*> everywhere(anywhere.begin(), anywhere.end());
  std::vector<std::vector<const llvm::Function*>> roots;
  if (const llvm::Function* entry = module.getFunction("main"); entry && !entry->isDeclaration()) {
    classes_.push_back({entry, {}, false});
    roots.push_back({entry});
    add_structors(module, "llvm.global_ctors", roots[0]);
    add_structors(module, "llvm.global_dtors", roots[0]);
    for (const llvm::Function* root : roots[0])
      if (root != entry) not_once_.insert(root);
  }
  for (const Creation& creation : pointers.creations()) {
    auto known = std::find_if(classes_.begin(), classes_.end(),
                              [&](const ThreadClass& thread) { return thread.entry == creation.entry; });
    if (known == classes_.end()) {
      known = classes_.insert(classes_.end(), ThreadClass{creation.entry, {}, false});
      roots.push_back({creation.entry});
    }
    known->created_at.push_back(creation.call);
  }
  if (!pointers.external_functions().empty()) {
    classes_.push_back({nullptr, {}, true});
    roots.push_back({pointers.external_functions().begin(), pointers.external_functions().end()});
  }
  not_once_.insert(anywhere.begin(), anywhere.end());
  not_once_.insert(pointers.external_functions().begin(), pointers.external_functions().end());
  for (uint32_t i = 0; i < classes_.size(); ++i) {
    roots[i].insert(roots[i].end(), everywhere.begin(), everywhere.end());
    find_functions(i, roots[i]);
  }
  find_once(module);
  joins_ = find_joins(module, pointers, [this](const llvm::Function* function) { return runs_once(function); });
}

void Threads::find_callers(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    std::set<const llvm::Function*> callees;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (!call) continue;
      if (call->hasFnAttr(llvm::Attribute::ReturnsTwice)) returns_twice_.insert(&function);
      if (pointers_.calls_unknown(call)) calls_unknown_.insert(&function);
      for (const llvm::Function* callee : pointers_.callees(call)) {
        if (callee->isDeclaration()) continue;
        callers_[callee].push_back(call);
        callees.insert(callee);
      }
      for (const llvm::Function* callee : pointers_.call_backs(call)) {
        if (callee->isDeclaration()) continue;
        callers_[callee].push_back(call);
        callees.insert(callee);
        not_once_.insert(callee);
      }
    }
    callees_[&function].assign(callees.begin(), callees.end());
  }
}

void Threads::find_functions(uint32_t thread, std::vector<const llvm::Function*> work) {
  llvm::DenseSet<const llvm::Function*> seen;
  bool unseen = false;
  std::vector<const llvm::Function*> found;
  auto reach = [&](const llvm::Function* function) {
    if (!function->isDeclaration() && seen.insert(function).second) found.push_back(function);
  };
  for (const llvm::Function* root : work) reach(root);
  for (size_t i = 0; i < found.size(); ++i) {
    for (const llvm::Function* callee : callees_[found[i]]) reach(callee);
    if (!unseen && calls_unknown_.contains(found[i])) {
      unseen = true;
      for (const llvm::Function* function : pointers_.external_functions()) reach(function);
    }
  }
  for (const llvm::Function* function : found) classes_of_[function].push_back(thread);
}

const std::vector<uint32_t>& Threads::classes_of(const llvm::Function* function) const {
  static const std::vector<uint32_t> none;
  auto entry = classes_of_.find(function);
  return entry == classes_of_.end() ? none : entry->second;
}

const std::vector<const llvm::CallBase*>& Threads::callers(const llvm::Function* function) const {
  static const std::vector<const llvm::CallBase*> none;
  auto entry = callers_.find(function);
  return entry == callers_.end() ? none : entry->second;
}

// The blocks that may run after this one has ended.
const llvm::DenseSet<const llvm::BasicBlock*>& Threads::after(const llvm::BasicBlock* block) const {
  auto [entry, fresh] = after_.try_emplace(block);
  if (!fresh) return entry->second;
  std::vector<const llvm::BasicBlock*> work{block};
  while (!work.empty()) {
    const llvm::BasicBlock* from = work.back();
    work.pop_back();
    for (const llvm::BasicBlock* next : llvm::successors(from))
      if (entry->second.insert(next).second) work.push_back(next);
  }
  return entry->second;
}

bool Threads::in_loop(const llvm::Instruction* instruction) const {
  return after(instruction->getParent()).contains(instruction->getParent());
}

bool Threads::reaches(const llvm::Instruction* from, const llvm::Instruction* to) const {
  if (from->getParent() == to->getParent() && from->comesBefore(to)) return true;
  return after(from->getParent()).contains(to->getParent());
}

// Grows from the entries downwards: once_ holds only functions whose whole chain of callers is known to run once. What
// calls setjmp may run any part of itself again.
void Threads::find_once(const llvm::Module& module) {
  llvm::DenseSet<const llvm::Function*> entries;
  for (const ThreadClass& thread : classes_)
    if (thread.entry) entries.insert(thread.entry);
  auto may_be_once = [&](const llvm::Function* function) {
    return !function->isDeclaration() && !not_once_.contains(function) && !returns_twice_.contains(function) &&
           !once_.contains(function);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < classes_.size(); ++i) {
      ThreadClass& thread = classes_[i];
      if (!thread.entry) continue;
      bool single = thread.created_at.empty() ||
                    (thread.created_at.size() == 1 && once_.contains(thread.created_at[0]->getFunction()) &&
                     !in_loop(thread.created_at[0]));
      thread.many = !single;
      if (single && callers(thread.entry).empty() && may_be_once(thread.entry))
        changed |= once_.emplace(thread.entry, nullptr).second;
    }
    for (const llvm::Function& function : module) {
      if (!may_be_once(&function) || entries.contains(&function) || callers(&function).size() != 1) continue;
      const llvm::CallBase* call = callers(&function)[0];
      if (once_.contains(call->getFunction()) && !in_loop(call) && call->getFunction() != &function)
        changed |= once_.emplace(&function, call).second;
    }
  }
}

const Threads::Chain* Threads::chain(const llvm::Function* function) const {
  auto known = once_.find(function);
  if (known == once_.end()) return nullptr;
  auto [entry, fresh] = chains_.try_emplace(function);
  if (fresh && known->second) {
    Chain calls = *chain(known->second->getFunction());
    calls.push_back(known->second);
    chains_[function] = std::move(calls);
  }
  return &chains_[function];
}

bool Threads::may_follow(const llvm::Instruction* first, const llvm::Instruction* second) const {
  const Chain *up_first = chain(first->getFunction()), *up_second = chain(second->getFunction());
  if (!up_first || !up_second) return true;
  auto step = [](const Chain& up, const llvm::Instruction* last, size_t i) { return i < up.size() ? up[i] : last; };
  size_t level = 0;
  while (level < up_first->size() && level < up_second->size() && (*up_first)[level] == (*up_second)[level]) ++level;
  const llvm::Instruction *a = step(*up_first, first, level), *b = step(*up_second, second, level);
  if (a->getFunction() != b->getFunction()) return true;  // of different threads
  // A call and something inside it; or one access and itself: a copy is many accesses.
  if (a == b)
    return level < up_first->size() || level < up_second->size() || llvm::isa<llvm::CallBase>(a) || in_loop(a);
  return reaches(a, b);
}

bool Threads::by_main_only(const llvm::Instruction* instruction) const {
  const auto& classes = classes_of(instruction->getFunction());
  return classes.size() == 1 && classes[0] == 0;
}

bool Threads::may_precede(const llvm::Instruction* write, uint32_t writer, const llvm::Instruction* read,
                          uint32_t reader) const {
  if (writer == reader && !classes_[writer].many) return may_follow(write, read);
  // What main does before a thread exists cannot read what the thread writes.
  if (reader == 0 && writer != 0 && !classes_[writer].created_at.empty()) {
    for (const llvm::CallBase* creation : classes_[writer].created_at)
      if (!by_main_only(creation) || may_follow(creation, read)) return true;
    return false;
  }
  if (reader == 0 || writer == reader || joins_.empty()) return true;
  // A thread that has ended cannot read what main writes then, nor what threads write that main creates then.
  if (writer == 0) return !always_after_end(write, reader);
  const auto& created = classes_[writer].created_at;
  return created.empty() || !std::all_of(created.begin(), created.end(), [&](const llvm::CallBase* creation) {
           return by_main_only(creation) && always_after_end(creation, reader);
         });
}

bool Threads::passed_before(const llvm::Instruction* first, const llvm::BasicBlock* beginning,
                            const llvm::Instruction* second) const {
  const Chain *path = chain(first->getFunction()), *other = chain(second->getFunction());
  if (!path || !other) return false;
  auto step = [](const Chain& up, const llvm::Instruction* last, size_t i) { return i < up.size() ? up[i] : last; };
  // Every step down to the first must be passed on every way to the second.
  size_t level = 0;
  while (level < path->size() && level < other->size() && (*path)[level] == (*other)[level]) ++level;
  const llvm::Instruction *a = step(*path, first, level), *b = step(*other, second, level);
  if (a == b || a->getFunction() != b->getFunction()) return false;
  if (level == path->size() && beginning) return dominates(beginning, b);
  if (!dominates(a, b)) return false;
  for (size_t below = level + 1; below <= path->size(); ++below) {
    const llvm::Instruction* inner = step(*path, first, below);
    const llvm::BasicBlock* block = below == path->size() && beginning ? beginning : inner->getParent();
    llvm::PostDominatorTree after(const_cast<llvm::Function&>(*inner->getFunction()));
    if (!after.dominates(block, &inner->getFunction()->getEntryBlock())) return false;
  }
  return true;
}

bool Threads::always_before_creation(const llvm::Instruction* instruction, uint32_t created) const {
  if (created == 0 || classes_[created].created_at.empty()) return false;
  const auto& at = classes_[created].created_at;
  return of_main(instruction) && std::all_of(at.begin(), at.end(), [&](const llvm::CallBase* creation) {
           return of_main(creation) && passed_before(instruction, nullptr, creation);
         });
}

// In a function that runs once, called down from main's?
bool Threads::of_main(const llvm::Instruction* instruction) const {
  const Chain* path = chain(instruction->getFunction());
  return path && (path->empty() ? instruction : path->front())->getFunction() == classes_[0].entry;
}

bool Threads::always_after_end(const llvm::Instruction* instruction, uint32_t ended) const {
  if (classes_[ended].created_at.empty() || !of_main(instruction) || !by_main_only(instruction)) return false;
  auto [known, fresh] = after_end_.try_emplace({instruction, ended}, false);
  if (!fresh) return known->second;
  const auto& at = classes_[ended].created_at;
  return known->second = std::all_of(at.begin(), at.end(), [&](const llvm::CallBase* creation) {
           auto points = joins_.find(creation);
           if (points == joins_.end() || !of_main(creation)) return false;
           // A join that comes before the creation waits for nobody.
           return std::any_of(points->second.begin(), points->second.end(), [&](const JoinPoint& point) {
             return of_main(point.call) && !may_follow(point.call, creation) &&
                    passed_before(point.call, point.loop_left_at, instruction);
           });
         });
}

bool Threads::dominates(const llvm::Instruction* first, const llvm::Instruction* second) const {
  if (first->getFunction() != second->getFunction()) return false;
  auto& tree = dominators_[first->getFunction()];
  if (!tree) tree = std::make_unique<llvm::DominatorTree>(const_cast<llvm::Function&>(*first->getFunction()));
  return tree->dominates(first, second);
}

bool Threads::dominates(const llvm::BasicBlock* first, const llvm::Instruction* second) const {
  if (first->getParent() != second->getFunction()) return false;
  auto& tree = dominators_[second->getFunction()];
  if (!tree) tree = std::make_unique<llvm::DominatorTree>(const_cast<llvm::Function&>(*second->getFunction()));
  return tree->dominates(first, second->getParent());
}

}  // namespace stem::analysis
