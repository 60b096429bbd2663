// Value and width of every expression of a run, by id, in bounded memory: the last few million are kept, older ones go to a
// temporary file and are fetched when something refers that far back (a value kept in private memory for long).
#pragma once

#include <cstdint>
#include <cstdio>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trace/event.h"

namespace stem::trace {

class ValueStore {
 public:
  enum State : uint8_t { Known, Pending, Lost };
  struct Value {
    uint64_t value = 0;
    uint8_t width = 0;
    State state = Lost;
  };

  explicit ValueStore(size_t pages_in_memory = 64) : most_(pages_in_memory) {}
  ~ValueStore() {
    if (file_) std::fclose(file_);
  }
  ValueStore(const ValueStore&) = delete;

  void push(const Value& value) {  // the next id, from 0
    if (count_ % kPage == 0) new_page();
    pages_.back()->at[count_++ % kPage] = value;
  }
  uint64_t size() const { return count_; }
  Value get(uint64_t id) {
    if (id >= count_) return {};
    uint64_t page = id / kPage;
    if (pages_[page]) return pages_[page]->at[id % kPage];
    return fetch(page, id % kPage);
  }
  // Only for recent ids: those that are still pending.
  void set(uint64_t id, const Value& value) {
    if (id < count_ && pages_[id / kPage]) pages_[id / kPage]->at[id % kPage] = value;
  }
  // What an operation gives with the values of its operands; Lost or Pending if one of them is. Not for reads and inputs.
  Value apply(const Expr& e);
  uint64_t spilled() const { return first_in_memory_ * kPage; }

 private:
  static constexpr uint64_t kPage = 1 << 16;
  struct Page {
    Value at[kPage];
  };
  void new_page();
  Value fetch(uint64_t page, uint64_t at);

  size_t most_;
  uint64_t count_ = 0, first_in_memory_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
  std::FILE* file_ = nullptr;
  bool file_failed_ = false;
  std::list<std::pair<uint64_t, std::unique_ptr<Page>>> fetched_;  // most recent first
};

}  // namespace stem::trace
