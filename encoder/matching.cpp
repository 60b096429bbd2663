// φim: each read takes the value of some write to the same bytes that precedes it with no write between.
//
// Accesses of different sizes may overlap, so a read is cut into chunks of bytes that the same writes cover; each chunk has
// its own last write. Reads on which no branch or pin depends need no match. What the certain order already excludes (a
// write that comes after the read, or is always overwritten before it) is left out.
#include <algorithm>

#include "encoder/paper.h"
#include "encoder/values.h"

namespace stem::encoder {

std::vector<Chunk> Values::chunks(uint32_t read) const {
  static const std::vector<uint32_t> none;
  std::vector<Chunk> chunks;
  const Event& event = f_.event(read);
  for (unsigned k = 0; k < event.size; ++k) {
    const Place byte{event.object, event.addr + k};
    auto it = writers_.find(byte);
    const std::vector<uint32_t>& writers = it == writers_.end() ? none : it->second;
    const uint32_t before = f_.first > 0 ? f_.index.last_write(byte, f_.first) : kInitial;
    const bool known = before != kInitial || f_.index.initial(byte).has_value();
    if (!chunks.empty() && chunks.back().writers == writers && chunks.back().initial_known == known && chunks.back().before == before)
      ++chunks.back().count;
    else chunks.push_back({k, 1, writers, before, known});
  }
  if (!f_.options.paper)
    for (Chunk& chunk : chunks) prune(read, chunk.writers);
  return chunks;
}

// Leaves the writes that the read may take or that may come between: not one that comes after the read for certain, nor one
// that another overwrites before it for certain. What a thread does with memory of its own then has one write left.
void Values::prune(uint32_t read, std::vector<uint32_t>& writers) const {
  std::map<trace::ThreadId, uint32_t> last;  // before the read for certain
  for (uint32_t write : writers)
    if (f_.must_before(write, read)) last[f_.event(write).thread] = write;
  std::erase_if(writers, [&](uint32_t write) {
    return write == read || f_.must_before(read, write) ||
           std::any_of(last.begin(), last.end(), [&](const auto& one) { return f_.must_before(write, one.second); });
  });
}

z3::expr Values::takes(uint32_t read, const Chunk& chunk, uint32_t write) {
  if (f_.options.paper) return paper_takes(f_, read, chunk, write);
  std::vector<z3::expr> parts;
  if (write != kInitial) {
    if (write == read) return f_.z3.bool_val(false);
    parts.push_back(f_.before(write, read));
    if (parts.back().is_false()) return parts.back();
  }
  for (uint32_t other : chunk.writers) {
    if (other == write || other == read) continue;
    std::vector<z3::expr> outside{f_.before(read, other)};
    if (write != kInitial) outside.push_back(f_.before(other, write));
    parts.push_back(f_.any(outside));
    if (parts.back().is_false()) return parts.back();
  }
  return f_.all(parts);
}

// What was there when the scope began.
Term Values::initial(uint32_t read, const Chunk& chunk) {
  uint64_t bits = 0;
  const Event& event = f_.event(read);
  for (unsigned k = 0; k < chunk.count; ++k) {
    const uint64_t at = event.addr + chunk.first + k;
    uint64_t byte = 0;
    if (chunk.before == kInitial) {
      byte = f_.index.initial({event.object, at}).value_or(0);
    } else {
      const Event& w = f_.event(chunk.before);
      byte = (w.kind == Kind::Rmw ? w.value2 : w.value) >> 8 * (at - w.addr) & 0xff;
    }
    bits |= byte << 8 * k;
  }
  return {f_.z3.bv_val(bits, 8 * chunk.count), f_.z3.bool_val(chunk.initial_known)};
}

void Values::add_match(uint32_t e) {
  const Event& event = f_.event(e);
  const Term value = read(e);
  std::vector<z3::expr> known;
  for (const Chunk& chunk : chunks(e)) {
    const auto part = [](const z3::expr& bits, unsigned first, unsigned count) {
      return bits.extract(8 * (first + count) - 1, 8 * first);
    };
    const z3::expr bits = part(value.bits, chunk.first, chunk.count);
    z3::expr chunk_known = f_.z3.bool_val(true);
    if (unknowns_)
      chunk_known = f_.z3.bool_const(("known" + std::to_string(e) + "_" + std::to_string(chunk.first)).c_str());
    known.push_back(chunk_known);
    std::vector<z3::expr> options;
    const auto option = [&](const z3::expr& takes, const Term& from) {
      if (takes.is_false()) return;
      std::vector<z3::expr> parts{takes, bits == from.bits};
      if (unknowns_) parts.push_back(chunk_known == from.known);
      options.push_back(f_.all(parts));
    };
    option(takes(e, chunk, kInitial), initial(e, chunk));
    for (uint32_t write : chunk.writers) {
      if (write == e) continue;
      const Event& from = f_.event(write);
      const Term whole = written(write);
      const unsigned offset = static_cast<unsigned>(event.addr + chunk.first - from.addr);
      option(takes(e, chunk, write), {part(whole.bits, offset, chunk.count), whole.known});
    }
    f_.require_if_executed(e, f_.any(options));
  }
  if (unknowns_) f_.require(value.known == f_.all(known));
}

// A read of a tainted object takes every byte from where the recording took it.
void Values::add_taint(uint32_t e) {
  const std::vector<uint32_t>& source = f_.index.source(e);
  for (const Chunk& chunk : chunks(e))
    for (unsigned k = 0; k < chunk.count; ++k) {
      const uint32_t from = source[chunk.first + k];
      if (from == chunk.before) f_.require_if_executed(e, takes(e, chunk, kInitial));
      else if (from == kInitial || !f_.in_scope(from)) f_.require_if_executed(e, f_.z3.bool_val(false));
      else f_.require_if_executed(e, takes(e, chunk, from));
    }
}

void Values::add_matching() {
  // Each chunk of a read: every write that it may take against every other.
  constexpr size_t kLargest = 400'000;  // about half a gigabyte
  size_t terms = 0;
  for (uint32_t read : relevant_) {
    for (const Chunk& chunk : chunks(read)) terms += chunk.writers.size() * chunk.writers.size();
    if (terms > kLargest) f_.given_up = "the formula would be too large";
    if (f_.late() || !f_.given_up.empty()) return;
    add_match(read);
  }
  for (uint32_t e : f_.events)
    if (reads(f_.event(e)) && f_.event(e).flags & trace::kTainted && e != f_.target) add_taint(e);
}

}  // namespace stem::encoder
