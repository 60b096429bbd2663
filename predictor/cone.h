// What one event needs of a recording, if everything keeps its recorded order and every read its recorded source: for each
// thread how many of its events. What is left out is not ordered before the event by anything, so an execution need not
// contain it. Linear in the cone.
#pragma once

#include <cstdint>
#include <vector>

#include "predictor/model.h"

namespace stem::predictor {

class Cones {
 public:
  explicit Cones(const Model& model);

  // By thread: events [0, count) of it. The event itself included.
  std::vector<uint32_t> of(uint32_t event) const;

 private:
  const Model& model_;
  std::vector<std::vector<uint32_t>> by_sync_;  // by lock, semaphore, condition: all its events, as recorded
};

}  // namespace stem::predictor
