// What every site may read and write: its own access, or what a library function does at the call. Accesses through
// pointers with the same points-to set share it, so the sum of all sets stays small where thousands of accesses go
// through few pointers.
#pragma once

#include <functional>
#include <map>

#include "static/threads.h"

namespace stem::analysis {

// The bytes of an object that an access may touch (indices collapsed, see Objects::range).
struct Extent {
  ObjectId object;
  uint32_t begin, end;  // end UINT32_MAX: to the end of the object
  auto operator<=>(const Extent&) const = default;
};

struct ExtentSet {
  std::vector<Extent> extents;          // sorted
  bool unknown = false;                 // and every external object, anywhere in it
  std::vector<uint32_t> reads, writes;  // accesses through it
};

struct Access {
  const llvm::Instruction* instruction;
  uint32_t set;
  bool reads, writes;
};

class Accesses {
 public:
  // `wanted` says which instructions are sites.
  Accesses(const llvm::Module& module, const PointerAnalysis& pointers, const Threads& threads,
           const std::function<bool(const llvm::Instruction&)>& wanted);

  const std::vector<Access>& all() const { return all_; }
  const std::vector<ExtentSet>& sets() const { return sets_; }
  const PointerAnalysis& pointers() const { return pointers_; }

 private:
  void collect(const llvm::Instruction& instruction);
  void collect_call(const llvm::CallBase& call);
  void add(const llvm::Instruction& instruction, const llvm::Value* pointer, uint64_t size, bool reads, bool writes,
           bool deep = false);
  uint32_t intern(std::vector<Extent> extents, bool unknown);

  const llvm::DataLayout& layout_;
  const PointerAnalysis& pointers_;
  std::vector<Access> all_;
  std::vector<ExtentSet> sets_;
  std::map<std::tuple<const PointsTo*, uint64_t, bool>, uint32_t> by_pointer_;  // no set moves any more
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace stem::analysis
