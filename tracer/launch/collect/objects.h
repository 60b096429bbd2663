// Which object an address lies in, now: live objects by base, with a small cache in front of the search. An object that
// is allocated over others ends them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trace/event.h"
#include "tracer/launch/collect/layout.h"

namespace stem::collect {

// All objects of one name and layout: the variables of their fields.
struct Type {
  std::string name;
  const Layout* layout = nullptr;  // nullptr: unknown; fields are then told by what the site says
  bool array = false;              // several elements of the layout
  bool frame = false;              // of a function: fields are local variables
  std::vector<uint32_t> variable;  // by field; kNone: not yet asked for
  std::unordered_map<uint32_t, uint32_t> by_path;
  uint32_t last_path = trace::kNone, last_variable = trace::kNone;
};

struct Live {
  uint64_t base = 0, size = 0;  // size 0: the slot is free
  uint64_t stamp = 0;           // another one for each object, and after each change of what its events look like
  uint32_t id = trace::kNone;
  Type* type = nullptr;
  bool tainted = false, zeroed = false, exposed = false;
  uint64_t shift = 0;  // of a frame: what to add to an offset to have that of the layout
  std::vector<uint8_t> initial;

  bool contains(uint64_t address) const { return address - base < size; }
};

class LiveObjects {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  LiveObjects() { cache_.fill(kNoSlot); }

  Live& operator[](uint32_t slot) { return *slots_[slot]; }
  // kNoSlot if nothing is known there.
  uint32_t find(uint64_t address);
  // Ends what it overlaps: their ids are appended to `ended`.
  uint32_t add(uint64_t base, uint64_t size, std::vector<uint32_t>& ended);
  void remove(uint32_t slot);
  void taint(uint32_t slot) {
    slots_[slot]->tainted = true;
    slots_[slot]->stamp = ++stamps_;
  }
  // The part of [begin, end) around `address` that no object covers.
  std::pair<uint64_t, uint64_t> gap(uint64_t address, uint64_t begin, uint64_t end) const;

 private:
  static size_t line(uint64_t address) { return (address >> 4) * 0x9e3779b97f4a7c15ull >> 49; }

  std::vector<std::unique_ptr<Live>> slots_;
  std::vector<uint32_t> free_;
  uint64_t stamps_ = 0;
  std::map<uint64_t, uint32_t> by_base_;
  std::array<uint32_t, 1 << 15> cache_;
};

}  // namespace stem::collect
