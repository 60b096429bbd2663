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
  return g;
}

uint64_t Group::address(const stem_rec* r, size_t access) const {
  const stem_group_access& a = accesses[access];
  uint64_t address = 0;
  if (a.at_addr) std::memcpy(&address, reinterpret_cast<const char*>(r) + a.at_addr, sizeof address);
  return address + a.addr;
}

uint64_t Group::value(const stem_rec* r, size_t access) const {
  const stem_group_access& a = accesses[access];
  uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(r) + a.at_value, a.size);
  return value;
}

void Group::expand(const stem_rec* r, uint32_t next_id, std::vector<stem_rec>& out) const {
  for (stem_rec record : records) {
    if (is_access(record)) record.head = (record.head & ~kAddress) | (address(r, record.head & kAddress) & kAddress);
    if (record.value == STEM_GROUP_TAKEN)
      record.value = taken(*r);
    else if (record.value)
      record.value = value(r, record.value - 1);
    if (record.expr) record.expr += next_id - 1;
    if (record.site && (record.head >> 48 & 0xff) == STEM_RAW_Expr) record.site += next_id - 1;
    out.push_back(record);
  }
}

}  // namespace stem::collect
