// One step of a group of records (trace/raw.h, stem_group) as the writer needs it: what is the same each time, and
// where in the group's record the rest stands.
#pragma once

#include <cstdint>

#include "trace/event.h"

namespace stem::trace {

struct GroupStep {
  enum class Does : uint8_t { Read, Write, Pin, Branch, Opaque };
  Does does = Does::Read;
  uint8_t size = 0;       // of an access; of the read that a Pin is of
  uint8_t width = 0;      // Opaque
  bool leaf = false;      // Read: takes an expression id
  uint8_t pinned = 0xff;  // Pin: the step of its read, if that is of the same group
  uint16_t at_addr = 0;   // where the address is, 0: nowhere
  uint16_t at_value = 0;  // 0: nowhere
  uint32_t expr = 0;   // how many ids before the next one its expression is, 0: it has none; Opaque: its first operand
  uint32_t other = 0;  // Opaque: its second operand
  uint64_t addr = 0;   // added to the address
  uint64_t key = 0;    // as Writer::can_repeat() has it
};

}  // namespace stem::trace
