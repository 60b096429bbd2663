// What some events need of a recording, if everything keeps its recorded order and every read its recorded source: for each
// thread how many of its events. What is left out is not ordered before the event by anything, so an execution need not
// contain it. Linear in the cone. Good for witnesses only: other executions may need other events.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "predictor/model.h"

namespace stem::predictor {

class Cones {
 public:
  explicit Cones(const Model& model);

  // By thread: events [0, count) of it. The events themselves included.
  std::vector<uint32_t> of(std::initializer_list<uint32_t> events) const;

 private:
  const Model& model_;
  std::vector<std::vector<uint32_t>> by_sync_;  // by lock, semaphore, condition: all its events, as recorded
};

}  // namespace stem::predictor
