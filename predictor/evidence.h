// What people want to know beside a verdict: which locks were held at the two accesses, and what keeps them apart, if
// anything does.
#pragma once

#include "predictor/analysis.h"
#include "predictor/model.h"
#include "predictor/must_order.h"

namespace stem::predictor {

class Evidence {
 public:
  Evidence(const Model& model, const MustOrder& order);
  AccessInfo access(uint32_t event) const;  // kFromStart: the initial value
  Relation relation(uint32_t w, uint32_t r) const;

 private:
  std::vector<uint32_t> locks_held(uint32_t event) const;

  const Model& model_;
  const MustOrder& order_;
  std::vector<std::string> names_;  // by lock
};

}  // namespace stem::predictor
