// How a recorder's expressions become those of the file: a recorder counts them per thread and writes constants where
// they are used; the file counts them over all threads, and a constant is an expression of its own.
#pragma once

#include <utility>
#include <vector>

#include "trace/eval.h"
#include "trace/model.h"

namespace stem::trace {

// Thread-local expression ids -> ids in the file, as runs of consecutive ones: it grows with thread switches and new
// constants, not with expressions.
class IdRuns {
 public:
  void add(ExprId id) {
    uint32_t local = next_++;
    if (id - local == last_shift_ && !runs_.empty()) return;
    last_first_ = local;
    last_shift_ = id - local;
    runs_.emplace_back(local, id);
  }
  void add(ExprId first, uint32_t count) {  // that follow one another
    if (count == 0) return;
    add(first);
    next_ += count - 1;
  }
  // 0 if there is no such id.
  ExprId find(uint32_t local) const {
    if (local >= last_first_ && local < next_) return local + last_shift_;
    return search(local);
  }

  uint32_t next() const { return next_; }

 private:
  ExprId search(uint32_t local) const;

  uint32_t next_ = 1;
  uint32_t last_first_ = 1, last_shift_ = 0;  // of the last run
  std::vector<std::pair<uint32_t, ExprId>> runs_;
};

// The constants that were made last. One that is no longer recent predicts nothing: better a new one.
class Constants {
 public:
  static constexpr uint32_t kKnown = Model::kRecent / 2;  // so many expressions later it is not given any more
  // 0: there is none.
  ExprId find(unsigned width, uint64_t value, ExprId next) const {
    const Entry& c = entries_[index(width, value)];
    return c.id && c.width == width && c.value == value && next - c.id < kKnown ? c.id : 0;
  }
  void add(unsigned width, uint64_t value, ExprId id) { entries_[index(width, value)] = {value, width, id}; }

  // May the two not be known at the same time?
  static bool exclude(unsigned width, uint64_t value, unsigned other_width, uint64_t other) {
    return index(width, value) == index(other_width, other);
  }

 private:
  struct Entry {
    uint64_t value = 0;
    uint32_t width = 0;
    ExprId id = 0;
  };
  static size_t index(unsigned width, uint64_t value) { return (value * 0x9e3779b97f4a7c15ull + width) >> 52; }
  std::vector<Entry> entries_ = std::vector<Entry>(1 << 12);
};

}  // namespace stem::trace
