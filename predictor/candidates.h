// The static pairs of a trace, found by streaming it: how many instances each has, how many of them the recording shows, and
// some instances to try first (close together, and early, so that their witnesses are short).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "predictor/model.h"
#include "predictor/must_order.h"
#include "predictor/witness.h"

namespace stem::predictor {

struct StaticPair {
  trace::SiteId def = 0;           // kNone: the initial value
  trace::SiteId use = 0;
  uint32_t variable = trace::kNone;  // of the use
  uint64_t instances = 0, observed = 0;
  EventPair example;               // an observed instance, or the first found
  bool tainted = false;
  std::vector<EventPair> kept;
};

class Candidates {
 public:
  Candidates(const Model& model, uint32_t keep);

  std::vector<StaticPair> pairs;
  // Which static pair an event pair belongs to; kNone if they never share memory.
  uint32_t find(uint32_t w, uint32_t r) const {
    return find_classes(w == kFromStart ? 0 : def_class_[w], use_class_[r]);
  }
  uint32_t def_class(uint32_t w) const { return w == kFromStart ? 0 : def_class_[w]; }
  uint32_t def_classes() const { return defs_; }
  uint32_t use_class(uint32_t r) const { return use_class_[r]; }
  uint32_t use_classes() const { return uses_; }
  const std::vector<uint32_t>& pairs_of_use(uint32_t use_class) const { return by_use_[use_class]; }

  // Whether order and locks alone exclude every instance. After summarise().
  void summarise(const MustOrder& order);
  bool refuted(uint32_t pair, const MustOrder& order) const;

 private:
  uint32_t find_classes(uint32_t def, uint32_t use) const {
    const auto it = ids_.find(uint64_t{def} << 32 | use);
    return it == ids_.end() ? trace::kNone : it->second;
  }
  bool refuted_read(const StaticPair& pair, uint32_t r, uint32_t atom, const MustOrder& order) const;
  uint32_t last_before(uint32_t r, const Chain& chain, const MustOrder& order) const;
  void classify();
  void count();
  void keep(uint32_t limit);

  const Model& model_;
  uint32_t defs_ = 1, uses_ = 0;            // def class 0 is the initial value
  std::vector<uint32_t> def_class_, use_class_;  // by event
  std::vector<std::vector<uint32_t>> reads_of_use_;
  std::vector<std::vector<uint32_t>> by_use_;
  std::unordered_map<uint64_t, uint32_t> ids_;
  // Writes of one site to one atom by one thread, ascending, with the locks that every one of them holds or is hidden by.
  struct Group {
    uint32_t def_class;
    trace::ThreadId thread;
    std::vector<uint32_t> positions;
    uint64_t held = ~uint64_t{0}, shielded = ~uint64_t{0};
  };
  std::vector<std::vector<Group>> groups_;  // by atom
};

}  // namespace stem::predictor
