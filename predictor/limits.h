// What a refutation on one trace holds fixed although the program might change it: pins, pinned reads, answers of the outside
// world, writes of unseen code, attempts that failed, threads whose end was not recorded. Where nothing of that can come
// before a branch, "no execution of this path" is a statement about the program and not about the recording.
//
// A pin is a limit only if it can have another value at all: take the first pin that an execution of the program violates; all
// before it hold, so up to there it is an execution of the trace, and asking for another value of that pin finds it. Pins
// that rest on reads with one possible source are settled without asking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "predictor/model.h"
#include "predictor/must_order.h"

namespace stem::predictor {

class Limits {
 public:
  // can_change: whether a pin or pinned read of the trace may have another value in some execution; asked once for each.
  Limits(const Model& model, const MustOrder& order, std::function<bool(uint32_t)> can_change);

  // What may be in the way before the branch, for people; empty: nothing.
  std::string before(uint32_t branch);

 private:
  struct Candidate {
    uint32_t event;
    const char* what;
    bool ask;  // a limit only if it can change
  };
  bool settled(trace::ExprId id, int depth = 0);
  bool settled_read(uint32_t read, int depth);
  bool one_source(uint32_t read, uint32_t atom, uint32_t source) const;
  bool changes(uint32_t event);
  void find();

  const Model& model_;
  const MustOrder& order_;
  std::function<bool(uint32_t)> can_change_;
  std::vector<Candidate> candidates_;
  std::unordered_map<uint32_t, bool> changes_;
  std::unordered_map<trace::ExprId, bool> settled_;
};

}  // namespace stem::predictor
