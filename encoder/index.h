// What the encoder needs to know of a whole trace, computed once and shared by all encoders of its scopes, in all threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "trace/event.h"

namespace stem::encoder {

using Place = std::pair<uint32_t, uint64_t>;  // object and address: a byte, or a synchronisation object

class Index {
 public:
  explicit Index(const trace::Trace& trace);

  const trace::Trace& trace;
  std::vector<uint64_t> recorded;  // the value of every expression in the recording
  bool opaque = false;             // some expression is opaque

  // A byte of memory at the start; nothing: not known.
  std::optional<uint8_t> initial(Place byte) const;
  // A semaphore's count at the start, if nothing initialises it.
  int64_t initial_count(Place semaphore) const;
  // Who wrote a byte last before that event; kNone: nobody.
  uint32_t last_write(Place byte, uint32_t before) const;
  // Whether an expression has its recorded value wherever all events before that one have executed as recorded, and inputs are
  // what they were.
  bool settled(trace::ExprId id, uint32_t before) const { return settled_at_[id] <= before; }
  // The pins that follow a read-modify-write directly in its thread: they are part of it.
  std::span<const uint32_t> own_pins(uint32_t rmw) const {
    const auto it = own_pins_.find(rmw);
    return it == own_pins_.end() ? std::span<const uint32_t>{} : std::span<const uint32_t>(it->second);
  }
  // Where a tainted read took each of its bytes from in the recording.
  const std::vector<uint32_t>& source(uint32_t tainted_read) const { return source_.at(tainted_read); }

 private:
  void find_memory();
  void find_settled();
  void find_counts();
  void find_own_pins();
  std::map<Place, uint8_t> first_read_;  // bytes that the recording read before anything wrote them
  std::map<Place, int64_t> count_;
  std::map<Place, std::vector<uint32_t>> writes_;  // by aligned 8 bytes, ascending
  std::vector<uint32_t> settled_at_;               // by expression: one more than the last read it depends on
  std::unordered_map<uint32_t, std::vector<uint32_t>> source_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> own_pins_;
};

}  // namespace stem::encoder
