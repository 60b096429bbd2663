#include "static/objects.h"

#include <llvm/IR/DerivedTypes.h>

namespace stem::analysis {

namespace {

uint64_t size_of(const llvm::DataLayout& layout, llvm::Type* type) {
  return type && type->isSized() ? layout.getTypeAllocSize(type).getKnownMinValue() : 0;
}

}  // namespace

Objects::Objects(const llvm::DataLayout& layout) : layout_(layout) { objects_.emplace_back(); }

ObjectId Objects::add(ObjectKind kind, const llvm::Value* value, llvm::Type* type) {
  auto [entry, fresh] = by_value_.try_emplace(value, static_cast<ObjectId>(objects_.size()));
  if (fresh) objects_.push_back({kind, value, type, {}, false});
  return entry->second;
}

ObjectId Objects::find(const llvm::Value* value) const {
  auto entry = by_value_.find(value);
  return entry == by_value_.end() ? UINT32_MAX : entry->second;
}

LocationId Objects::intern(ObjectId object, uint32_t offset) {
  auto [entry, fresh] = index_.try_emplace(static_cast<uint64_t>(object) << 32 | offset, locations_.size());
  if (fresh) {
    locations_.push_back({object, offset});
    objects_[object].locations.push_back(entry->second);
    if (objects_[object].external) external_locations_.set(entry->second);
  }
  return entry->second;
}

// Where the field at this offset starts, in the first element of every array it lies in. (A pointer that walks over an
// object byte by byte meets its fields, not its bytes: otherwise `p++` makes as many locations as there are bytes.)
uint64_t Objects::reduce(llvm::Type* type, uint64_t offset) const {
  uint64_t base = 0;
  for (;;) {
    uint64_t size = size_of(layout_, type);
    if (size == 0) return base;
    offset %= size;
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type)) {
      type = array->getElementType();
    } else if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
      const llvm::StructLayout* fields = layout_.getStructLayout(structure);
      unsigned field = fields->getElementContainingOffset(offset);
      uint64_t start = fields->getElementOffset(field).getKnownMinValue();
      base += start;
      offset -= start;
      type = structure->getElementType(field);
    } else {
      return base;
    }
  }
}

// Does moving by multiples of `stride` from this offset stay on the same field of some enclosing array? A pointer to
// the start of a structure may also be one to an array that is its first member: unless the source names the array, it
// is not known which of the two the pointer walks over.
bool Objects::covers_stride(llvm::Type* type, uint64_t offset, uint64_t stride, bool indexed) const {
  bool structure_starts_here = false;
  for (;;) {
    uint64_t size = size_of(layout_, type);
    if (size == 0) return false;
    if (stride % size == 0) return indexed || !structure_starts_here;
    offset %= size;
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type)) {
      type = array->getElementType();
    } else if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
      structure_starts_here = offset == 0 && structure->getNumElements() > 1;
      const llvm::StructLayout* fields = layout_.getStructLayout(structure);
      unsigned field = fields->getElementContainingOffset(offset);
      offset -= fields->getElementOffset(field).getKnownMinValue();
      type = structure->getElementType(field);
    } else {
      return false;
    }
  }
}

// Does a constant step lead out of an array inside the object? Which element the step began at is not known.
bool Objects::leaves_array(llvm::Type* type, uint64_t from, int64_t target) const {
  uint64_t base = 0;
  for (bool outermost = true;; outermost = false) {
    uint64_t size = size_of(layout_, type);
    if (size == 0) return false;
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type)) {
      const int64_t begin = static_cast<int64_t>(base), end = static_cast<int64_t>(base + size);
      if (!outermost && (target < begin || target >= end)) return true;
      type = array->getElementType();
      uint64_t element = size_of(layout_, type);
      if (element == 0) return false;
      // Inside, everything is told as in the first element.
      from = base + (from - base) % element;
    } else if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
      const llvm::StructLayout* fields = layout_.getStructLayout(structure);
      if (from < base || from - base >= size) return false;
      unsigned field = fields->getElementContainingOffset(from - base);
      base += fields->getElementOffset(field).getKnownMinValue();
      type = structure->getElementType(field);
    } else {
      return false;
    }
  }
}

LocationId Objects::location(ObjectId object, uint64_t offset) {
  const Object& target = objects_[object];
  switch (target.kind) {
    case ObjectKind::External:
    case ObjectKind::Function:
      return intern(object, 0);
    case ObjectKind::Global:
    case ObjectKind::Stack:
    case ObjectKind::Heap:
      break;
  }
  if (size_of(layout_, target.type) > 0) return intern(object, static_cast<uint32_t>(reduce(target.type, offset)));
  // Slots of a virtual table are told apart; memory of unknown type is one location.
  return target.kind == ObjectKind::Global ? intern(object, static_cast<uint32_t>(offset)) : any(object);
}

LocationId Objects::any(ObjectId object) {
  bool opaque = objects_[object].kind == ObjectKind::External || objects_[object].kind == ObjectKind::Function;
  return intern(object, opaque ? 0 : kAnyOffset);
}

LocationId Objects::move(LocationId from, int64_t offset, const std::vector<uint64_t>& strides, bool indexed) {
  Location start = locations_[from];
  if (start.offset == kAnyOffset || (offset == 0 && strides.empty())) return from;
  llvm::Type* type = objects_[start.object].type;
  uint64_t size = size_of(layout_, type);
  int64_t target = static_cast<int64_t>(start.offset) + offset;
  if (size > 0) {
    if (offset != 0 && leaves_array(type, start.offset, target)) return any(start.object);
    target %= static_cast<int64_t>(size);
    if (target < 0) target += static_cast<int64_t>(size);
  } else if (target < 0) {
    return any(start.object);
  }
  for (uint64_t stride : strides)
    if (size == 0 || !covers_stride(type, static_cast<uint64_t>(target), stride, indexed)) return any(start.object);
  return location(start.object, static_cast<uint64_t>(target));
}

void Objects::set_external(ObjectId object) {
  objects_[object].external = true;
  for (LocationId location : objects_[object].locations) external_locations_.set(location);
}

// An access that goes past the end of an array's element may be anywhere in the array, and past its end.
Objects::Range Objects::range(LocationId id, uint64_t size) const {
  constexpr Range everything{0, UINT64_MAX};
  const Location& location = locations_[id];
  llvm::Type* type = objects_[location.object].type;
  uint64_t whole = size_of(layout_, type);
  if (location.offset == kAnyOffset || size > UINT32_MAX) return everything;
  Range result{location.offset, location.offset + size};
  if (whole == 0) return result;
  if (result.end > whole) return everything;
  uint64_t base = 0;
  for (;;) {
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type)) {
      type = array->getElementType();
      uint64_t element = size_of(layout_, type);
      if (element == 0) return everything;
      if (result.end > base + element) return {base, UINT64_MAX};
    } else if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
      const llvm::StructLayout* fields = layout_.getStructLayout(structure);
      unsigned field = fields->getElementContainingOffset(location.offset - base);
      base += fields->getElementOffset(field).getKnownMinValue();
      type = structure->getElementType(field);
    } else {
      return result;
    }
  }
}

}  // namespace stem::analysis
