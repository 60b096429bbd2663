// Which objects are gone for good: those whose memory another one has taken. A release alone does not say so: a program
// may use what it has released, and is followed there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "trace/event.h"

namespace stem::predictor {

class Lives {
 public:
  // For every event in order; calls gone(object).
  template <typename Gone>
  void event(const trace::Event& e, Gone gone) {
    if (e.kind != trace::Kind::Alloc || e.object == trace::kNone) return;
    const uint64_t end = e.addr + std::max<uint64_t>(e.value, 1);
    auto it = taken_.upper_bound(e.addr);  // by end: the first that ends beyond our beginning
    while (it != taken_.end() && it->second.base < end) {
      gone(it->second.object);
      it = taken_.erase(it);
    }
    taken_[end] = {e.addr, e.object};
  }

 private:
  struct Taken {
    uint64_t base;
    uint32_t object;
  };
  std::map<uint64_t, Taken> taken_;  // by end; they do not overlap
};

}  // namespace stem::predictor
