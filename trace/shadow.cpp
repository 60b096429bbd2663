#include "trace/shadow.h"

#include <algorithm>

namespace stem::trace {

Shadow::Page* Shadow::lookup(uint64_t number) const {
  size_t wrap = slots_.size() - 1;
  for (size_t i = hash(number) & wrap; slots_[i]; i = (i + 1) & wrap) {
    if (pages_[slots_[i] - 1]->number == number) return pages_[slots_[i] - 1].get();
  }
  return nullptr;
}

void Shadow::insert_slot(uint32_t index) {
  size_t wrap = slots_.size() - 1;
  size_t i = hash(pages_[index]->number) & wrap;
  while (slots_[i]) i = (i + 1) & wrap;
  slots_[i] = index + 1;
}

void Shadow::remove_slot(uint64_t number) {
  size_t wrap = slots_.size() - 1;
  size_t i = hash(number) & wrap;
  while (slots_[i] && pages_[slots_[i] - 1]->number != number) i = (i + 1) & wrap;
  if (!slots_[i]) return;
  // Close the gap, so that probing needs no tombstones.
  for (size_t j = (i + 1) & wrap; slots_[j]; j = (j + 1) & wrap) {
    size_t home = hash(pages_[slots_[j] - 1]->number) & wrap;
    if (((j - home) & wrap) >= ((j - i) & wrap)) {
      slots_[i] = slots_[j];
      i = j;
    }
  }
  slots_[i] = 0;
}

Shadow::Page* Shadow::add(uint64_t number) {
  uint32_t index;
  if (pages_.size() < max_pages_) {
    index = static_cast<uint32_t>(pages_.size());
    pages_.push_back(std::make_unique<Page>());
    pages_[index]->number = number;
    if (pages_.size() * 2 > slots_.size()) {
      slots_.assign(slots_.size() * 2, 0);
      for (uint32_t i = 0; i < index; ++i) insert_slot(i);
    }
  } else {
    index = static_cast<uint32_t>(victim_);
    victim_ = (victim_ + 1) % max_pages_;
    Page& old = *pages_[index];
    auto& line = cache_[old.number & (cache_.size() - 1)];
    if (line.first == old.number) line = {~0ull, nullptr};
    remove_slot(old.number);
    old.number = number;
    ++evicted_;
  }
  Page& page = *pages_[index];
  std::memset(page.bytes, 0, sizeof page.bytes);
  std::memset(page.known, 0, sizeof page.known);
  insert_slot(index);
  cache_[number & (cache_.size() - 1)] = {number, &page};
  return &page;
}

Shadow::Seen Shadow::get_split(uint64_t addr, unsigned size) {
  unsigned first = 4096 - (addr & 4095);
  Seen low = get(addr, first), high = get(addr + first, size - first);
  return {low.value | high.value << (8 * first), static_cast<uint8_t>(low.known | high.known << first)};
}

void Shadow::set_split(uint64_t addr, unsigned size, uint64_t value) {
  unsigned first = 4096 - (addr & 4095);
  set(addr, first, value);
  set(addr + first, size - first, value >> (8 * first));
}

void Shadow::forget(uint64_t addr, uint64_t size, bool zero) {
  if (size == 0 || addr + size < addr) return;
  uint64_t first = addr >> 12, last = (addr + size - 1) >> 12;
  bool scan_pages = last - first + 1 > pages_.size();
  auto clear = [&](Page& page) {
    uint64_t begin = std::max(addr, page.number << 12) - (page.number << 12);
    uint64_t end = std::min(addr + size, (page.number + 1) << 12) - (page.number << 12);
    std::memset(page.bytes + begin, 0, end - begin);
    for (uint64_t at = begin; at < end;) {
      if ((at & 63) == 0 && at + 64 <= end) {
        page.known[at >> 6] = zero ? ~0ull : 0;
        at += 64;
      } else {
        uint64_t bit = 1ull << (at & 63);
        page.known[at >> 6] = zero ? page.known[at >> 6] | bit : page.known[at >> 6] & ~bit;
        ++at;
      }
    }
  };
  if (zero && last - first < 16) {  // larger ones: only what is there already; the rest reads as unknown
    for (uint64_t n = first; n <= last; ++n) clear(*find_or_add(n));
  } else if (scan_pages) {
    for (auto& page : pages_) {
      if (page->number >= first && page->number <= last) clear(*page);
    }
  } else {
    for (uint64_t n = first; n <= last; ++n) {
      if (Page* page = find(n)) clear(*page);
    }
  }
}

bool Shadow::known(uint64_t addr, uint64_t size) {
  const uint64_t begin = addr & 4095, end = begin + size;
  const Page* page = find(addr >> 12);
  for (uint64_t i = begin; i < end;) {
    const uint64_t next = std::min((i | 63) + 1, end), bits = mask_of(i & 63, next - i);
    if ((page->known[i >> 6] & bits) != bits) return false;
    i = next;
  }
  return true;
}

void Shadow::mark(uint64_t addr, uint64_t size) {
  const uint64_t begin = addr & 4095, end = begin + size;
  Page* page = find(addr >> 12);
  for (uint64_t i = begin; i < end;) {
    const uint64_t next = std::min((i | 63) + 1, end);
    page->known[i >> 6] |= mask_of(i & 63, next - i);
    i = next;
  }
}

}  // namespace stem::trace
