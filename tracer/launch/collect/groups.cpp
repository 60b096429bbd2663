#include "tracer/launch/collect/groups.h"

#include <cstring>

namespace stem::collect {

namespace {

constexpr uint64_t kAddress = 0xffffffffffffull;

bool is_access(const stem_rec& r) {
  const unsigned kind = r.head >> 48 & 0xff;
  return kind == STEM_KIND_Read || kind == STEM_KIND_Write;
}

}  // namespace

std::optional<Group> Group::parse(const std::string& bytes) {
  stem_group head;
  if (bytes.size() < sizeof head) return {};
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.accesses > 1u << 16 || head.records > 1u << 16 || head.size == 0 || head.size > 255) return {};
  const size_t accesses = head.accesses * sizeof(stem_group_access), records = head.records * sizeof(stem_rec);
  if (bytes.size() != sizeof head + accesses + records) return {};
  Group g;
  g.ids = head.ids;
  g.size = head.size;
  g.accesses.resize(head.accesses);
  g.records.resize(head.records);
  std::memcpy(g.accesses.data(), bytes.data() + sizeof head, accesses);
  std::memcpy(g.records.data(), bytes.data() + sizeof head + accesses, records);
  const size_t room = head.size * sizeof(stem_rec);
  for (const stem_group_access& a : g.accesses) {
    if (a.size == 0 || a.size > 8 || a.at_value < 8 || a.at_value + a.size > room || a.at_addr + 8u > room) return {};
  }
  uint32_t ids = 0;
  for (const stem_rec& r : g.records) {
    const unsigned kind = r.head >> 48 & 0xff;
    if (is_access(r) && (r.head & kAddress) >= head.accesses) return {};
    if (!is_access(r) && kind != STEM_KIND_Pin && kind != STEM_KIND_Branch && kind != STEM_RAW_Expr) return {};
    if (r.value > head.accesses && r.value != STEM_GROUP_TAKEN) return {};
    // Each refers to what the group has made before it.
    if (r.expr > ids ||
        (kind == STEM_RAW_Expr && (r.site > ids || r.head >> 56 != STEM_OP_Opaque || (r.head & 0xff) - 1 >= 64)))
      return {};
    if (is_access(r) && (r.value != (r.head & kAddress) + 1 || (r.head >> 56 & 0xf) != g.accesses[r.value - 1].size))
      return {};
    if ((r.value == STEM_GROUP_TAKEN) != (kind == STEM_KIND_Branch) || (kind == STEM_KIND_Pin && (!r.value || !r.expr)))
      return {};
    if (kind == STEM_RAW_Expr || (is_access(r) && r.head >> 56 & STEM_AUX_LEAF)) ++ids;
  }
  if (ids != head.ids) return {};
  g.find_parts();
  return g;
}

void Group::find_parts() {
  for (stem_rec& r : records) {
    Part part;
    if (is_access(r)) {
      const stem_group_access& a = accesses[r.head & kAddress];
      part.addr = a.addr;
      part.at_addr = a.at_addr;
      r.head = (r.head & ~kAddress) | (a.at_addr ? 0 : a.addr & kAddress);
    }
    part.taken = r.value == STEM_GROUP_TAKEN;
    if (!part.taken && r.value) {
      part.at_value = accesses[r.value - 1].at_value;
      part.size = static_cast<uint8_t>(accesses[r.value - 1].size);
    }
    part.expr = r.expr != 0;
    part.site = r.site && (r.head >> 48 & 0xff) == STEM_RAW_Expr;
    parts_.push_back(part);
  }
}

void Group::expand(const stem_rec* r, uint32_t next_id, stem_rec* out) const {
  const char* const bytes = reinterpret_cast<const char*>(r);
  const Part* part = parts_.data();
  for (const stem_rec& record : records) {
    *out = record;
    if (part->at_addr) {
      uint64_t address;
      std::memcpy(&address, bytes + part->at_addr, sizeof address);
      out->head |= (address + part->addr) & kAddress;
    }
    if (part->at_value) {
      const char* at = bytes + part->at_value;
      uint64_t value = 0;
      if (part->size == 8) std::memcpy(&value, at, 8);
      else if (part->size == 4) std::memcpy(&value, at, 4);
      else if (part->size == 1) value = static_cast<uint8_t>(*at);
      else std::memcpy(&value, at, part->size);
      out->value = value;
    } else if (part->taken) {
      out->value = taken(*r);
    }
    if (part->expr) out->expr += next_id - 1;
    if (part->site) out->site += next_id - 1;
    ++out, ++part;
  }
}

}  // namespace stem::collect
