#include "static/pairs.h"

#include <algorithm>

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

struct At {
  uint32_t access;
  Extent where;
};

class Finder {
 public:
  Finder(const Accesses& accesses, const Threads& threads, size_t budget)
      : accesses_(accesses), objects_(accesses.pointers().objects()), threads_(threads), budget_(budget) {
    for (uint32_t set = 0; set < accesses.sets().size(); ++set) {
      if (accesses.sets()[set].unknown) unknown_.push_back(set);
      ObjectId last = UINT32_MAX;
      for (const Extent& extent : accesses.sets()[set].extents) {
        if (extent.object != last) by_object_[extent.object].push_back(set);
        last = extent.object;
      }
    }
    for (ObjectId object = 0; object < objects_.object_count(); ++object)
      if (objects_.object(object).external && !unknown_.empty()) by_object_.try_emplace(object);
  }

  PairSet run() {
    struct Work {
      ObjectId object;
      uint64_t all, named;  // pairs at most: of all accesses, of those that name the object
    };
    std::vector<Work> work;
    result_.shared.resize(objects_.object_count());
    llvm::DenseSet<const llvm::Instruction*> writes;
    for (const auto& [object, sets] : by_object_) {
      if (is_constant(object) || objects_.object(object).kind == ObjectKind::Function) continue;
      result_.shared[object] = is_shared(object, sets);
      if (result_.shared[object])
        for (uint32_t set : sets)
          for (uint32_t write : accesses_.sets()[set].writes)
            if (writes.insert(accesses_.all()[write].instruction).second)
              result_.writes.push_back(accesses_.all()[write].instruction);
      uint64_t reads = 0, definitions = 1;
      for (uint32_t set : sets) {
        reads += accesses_.sets()[set].reads.size();
        definitions += accesses_.sets()[set].writes.size();
      }
      const uint64_t named = reads * definitions;
      if (objects_.object(object).external)
        for (uint32_t set : unknown_) {
          reads += accesses_.sets()[set].reads.size();
          definitions += accesses_.sets()[set].writes.size();
        }
      work.push_back({object, reads * definitions, named});
    }
    std::stable_sort(work.begin(), work.end(), [](const Work& a, const Work& b) { return a.all < b.all; });
    for (const Work& one : work) {
      const bool all = one.all <= budget_, named = one.named <= budget_;
      if (all || named) add_pairs(one.object, all);
      if (!all) result_.unlisted.emplace_back(one.object, named ? one.all - one.named : one.all);
    }
    return std::move(result_);
  }

 private:
  bool is_constant(ObjectId object) const {
    auto* global = llvm::dyn_cast_or_null<llvm::GlobalVariable>(objects_.object(object).value);
    return global && global->isConstant();
  }

  // Every thread can name a global, whether it does or not; anything else is shared if several threads use it.
  bool is_shared(ObjectId object, const std::vector<uint32_t>& sets) {
    if (auto* global = llvm::dyn_cast_or_null<llvm::GlobalVariable>(objects_.object(object).value))
      return !global->isThreadLocal();
    uint32_t seen = UINT32_MAX;
    auto several = [&](uint32_t set) {
      const auto& list = accesses_.sets()[set];
      for (const auto* uses : {&list.reads, &list.writes})
        for (uint32_t access : *uses)
          for (uint32_t thread : threads_.classes_of(accesses_.all()[access].instruction->getFunction())) {
            if ((seen != UINT32_MAX && seen != thread) || threads_.classes()[thread].many) return true;
            seen = thread;
          }
      return false;
    };
    if (std::any_of(sets.begin(), sets.end(), several)) return true;
    return objects_.object(object).external && std::any_of(unknown_.begin(), unknown_.end(), several);
  }

  void gather(ObjectId object, uint32_t set, std::vector<At>& reads, std::vector<At>& writes) const {
    const ExtentSet& list = accesses_.sets()[set];
    auto add = [&](const Extent& where) {
      for (uint32_t access : list.reads) reads.push_back({access, where});
      for (uint32_t access : list.writes) writes.push_back({access, where});
    };
    auto first = std::lower_bound(list.extents.begin(), list.extents.end(), Extent{object, 0, 0});
    for (; first != list.extents.end() && first->object == object; ++first) add(*first);
    if (list.unknown && objects_.object(object).external) add({object, 0, UINT32_MAX});
  }

  void add_pairs(ObjectId object, bool with_unknown) {
    std::vector<At> reads, writes;
    for (uint32_t set : by_object_[object]) gather(object, set, reads, writes);
    if (with_unknown && objects_.object(object).external)
      for (uint32_t set : unknown_)
        if (!std::binary_search(by_object_[object].begin(), by_object_[object].end(), set))
          gather(object, set, reads, writes);
    auto instruction = [&](const At& at) { return accesses_.all()[at.access].instruction; };
    std::set<std::pair<const llvm::Instruction*, const llvm::Instruction*>> known;
    const bool shared = result_.shared[object];
    for (const At& read : reads) {
      for (const At& write : writes) {
        if (write.where.begin >= read.where.end || read.where.begin >= write.where.end) continue;
        if (!known.emplace(instruction(write), instruction(read)).second) continue;
        bool same = false, cross = false;
        order(instruction(write), instruction(read), same, cross);
        if (!same && !cross) {
          if (result_.refuted.size() < kRefutations) {
            result_.refuted.emplace_back(instruction(write), instruction(read));
            continue;
          }
          cross = true;  // no room to remember: it stays possible
        }
        budget_ -= budget_ > 0;
        result_.pairs.push_back({instruction(write), instruction(read), read.where, cross, shared});
      }
      if (known.contains({nullptr, instruction(read)})) continue;
      if (initial_may_reach(read, writes)) {
        known.emplace(nullptr, instruction(read));
        budget_ -= budget_ > 0;
        result_.pairs.push_back({nullptr, instruction(read), read.where, shared, shared});
      }
    }
    for (const At& read : reads)
      if (!known.contains({nullptr, instruction(read)})) result_.overwritten.emplace_back(object, instruction(read));
  }

  void order(const llvm::Instruction* write, const llvm::Instruction* read, bool& same, bool& cross) const {
    const auto &writers = threads_.classes_of(write->getFunction()),
               &readers = threads_.classes_of(read->getFunction());
    for (uint32_t writer : writers)
      for (uint32_t reader : readers) {
        if (same && cross) return;
        if (!threads_.may_precede(write, writer, read, reader)) continue;
        if (writer == reader && (!threads_.classes()[writer].many || threads_.may_follow(write, read))) same = true;
        if (writer != reader || threads_.classes()[writer].many) cross = true;
      }
  }

  // Unless the variable is certainly overwritten on every way to the read.
  bool initial_may_reach(const At& read, const std::vector<At>& writes) const {
    const llvm::Instruction* use = accesses_.all()[read.access].instruction;
    std::vector<const llvm::Instruction*> strong;
    for (const At& write : writes) {
      const llvm::Instruction* def = accesses_.all()[write.access].instruction;
      if (write.where.begin <= read.where.begin && write.where.end >= read.where.end && is_strong(def))
        strong.push_back(def);
    }
    if (strong.empty()) return true;
    for (uint32_t reader : threads_.classes_of(use->getFunction()))
      if (std::none_of(strong.begin(), strong.end(), [&](const llvm::Instruction* def) {
            return threads_.always_before_creation(def, reader) || threads_.dominates(def, use);
          }))
        return true;
    return false;
  }

  static constexpr size_t kRefutations = 500000;

  const Accesses& accesses_;
  const Objects& objects_;
  const Threads& threads_;
  size_t budget_;
  std::vector<uint32_t> unknown_;  // sets
  std::map<ObjectId, std::vector<uint32_t>> by_object_;
  PairSet result_;
};

}  // namespace

PairSet find_pairs(const Accesses& accesses, const Threads& threads, size_t budget) {
  return Finder(accesses, threads, budget).run();
}

}  // namespace stem::analysis
