// The last known value of every byte of memory, in pages of 4 KiB found by a hash table with a small cache in front: about
// 3 ns for an access to a page that was just used.
//
// Bounded: past `max_pages` a new page takes the place of an old one, round robin, whose bytes are then unknown again. The
// writer and the reader of a trace file see the same accesses, so they forget the same pages.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace stem::trace {

class Shadow {
 public:
  struct Seen {
    uint64_t value;  // unknown bytes are 0
    uint8_t known;   // a bit for each byte
  };

  explicit Shadow(size_t max_pages = 32768) : max_pages_(max_pages) {
    slots_.assign(1024, 0);
    cache_.fill({~0ull, nullptr});
  }

  Seen get(uint64_t addr, unsigned size) {
    unsigned at = addr & 4095;
    if (at + size > 4096) return get_split(addr, size);
    const Page* page = find(addr >> 12);
    if (!page) return {0, 0};
    uint64_t value;
    std::memcpy(&value, page->bytes + at, 8);  // the page has 8 bytes of slack
    return {value & mask(size), known(*page, at, size)};
  }

  void set(uint64_t addr, unsigned size, uint64_t value) {
    unsigned at = addr & 4095;
    if (at + size > 4096) return set_split(addr, size, value);
    Page* page = find_or_add(addr >> 12);
    std::memcpy(page->bytes + at, &value, size);
    mark(*page, at, size);
  }

  // The same for who keeps the page it came to last.
  struct Page {
    uint64_t number = ~0ull;
    uint8_t bytes[4096 + 8];
    uint64_t known[65];  // a bit for each byte
  };
  struct Place {
    Page* page;  // nullptr: none yet
  };
  Seen get(uint64_t addr, unsigned size, Place& place) {
    unsigned at = addr & 4095;
    if (at + size > 4096) return get_split(addr, size);
    if (!place.page || place.page->number != addr >> 12) {
      place.page = find(addr >> 12);
      if (!place.page) return {0, 0};
    }
    uint64_t value;
    std::memcpy(&value, place.page->bytes + at, 8);
    return {value & mask(size), known(*place.page, at, size)};
  }
  // All its bytes are known, and this is what they are.
  bool holds(uint64_t addr, unsigned size, uint64_t value, Place& place) {
    const unsigned at = addr & 4095, bit = at & 63;
    if (at + size > 4096 || bit + size > 64 || !place.page || place.page->number != addr >> 12) [[unlikely]] {
      const Seen seen = get(addr, size, place);
      return seen.value == value && seen.known == (1u << size) - 1;
    }
    uint64_t held;
    std::memcpy(&held, place.page->bytes + at, 8);
    const uint64_t wanted = (1ull << size) - 1;
    return ((held ^ value) & mask(size)) == 0 && (place.page->known[at >> 6] >> bit & wanted) == wanted;
  }
  // The bytes from addr to last, if they are all known and of one page.
  uint8_t* known_bytes(uint64_t addr, uint64_t last, Place& place) {
    if (addr >> 12 != last >> 12) return nullptr;
    if (!place.page || place.page->number != addr >> 12) {
      place.page = find(addr >> 12);
      if (!place.page) return nullptr;
    }
    const unsigned begin = addr & 4095, end = last & 4095;
    for (unsigned word = begin >> 6; word <= end >> 6; ++word) {
      uint64_t wanted = ~0ull;
      if (word == begin >> 6) wanted &= ~0ull << (begin & 63);
      if (word == end >> 6) wanted &= ~0ull >> (63 - (end & 63));
      if ((place.page->known[word] & wanted) != wanted) return nullptr;
    }
    return place.page->bytes + begin;
  }
  void set(uint64_t addr, unsigned size, uint64_t value, Place& place) {
    unsigned at = addr & 4095;
    if (at + size > 4096) return set_split(addr, size, value);
    if (!place.page || place.page->number != addr >> 12) place.page = find_or_add(addr >> 12);
    uint8_t* to = place.page->bytes + at;
    if (size == 8) std::memcpy(to, &value, 8);
    else if (size == 4) std::memcpy(to, &value, 4);
    else std::memcpy(to, &value, size);
    mark(*place.page, at, size);
  }

  // Bytes of a new object: unknown, or zero.
  void forget(uint64_t addr, uint64_t size, bool zero = false);

  size_t pages() const { return pages_.size(); }
  uint64_t evicted() const { return evicted_; }

 private:
  static uint64_t mask(unsigned size) { return size >= 8 ? ~0ull : (1ull << (8 * size)) - 1; }
  static uint8_t known(const Page& page, unsigned at, unsigned size) {
    unsigned word = at >> 6, bit = at & 63;
    uint64_t bits = page.known[word] >> bit;
    if (bit > 56) bits |= page.known[word + 1] << (64 - bit);
    return static_cast<uint8_t>(bits & ((1u << size) - 1));
  }
  static void mark(Page& page, unsigned at, unsigned size) {
    unsigned word = at >> 6, bit = at & 63;
    uint64_t bits = (1ull << size) - 1;
    page.known[word] |= bits << bit;
    if (bit + size > 64) page.known[word + 1] |= bits >> (64 - bit);
  }

  Page* find(uint64_t number) {
    auto& line = cache_[number & (cache_.size() - 1)];
    if (line.first == number) return line.second;
    Page* page = lookup(number);
    if (page) line = {number, page};
    return page;
  }
  Page* find_or_add(uint64_t number) {
    if (Page* page = find(number)) return page;
    return add(number);
  }
  Page* lookup(uint64_t number) const;
  Page* add(uint64_t number);
  void insert_slot(uint32_t index);
  void remove_slot(uint64_t number);
  Seen get_split(uint64_t addr, unsigned size);
  void set_split(uint64_t addr, unsigned size, uint64_t value);
  static size_t hash(uint64_t number) { return (number * 0x9e3779b97f4a7c15ull) >> 20; }

  size_t max_pages_;
  size_t victim_ = 0;
  uint64_t evicted_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<uint32_t> slots_;  // open addressing: 1 + index of a page
  std::array<std::pair<uint64_t, Page*>, 512> cache_;
};

}  // namespace stem::trace
