#include "static/pairs.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace stem::analysis {

namespace {

bool has_array(llvm::Type* type) {
  if (type->isArrayTy()) return true;
  for (llvm::Type* inner : type->subtypes())
    if (has_array(inner)) return true;
  return false;
}

// Does this store overwrite all of one known variable, every time?
bool is_strong(const llvm::Instruction* instruction) {
  auto* store = llvm::dyn_cast<llvm::StoreInst>(instruction);
  if (!store) return false;
  auto* global = llvm::dyn_cast<llvm::GlobalVariable>(store->getPointerOperand()->stripInBoundsConstantOffsets());
  return global && !global->isThreadLocal() && !has_array(global->getValueType());
}

class Finder {
 public:
  Finder(const llvm::Module& module, const PointerAnalysis& pointers, const Threads& threads,
         const std::function<bool(const llvm::Instruction&)>& wanted)
      : layout_(module.getDataLayout()), pointers_(pointers), threads_(threads) {
    for (const llvm::Function& function : module) {
      std::vector<uint32_t> classes = threads.classes_of(&function);
      if (classes.empty()) continue;
      classes_[&function] = classes;
      for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (wanted(instruction)) collect(instruction);
    }
  }

  PairSet run() {
    PairSet result;
    std::set<const llvm::Instruction*> writes;
    for (auto& [object, accesses] : by_object_) {
      if (is_constant(object)) continue;
      const bool shared = is_shared(object, accesses);
      result.shared_objects += shared;
      for (const Access& access : accesses)
        if (access.write && shared) writes.insert(access.instruction);
      add_pairs(accesses, shared, result.pairs);
    }
    result.writes.assign(writes.begin(), writes.end());
    return result;
  }

 private:
  void collect(const llvm::Instruction& instruction) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      add(instruction, load->getPointerOperand(), store_size(load->getType()), false);
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      add(instruction, store->getPointerOperand(), store_size(store->getValueOperand()->getType()), true);
    } else if (auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
      add(instruction, swap->getPointerOperand(), store_size(swap->getNewValOperand()->getType()), false);
      add(instruction, swap->getPointerOperand(), store_size(swap->getNewValOperand()->getType()), true);
    } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
      add(instruction, update->getPointerOperand(), store_size(update->getType()), false);
      add(instruction, update->getPointerOperand(), store_size(update->getType()), true);
    } else if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&instruction)) {
      uint64_t size = 1 << 20;  // as far as the object goes
      if (auto* length = llvm::dyn_cast<llvm::ConstantInt>(memory->getLength())) size = length->getZExtValue();
      add(instruction, memory->getDest(), size, true);
      if (auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(memory))
        add(instruction, copy->getSource(), size, false);
    }
  }

  uint64_t store_size(llvm::Type* type) const { return layout_.getTypeStoreSize(type).getKnownMinValue(); }

  void add(const llvm::Instruction& instruction, const llvm::Value* pointer, uint64_t size, bool write) {
    for (LocationId location : pointers_.points_to(pointer)) {
      ObjectId object = pointers_.objects().at(location).object;
      if (pointers_.objects().object(object).kind == ObjectKind::Function) continue;
      by_object_[object].push_back({&instruction, location, size, write});
    }
  }

  bool is_constant(ObjectId object) const {
    auto* global = llvm::dyn_cast_or_null<llvm::GlobalVariable>(pointers_.objects().object(object).value);
    return global && global->isConstant();
  }

  // Every thread can name a global, whether it does or not; anything else is shared if several threads use it.
  bool is_shared(ObjectId object, const std::vector<Access>& accesses) const {
    auto* global = llvm::dyn_cast_or_null<llvm::GlobalVariable>(pointers_.objects().object(object).value);
    if (global) return !global->isThreadLocal();
    std::set<uint32_t> seen;
    for (const Access& access : accesses)
      for (uint32_t thread : classes_.at(access.instruction->getFunction())) {
        seen.insert(thread);
        if (seen.size() > 1 || threads_.classes()[thread].many) return true;
      }
    return false;
  }

  void add_pairs(const std::vector<Access>& accesses, bool shared, std::vector<InstructionPair>& pairs) {
    std::set<std::pair<const llvm::Instruction*, const llvm::Instruction*>> known;
    for (const Access& read : accesses) {
      if (read.write) continue;
      for (const Access& write : accesses) {
        if (!write.write || !pointers_.objects().overlap(write.location, write.size, read.location, read.size))
          continue;
        bool same = false, cross = false;
        order(write, read, same, cross);
        if ((same || cross) && known.emplace(write.instruction, read.instruction).second)
          pairs.push_back({write.instruction, read.instruction, read.location, cross, shared});
      }
      if (initial_may_reach(read, accesses) && known.emplace(nullptr, read.instruction).second)
        pairs.push_back({nullptr, read.instruction, read.location, shared, shared});
    }
  }

  void order(const Access& write, const Access& read, bool& same, bool& cross) const {
    for (uint32_t writer : classes_.at(write.instruction->getFunction()))
      for (uint32_t reader : classes_.at(read.instruction->getFunction())) {
        if (!threads_.may_precede(write.instruction, writer, read.instruction, reader)) continue;
        if (writer == reader &&
            (!threads_.classes()[writer].many || threads_.may_follow(write.instruction, read.instruction)))
          same = true;
        if (writer != reader || threads_.classes()[writer].many) cross = true;
      }
  }

  // Unless the variable is certainly overwritten on every way to the read.
  bool initial_may_reach(const Access& read, const std::vector<Access>& accesses) const {
    for (uint32_t reader : classes_.at(read.instruction->getFunction())) {
      bool overwritten = false;
      for (const Access& write : accesses) {
        if (!write.write || write.location != read.location || write.size < read.size || !is_strong(write.instruction))
          continue;
        overwritten |= threads_.always_before_creation(write.instruction, reader) ||
                       dominates(write.instruction, read.instruction);
        if (overwritten) break;
      }
      if (!overwritten) return true;
    }
    return false;
  }

  bool dominates(const llvm::Instruction* first, const llvm::Instruction* second) const {
    const llvm::Function* function = first->getFunction();
    if (function != second->getFunction()) return false;
    auto& tree = dominators_[function];
    if (!tree) tree = std::make_unique<llvm::DominatorTree>(const_cast<llvm::Function&>(*function));
    return tree->dominates(first, second);
  }

  const llvm::DataLayout& layout_;
  const PointerAnalysis& pointers_;
  const Threads& threads_;
  std::map<const llvm::Function*, std::vector<uint32_t>> classes_;
  std::map<ObjectId, std::vector<Access>> by_object_;
  mutable std::map<const llvm::Function*, std::unique_ptr<llvm::DominatorTree>> dominators_;
};

}  // namespace

PairSet find_pairs(const llvm::Module& module, const PointerAnalysis& pointers, const Threads& threads,
                   const std::function<bool(const llvm::Instruction&)>& wanted) {
  return Finder(module, pointers, threads, wanted).run();
}

}  // namespace stem::analysis
