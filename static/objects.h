// Abstract memory of the pointer analysis: objects and the byte offsets inside them that are told apart.
//
// An object is a global, a function, a local variable, an allocation site, or the one object that stands for memory we
// do not see. A location is an object and an offset; array indices are collapsed (every element is element 0), so a
// location is a field path. Where an offset cannot be known the location is `any`: it may be every field of its object.
//
// An object that code we do not see may know is *external*: a pointer that may come from there points to all of these,
// which is kept as a flag of the pointer and never as a set.
#pragma once

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "static/number_set.h"

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
  bool external = false;               // code we do not see may use it
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
  // Where a pointer to `from` points after moving by `offset` bytes and any multiple of each of `strides`. `indexed`:
  // the source names an element of an array there; otherwise a variable step may also be one over the fields of a
  // structure.
  LocationId move(LocationId from, int64_t offset, const std::vector<uint64_t>& strides, bool indexed);

  const Object& object(ObjectId id) const { return objects_[id]; }
  const Location& at(LocationId id) const { return locations_[id]; }
  size_t object_count() const { return objects_.size(); }
  size_t location_count() const { return locations_.size(); }

  void set_external(ObjectId object);
  const NumberSet& external_locations() const { return external_locations_; }

  // The bytes of the object, indices collapsed, that an access of this size at this location may touch.
  struct Range {
    uint64_t begin, end;
    bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  };
  Range range(LocationId location, uint64_t size) const;

 private:
  LocationId intern(ObjectId object, uint32_t offset);
  uint64_t reduce(llvm::Type* type, uint64_t offset) const;
  bool covers_stride(llvm::Type* type, uint64_t offset, uint64_t stride, bool indexed) const;
  bool leaves_array(llvm::Type* type, uint64_t from, int64_t target) const;

  const llvm::DataLayout& layout_;
  std::vector<Object> objects_;
  std::vector<Location> locations_;
  std::unordered_map<uint64_t, LocationId> index_;
  std::unordered_map<const llvm::Value*, ObjectId> by_value_;
  NumberSet external_locations_;
};

}  // namespace stem::analysis
