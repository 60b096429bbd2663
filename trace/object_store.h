// The objects of a run while something can still refer to them. A program that allocates a million times has a million
// objects, so they are kept in pages by id, and a page goes when all its objects were dropped.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "trace/event.h"

namespace stem::trace {

class ObjectStore {
 public:
  struct Entry {
    uint64_t base = 0, size = 0, ordinal = 0;
    uint32_t name = 0, prefix = 0;  // strings
    uint32_t born = kNone, site = 0;
    ObjectKind kind = ObjectKind::Unknown;
    bool zeroed = false, dropped = false, numbered = false;
    std::vector<uint8_t> initial;
  };

  uint32_t count() const { return count_; }
  uint32_t add(Entry entry) {
    if (count_ % kPage == 0) pages_.push_back(std::make_unique<Page>());
    pages_.back()->entries[count_ % kPage] = std::move(entry);
    ++pages_.back()->live;
    return count_++;
  }
  // Nothing if it was dropped with its page, or never was.
  const Entry* find(uint32_t id) const {
    if (id >= count_ || !pages_[id / kPage]) return nullptr;
    return &pages_[id / kPage]->entries[id % kPage];
  }
  uint64_t base(uint32_t id) const {
    const Entry* entry = find(id);
    return entry ? entry->base : 0;
  }
  void drop(uint32_t id) {
    auto* entry = const_cast<Entry*>(find(id));
    if (!entry || entry->dropped) return;
    entry->dropped = true;
    auto& page = pages_[id / kPage];
    if (--page->live == 0 && count_ / kPage > id / kPage) page.reset();
  }

 private:
  static constexpr uint32_t kPage = 512;
  struct Page {
    std::array<Entry, kPage> entries;
    uint32_t live = 0;
  };
  std::vector<std::unique_ptr<Page>> pages_;
  uint32_t count_ = 0;
};

}  // namespace stem::trace
