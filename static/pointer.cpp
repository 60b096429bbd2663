#include "static/pointer.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

#include "static/constraints.h"

namespace stem::analysis {

PointerAnalysis::PointerAnalysis(const llvm::Module& module) {
  run(module, {});
  auto types = infer_heap_types(module);
  if (!types.empty()) run(module, types);
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
  const llvm::DataLayout& layout = module.getDataLayout();
  HeapTypes types;
  auto note = [&](const llvm::Value* pointer, llvm::Type* type) {
    if (!type->isSized() || type->isIntegerTy(8)) return;
    for (LocationId location : points_to(pointer)) {
      const Object& object = objects_->object(objects_->at(location).object);
      if (object.kind != ObjectKind::Heap ||
          (objects_->at(location).offset != 0 && objects_->at(location).offset != kAnyOffset))
        continue;
      llvm::Type*& best = types[object.value];
      if (!best || layout.getTypeAllocSize(best) < layout.getTypeAllocSize(type)) best = type;
    }
  };
  for (const llvm::Function& function : module)
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (auto* gep = llvm::dyn_cast<llvm::GEPOperator>(&instruction))
        note(gep->getPointerOperand(), gep->getSourceElementType());
      else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
        note(load->getPointerOperand(), load->getType());
      else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
        note(store->getPointerOperand(), store->getValueOperand()->getType());
    }
  return types;
}

}  // namespace stem::analysis
