// How `stem explore` tells what it found: live figures, the steps of --explain, the closing table, JSON.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "explorer/loop.h"

namespace stem::cli {

class ExploreProgress {  // one line on a terminal, nothing in a pipe
 public:
  ExploreProgress();
  ~ExploreProgress();
  void operator()(const explorer::LiveFigures& live);

 private:
  bool terminal_, printed_ = false;
  std::chrono::steady_clock::time_point next_{};
};

std::string render(const explorer::Knowledge& known, const explorer::Step& step);
std::string render(const explorer::Knowledge& known, const explorer::LoopResult& result, bool all);
nlohmann::json to_json(const explorer::Knowledge& known, const explorer::LoopResult& result);

}  // namespace stem::cli
