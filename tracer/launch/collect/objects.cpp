#include "tracer/launch/collect/objects.h"

#include <algorithm>

namespace stem::collect {

uint32_t LiveObjects::find(uint64_t address) {
  uint32_t& cached = cache_[line(address)];
  if (cached != kNoSlot && slots_[cached]->contains(address)) return cached;
  auto after = by_base_.upper_bound(address);
  if (after == by_base_.begin()) return kNoSlot;
  uint32_t slot = std::prev(after)->second;
  if (!slots_[slot]->contains(address)) return kNoSlot;
  return cached = slot;
}

uint32_t LiveObjects::add(uint64_t base, uint64_t size, std::vector<uint32_t>& ended) {
  size = std::max<uint64_t>(size, 1);
  if (base + size < base) size = ~0ull - base;
  auto at = by_base_.lower_bound(base);
  if (at != by_base_.begin() && slots_[std::prev(at)->second]->contains(base)) --at;
  while (at != by_base_.end() && at->first < base + size) {
    uint32_t slot = (at++)->second;
    ended.push_back(slots_[slot]->id);
    remove(slot);
  }
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(std::make_unique<Live>());
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot]->base = base;
  slots_[slot]->size = size;
  slots_[slot]->stamp = ++stamps_;
  by_base_.emplace(base, slot);
  return slot;
}

void LiveObjects::remove(uint32_t slot) {
  by_base_.erase(slots_[slot]->base);
  *slots_[slot] = Live{};
  free_.push_back(slot);
}

std::pair<uint64_t, uint64_t> LiveObjects::gap(uint64_t address, uint64_t begin, uint64_t end) const {
  auto after = by_base_.upper_bound(address);
  if (after != by_base_.end()) end = std::min(end, after->first);
  if (after != by_base_.begin()) {
    const Live& before = *slots_[std::prev(after)->second];
    begin = std::max(begin, before.base + before.size);
  }
  return {begin, end};
}

}  // namespace stem::collect
