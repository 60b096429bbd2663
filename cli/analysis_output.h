// An analysis for people and for tools.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "predictor/analysis.h"

namespace stem::cli {

struct PrintOptions {
  bool all = false;    // explicit and infeasible pairs too, one line each
  bool stats = false;
};

std::string render(const trace::Trace& trace, const predictor::AnalysisResult& result, const PrintOptions& options);
nlohmann::json to_json(const trace::Trace& trace, const predictor::AnalysisResult& result);

}  // namespace stem::cli
