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

void PointerAnalysis::run(const llvm::Module& module, const std::map<const llvm::Value*, llvm::Type*>& heap_types) {
  nodes_.clear();
  callees_.clear();
  creations_.clear();
  joins_.clear();
  external_.clear();
  objects_ = std::make_unique<Objects>(module.getDataLayout());
  solver_ = std::make_unique<Solver>(*objects_);
  ConstraintBuilder builder(*this, heap_types);
  builder.build(module);
  solver_->solve([&](uint32_t call, ObjectId function) {
    builder.resolve(call, llvm::cast<llvm::Function>(objects_->object(function).value));
  });
  llvm::SparseBitVector<> start;
  start.set(objects_->external());
  external_ = reachable_objects(start);
}

const PointsTo& PointerAnalysis::points_to(const llvm::Value* value) const {
  static const PointsTo empty;
  auto entry = nodes_.find(value);
  return entry == nodes_.end() ? empty : solver_->points_to(entry->second);
}

const std::set<const llvm::Function*>& PointerAnalysis::callees(const llvm::CallBase* call) const {
  static const std::set<const llvm::Function*> empty;
  auto entry = callees_.find(call);
  return entry == callees_.end() ? empty : entry->second;
}

llvm::SparseBitVector<> PointerAnalysis::reachable_objects(llvm::SparseBitVector<> from) const {
  std::vector<ObjectId> work;
  for (ObjectId object : from) work.push_back(object);
  while (!work.empty()) {
    ObjectId object = work.back();
    work.pop_back();
    std::vector<LocationId> locations = objects_->object(object).locations;
    locations.push_back(objects_->any(object));
    for (LocationId location : locations)
      for (LocationId target : solver_->content(location))
        if (from.test_and_set(objects_->at(target).object)) work.push_back(objects_->at(target).object);
  }
  return from;
}

// The largest type through which a pointer to the start of an allocation is indexed or accessed.
std::map<const llvm::Value*, llvm::Type*> PointerAnalysis::infer_heap_types(const llvm::Module& module) const {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::map<const llvm::Value*, llvm::Type*> types;
  auto note = [&](const llvm::Value* pointer, llvm::Type* type) {
    if (!type->isSized() || type->isIntegerTy(8)) return;
    for (LocationId location : points_to(pointer)) {
      const Object& object = objects_->object(objects_->at(location).object);
      if (object.kind != ObjectKind::Heap || (objects_->at(location).offset != 0 && objects_->at(location).offset != kAnyOffset))
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
