#include "static/pointer.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

#include "static/constraints.h"

namespace stem::analysis {

namespace {

// The largest of the types that a value is used through, each with its size.
class Largest {
 public:
  explicit Largest(const llvm::DataLayout& layout) : layout_(layout) {}

  // 0: says nothing.
  uint64_t size(llvm::Type* type) const {
    return type->isSized() && !type->isIntegerTy(8) ? layout_.getTypeAllocSize(type).getKnownMinValue() : 0;
  }
  void note(const llvm::Value* value, llvm::Type* type, uint64_t size) {
    auto& [best, largest] = types_[value];
    if (size > largest) best = type, largest = size;
  }
  HeapTypes take() const {
    HeapTypes types;
    for (const auto& [value, best] : types_)
      if (best.first) types.emplace(value, best.first);
    return types;
  }

 private:
  const llvm::DataLayout& layout_;
  std::unordered_map<const llvm::Value*, std::pair<llvm::Type*, uint64_t>> types_;
};

// The type through which an instruction indexes or accesses what `pointer` points to; null: it does not.
llvm::Type* used_type(const llvm::Value* user, const llvm::Value*& pointer) {
  pointer = nullptr;
  if (auto* gep = llvm::dyn_cast<llvm::GEPOperator>(user))
    return pointer = gep->getPointerOperand(), gep->getSourceElementType();
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user)) return pointer = load->getPointerOperand(), load->getType();
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(user))
    return pointer = store->getPointerOperand(), store->getValueOperand()->getType();
  return nullptr;
}

// A first guess, from where the result of a library function goes by itself: through choices, to those who called the
// function that returns it, and into functions it is handed to.
HeapTypes guess_heap_types(const llvm::Module& module) {
  constexpr size_t kFar = 200;  // values
  Largest types(module.getDataLayout());
  for (const llvm::Function& library : module) {
    if (!library.isDeclaration() || library.isIntrinsic() || !library.getReturnType()->isPointerTy()) continue;
    for (const llvm::User* call : library.users()) {
      if (!llvm::isa<llvm::CallBase>(call)) continue;
      std::vector<const llvm::Value*> work{call};
      std::unordered_set<const llvm::Value*> seen{call};
      auto follow = [&](const llvm::Value* value) {
        if (seen.size() < kFar && seen.insert(value).second) work.push_back(value);
      };
      while (!work.empty()) {
        const llvm::Value* value = work.back();
        work.pop_back();
        for (const llvm::Use& use : value->uses()) {
          const llvm::User* user = use.getUser();
          const llvm::Value* pointer;
          if (llvm::Type* type = used_type(user, pointer); type && pointer == value) {
            types.note(call, type, types.size(type));
          } else if (llvm::isa<llvm::PHINode>(user) || llvm::isa<llvm::SelectInst>(user)) {
            follow(user);
          } else if (auto* end = llvm::dyn_cast<llvm::ReturnInst>(user)) {
            for (const llvm::User* caller : end->getFunction()->users())
              if (auto* from = llvm::dyn_cast<llvm::CallBase>(caller); from && from->getCalledFunction()) follow(from);
          } else if (auto* to = llvm::dyn_cast<llvm::CallBase>(user); to && to->isArgOperand(&use)) {
            const llvm::Function* callee = to->getCalledFunction();
            if (callee && !callee->isDeclaration() && to->getArgOperandNo(&use) < callee->arg_size())
              follow(callee->getArg(to->getArgOperandNo(&use)));
          }
        }
      }
    }
  }
  return types.take();
}

}  // namespace

PointerAnalysis::PointerAnalysis(const llvm::Module& module) {
  const HeapTypes guess = guess_heap_types(module);
  run(module, guess);
  const HeapTypes types = infer_heap_types(module);
  const bool guessed = std::all_of(types.begin(), types.end(), [&](const auto& one) {
    auto known = guess.find(one.first);
    return known != guess.end() && known->second == one.second;
  });
  if (!guessed) run(module, types);
}

PointerAnalysis::~PointerAnalysis() = default;

void PointerAnalysis::run(const llvm::Module& module, const HeapTypes& heap_types) {
  nodes_.clear();
  callees_.clear();
  creations_.clear();
  joins_.clear();
  call_backs_.clear();
  unknown_calls_.clear();
  external_functions_.clear();
  anywhere_.clear();
  objects_ = std::make_unique<Objects>(module.getDataLayout());
  solver_ = std::make_unique<Solver>(*objects_);
  ConstraintBuilder builder(*this, heap_types);
  builder.build(module);
  solver_->solve(builder);
}

const PointsTo& PointerAnalysis::points_to(const llvm::Value* value) const {
  static const PointsTo empty;
  auto entry = nodes_.find(value);
  return entry == nodes_.end() ? empty : solver_->points_to(entry->second);
}

bool PointerAnalysis::unknown(const llvm::Value* value) const {
  auto entry = nodes_.find(value);
  return entry != nodes_.end() && solver_->unknown(entry->second);
}

const PointerAnalysis::Functions& PointerAnalysis::callees(const llvm::CallBase* call) const {
  static const Functions none;
  auto entry = callees_.find(call);
  return entry == callees_.end() ? none : entry->second;
}

const PointerAnalysis::Functions& PointerAnalysis::call_backs(const llvm::CallBase* call) const {
  static const Functions none;
  auto entry = call_backs_.find(call);
  return entry == call_backs_.end() ? none : entry->second;
}

std::set<ObjectId> PointerAnalysis::reachable(const PointsTo& from, bool& unknown) const {
  std::set<ObjectId> found;
  std::vector<ObjectId> work;
  for (LocationId location : from)
    if (found.insert(objects_->at(location).object).second) work.push_back(objects_->at(location).object);
  while (!work.empty()) {
    const ObjectId object = work.back();
    work.pop_back();
    solver_->contents(object, [&](const PointsTo& held, bool held_unknown) {
      unknown |= held_unknown;
      for (LocationId location : held)
        if (found.insert(objects_->at(location).object).second) work.push_back(objects_->at(location).object);
    });
  }
  return found;
}

// The largest type through which a pointer to the start of an allocation is indexed or accessed.
HeapTypes PointerAnalysis::infer_heap_types(const llvm::Module& module) const {
  Largest types(module.getDataLayout());
  for (const llvm::Function& function : module)
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const llvm::Value* pointer;
      llvm::Type* type = used_type(&instruction, pointer);
      const uint64_t size = type ? types.size(type) : 0;
      if (size == 0) continue;
      for (LocationId location : points_to(pointer)) {
        const Object& object = objects_->object(objects_->at(location).object);
        const uint32_t offset = objects_->at(location).offset;
        if (object.kind == ObjectKind::Heap && (offset == 0 || offset == kAnyOffset))
          types.note(object.value, type, size);
      }
    }
  return types.take();
}

}  // namespace stem::analysis
