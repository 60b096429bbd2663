// A set of numbers, as words of bits in one sorted array. What llvm::SparseBitVector does with a list: here a union
// with a few new members looks only at their places, and one with many is a merge of two arrays.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace stem::analysis {

class NumberSet {
 public:
  class iterator {
   public:
    using value_type = uint32_t;
    using difference_type = std::ptrdiff_t;
    uint32_t operator*() const { return set_->words_[at_].index * 64 + static_cast<uint32_t>(std::countr_zero(bits_)); }
    iterator& operator++() {
      bits_ &= bits_ - 1;
      if (bits_ == 0 && ++at_ < set_->words_.size()) bits_ = set_->words_[at_].bits;
      return *this;
    }
    bool operator==(const iterator& other) const { return at_ == other.at_ && bits_ == other.bits_; }

   private:
    friend class NumberSet;
    iterator(const NumberSet* set, size_t at) : set_(set), at_(at) {
      if (at < set->words_.size()) bits_ = set->words_[at].bits;
    }
    const NumberSet* set_;
    size_t at_;
    uint64_t bits_ = 0;
  };

  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, words_.size()}; }
  bool empty() const { return words_.empty(); }
  void clear() { words_ = {}; }
  size_t count() const {
    size_t n = 0;
    for (const Word& word : words_) n += static_cast<size_t>(std::popcount(word.bits));
    return n;
  }

  bool test(uint32_t member) const {
    auto at = place(words_.begin(), member / 64);
    return at != words_.end() && at->index == member / 64 && at->bits >> member % 64 & 1;
  }
  // Was it new?
  bool test_and_set(uint32_t member) {
    auto at = place(words_.begin(), member / 64);
    const uint64_t bit = 1ull << member % 64;
    if (at == words_.end() || at->index != member / 64) return words_.insert(at, {member / 64, bit}), true;
    if (at->bits & bit) return false;
    words_[static_cast<size_t>(at - words_.begin())].bits |= bit;
    return true;
  }
  void set(uint32_t member) { test_and_set(member); }
  static NumberSet of(std::vector<uint32_t> members) {
    std::sort(members.begin(), members.end());
    NumberSet set;
    for (uint32_t member : members) {
      if (set.words_.empty() || set.words_.back().index != member / 64) set.words_.push_back({member / 64, 0});
      set.words_.back().bits |= 1ull << member % 64;
    }
    return set;
  }
  void reset(uint32_t member) {
    NumberSet one;
    one.set(member);
    subtract(one);
  }

  // Did it grow?
  bool operator|=(const NumberSet& other) {
    bool grown = false;
    size_t missing = 0;
    auto at = words_.begin();
    for (const Word& word : other.words_) {
      at = find_from(at, word.index);
      if (at == words_.end() || at->index != word.index) {
        ++missing;
      } else if (word.bits & ~at->bits) {
        at->bits |= word.bits;
        grown = true;
      }
    }
    if (missing == 0) return grown;
    // From the back, so that every word moves once.
    size_t from = words_.size(), take = other.words_.size();
    words_.resize(from + missing);
    for (size_t to = words_.size(); take > 0 && to > from;) {
      if (from > 0 && words_[from - 1].index >= other.words_[take - 1].index) {
        take -= words_[from - 1].index == other.words_[take - 1].index;
        words_[--to] = words_[--from];
      } else {
        words_[--to] = other.words_[--take];
      }
    }
    return true;
  }
  void operator&=(const NumberSet& other) {
    auto at = other.words_.begin();
    for (Word& word : words_) {
      while (at != other.words_.end() && at->index < word.index) ++at;
      word.bits &= at != other.words_.end() && at->index == word.index ? at->bits : 0;
    }
    drop_empty();
  }
  void subtract(const NumberSet& other) {
    auto at = other.words_.begin();
    for (Word& word : words_) {
      while (at != other.words_.end() && at->index < word.index) ++at;
      if (at == other.words_.end()) break;
      if (at->index == word.index) word.bits &= ~at->bits;
    }
    drop_empty();
  }
  bool operator==(const NumberSet&) const = default;
  struct Hash {
    size_t operator()(const NumberSet& set) const {
      uint64_t hash = 0;
      for (const Word& word : set.words_)
        hash = (hash ^ word.bits ^ word.index * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
      return hash ^ hash >> 32;
    }
  };

 private:
  struct Word {
    uint32_t index;
    uint64_t bits;
    bool operator==(const Word&) const = default;
  };
  using Words = std::vector<Word>;

  Words::const_iterator place(Words::const_iterator from, uint32_t index) const {
    return std::lower_bound(from, words_.end(), index, [](const Word& word, uint32_t i) { return word.index < i; });
  }
  // The first word from there on whose index is not smaller: close by, or far away.
  Words::iterator find_from(Words::iterator from, uint32_t index) {
    for (int near = 0; near < 4; ++near, ++from)
      if (from == words_.end() || from->index >= index) return from;
    return std::lower_bound(from, words_.end(), index, [](const Word& word, uint32_t i) { return word.index < i; });
  }
  void drop_empty() {
    std::erase_if(words_, [](const Word& word) { return word.bits == 0; });
  }

  Words words_;
};

}  // namespace stem::analysis
