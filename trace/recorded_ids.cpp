#include "trace/recorded_ids.h"

#include <algorithm>

namespace stem::trace {

ExprId IdRuns::search(uint32_t local) const {
  if (local == 0 || local >= next_) return 0;
  // Mostly one of the last few.
  for (size_t i = runs_.size(), tries = 8; i > 0 && tries > 0; --i, --tries) {
    if (local >= runs_[i - 1].first) return runs_[i - 1].second + (local - runs_[i - 1].first);
  }
  auto after =
      std::upper_bound(runs_.begin(), runs_.end(), local, [](uint32_t v, const auto& run) { return v < run.first; });
  const auto& run = *std::prev(after);
  return run.second + (local - run.first);
}

}  // namespace stem::trace
