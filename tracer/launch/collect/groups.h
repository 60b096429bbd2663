// Groups of records (trace/raw.h, stem_group): what a recorder told about them, and how one is turned back into the
// records that it stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/raw.h"

namespace stem::collect {

struct Group {
  uint32_t ids = 0;   // how many expressions it makes
  uint32_t size = 0;  // of its record, in records
  std::vector<stem_group_access> accesses;
  std::vector<stem_rec> records;

  // Nothing if it makes no sense.
  static std::optional<Group> parse(const std::string& bytes);

  static uint32_t number(const stem_rec& r) { return static_cast<uint32_t>(r.head); }
  static uint32_t size_of(const stem_rec& r) { return static_cast<uint32_t>(r.head >> 56); }
  static uint64_t taken(const stem_rec& r) { return r.head >> 32 & 0xff; }

  // The records that the one at r stands for, as many as `records` holds; next_id: the thread's next expression.
  void expand(const stem_rec* r, uint32_t next_id, stem_rec* out) const;

 private:
  // What is to be filled in, and where in the group's record it stands (0: nowhere).
  struct Part {
    uint64_t addr = 0;
    uint16_t at_addr = 0, at_value = 0;
    uint8_t size = 0;
    bool taken = false, expr = false, site = false;
  };
  std::vector<Part> parts_;  // of each record
  void find_parts();
};

}  // namespace stem::collect
