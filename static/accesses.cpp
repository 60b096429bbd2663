#include "static/accesses.h"

#include <llvm/ADT/Hashing.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "static/library.h"

namespace stem::analysis {

namespace {

constexpr uint64_t kToTheEnd = UINT64_MAX;

uint64_t constant_or(const llvm::Value* value, uint64_t otherwise) {
  auto* number = llvm::dyn_cast<llvm::ConstantInt>(value);
  return number ? number->getZExtValue() : otherwise;
}

}  // namespace

Accesses::Accesses(const llvm::Module& module, const PointerAnalysis& pointers, const Threads& threads,
                   const std::function<bool(const llvm::Instruction&)>& wanted)
    : layout_(module.getDataLayout()), pointers_(pointers) {
  for (const llvm::Function& function : module) {
    if (threads.classes_of(&function).empty()) continue;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      if (wanted(instruction)) collect(instruction);
  }
  for (uint32_t i = 0; i < all_.size(); ++i) {
    if (all_[i].reads) sets_[all_[i].set].reads.push_back(i);
    if (all_[i].writes) sets_[all_[i].set].writes.push_back(i);
  }
}

void Accesses::collect(const llvm::Instruction& instruction) {
  auto size = [&](llvm::Type* type) { return layout_.getTypeStoreSize(type).getKnownMinValue(); };
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    add(instruction, load->getPointerOperand(), size(load->getType()), true, false);
  } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    add(instruction, store->getPointerOperand(), size(store->getValueOperand()->getType()), false, true);
  } else if (auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    add(instruction, swap->getPointerOperand(), size(swap->getNewValOperand()->getType()), true, true);
  } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    add(instruction, update->getPointerOperand(), size(update->getType()), true, true);
  } else if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&instruction)) {
    const uint64_t length = constant_or(memory->getLength(), kToTheEnd);
    add(instruction, memory->getDest(), length, false, true);
    if (auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(memory))
      add(instruction, copy->getSource(), length, true, false);
  } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    collect_call(*call);
  }
}

void Accesses::collect_call(const llvm::CallBase& call) {
  for (const llvm::Function* callee : pointers_.callees(&call)) {
    if (!callee->isDeclaration()) continue;
    const LibraryFunction& function = library_function(callee->getName());
    const bool counted = function.effect == Effect::Copies || callee->getName() == "memset";
    auto touch = [&](const Touch& how, const llvm::Value* pointer) {
      if (!pointer->getType()->isPointerTy()) return;
      uint64_t size = how.size ? how.size : kToTheEnd;
      if (counted && call.arg_size() > 2) size = constant_or(call.getArgOperand(2), kToTheEnd);
      add(call, pointer, size, how.reads, how.writes, how.deep);
    };
    for (const Touch& how : function.touches) {
      if (how.argument == Touch::kResult)
        touch(how, &call);
      else if (how.argument < call.arg_size())
        touch(how, call.getArgOperand(how.argument));
    }
    if (function.rest && !function.touches.empty())
      for (unsigned i = function.touches.back().argument + 1; i < call.arg_size(); ++i)
        touch(function.touches.back(), call.getArgOperand(i));
  }
}

void Accesses::add(const llvm::Instruction& instruction, const llvm::Value* pointer, uint64_t size, bool reads,
                   bool writes, bool deep) {
  const PointsTo& locations = pointers_.points_to(pointer);
  const bool unknown = pointers_.unknown(pointer);
  if (locations.empty() && !unknown) return;
  auto known = deep ? by_pointer_.end() : by_pointer_.find({&locations, size, unknown});
  if (known == by_pointer_.end()) {
    std::vector<Extent> extents;
    const Objects& objects = pointers_.objects();
    bool reaches_unknown = unknown;
    auto keep = [&](ObjectId object) { return objects.object(object).kind != ObjectKind::Function; };
    for (LocationId location : locations) {
      const ObjectId object = objects.at(location).object;
      if (!keep(object)) continue;
      const Objects::Range range = objects.range(location, size);
      extents.push_back({object, static_cast<uint32_t>(std::min<uint64_t>(range.begin, UINT32_MAX)),
                         static_cast<uint32_t>(std::min<uint64_t>(range.end, UINT32_MAX))});
    }
    if (deep)
      for (ObjectId object : pointers_.reachable(locations, reaches_unknown))
        if (keep(object)) extents.push_back({object, 0, UINT32_MAX});
    std::sort(extents.begin(), extents.end());
    extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
    const uint32_t set = intern(std::move(extents), reaches_unknown);
    all_.push_back({&instruction, set, reads, writes});
    if (!deep) by_pointer_.emplace(std::tuple{&locations, size, unknown}, set);
    return;
  }
  all_.push_back({&instruction, known->second, reads, writes});
}

uint32_t Accesses::intern(std::vector<Extent> extents, bool unknown) {
  uint64_t hash = unknown;
  for (const Extent& e : extents) hash = llvm::hash_combine(hash, e.object, e.begin, e.end);
  auto [begin, end] = by_hash_.equal_range(hash);
  for (; begin != end; ++begin)
    if (sets_[begin->second].unknown == unknown && sets_[begin->second].extents == extents) return begin->second;
  const uint32_t id = static_cast<uint32_t>(sets_.size());
  sets_.push_back({std::move(extents), unknown, {}, {}});
  by_hash_.emplace(hash, id);
  return id;
}

}  // namespace stem::analysis
