// Abstract memory of the pointer analysis: objects and the byte offsets inside them that are told apart.
//
// An object is a global, a function, a local variable, an allocation site, or the one object that stands for memory we do
// not see. A location is an object and an offset; array indices are collapsed (every element is element 0), so a location
// is a field path. Where an offset cannot be known the location is `any`: it may be every field of its object.
#pragma once

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stem::analysis {

using ObjectId = uint32_t;
using LocationId = uint32_t;

constexpr uint32_t kAnyOffset = UINT32_MAX;

enum class ObjectKind : uint8_t { External, Global, Function, Stack, Heap };

struct Object {
  ObjectKind kind = ObjectKind::External;
  const llvm::Value* value = nullptr;  // the global, function, alloca or allocating call
  llvm::Type* type = nullptr;          // what it holds (heap: an array of these), if known
  std::vector<LocationId> locations;   // those in use
};

struct Location {
  ObjectId object;
  uint32_t offset;
};

class Objects {
 public:
  explicit Objects(const llvm::DataLayout& layout);

  ObjectId external() const { return 0; }
  ObjectId add(ObjectKind kind, const llvm::Value* value, llvm::Type* type);
  ObjectId find(const llvm::Value* value) const;  // UINT32_MAX if there is none

  // The location `offset` bytes into the object, indices collapsed.
  LocationId location(ObjectId object, uint64_t offset);
  LocationId any(ObjectId object);
  // Where a pointer to `from` points after moving by `offset` bytes and any multiple of each of `strides`.
  LocationId move(LocationId from, int64_t offset, const std::vector<uint64_t>& strides);

  const Object& object(ObjectId id) const { return objects_[id]; }
  const Location& at(LocationId id) const { return locations_[id]; }
  size_t object_count() const { return objects_.size(); }
  size_t location_count() const { return locations_.size(); }

  // May accesses of these sizes at these locations touch a common byte?
  bool overlap(LocationId a, uint64_t a_size, LocationId b, uint64_t b_size) const;

 private:
  LocationId intern(ObjectId object, uint32_t offset);
  uint64_t reduce(llvm::Type* type, uint64_t offset) const;
  bool covers_stride(llvm::Type* type, uint64_t offset, uint64_t stride) const;

  const llvm::DataLayout& layout_;
  std::vector<Object> objects_;
  std::vector<Location> locations_;
  std::unordered_map<uint64_t, LocationId> index_;
  std::unordered_map<const llvm::Value*, ObjectId> by_value_;
};

}  // namespace stem::analysis
