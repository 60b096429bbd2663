// Replays witnesses on the real program: the only proof that convinces everybody.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "predictor/analysis.h"

namespace stem::explorer {

struct ConfirmOptions {
  std::chrono::milliseconds timeout{10000};       // for one run, and some more where the schedule is long
  unsigned threads = 0;                           // 0: as many as there are cores
  std::string keep;                               // folder for the tests, one file a witness; empty: none are kept
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void(size_t done, size_t of)> progress;
};

// Why a trace's witnesses cannot be replayed (no such program, another build, not compiled by stem-cc); empty: they can.
std::string cannot_replay(const trace::Trace& trace);

// Runs every implicit pair's witness and marks it confirmed, or diverged with where.
void confirm(const trace::Trace& trace, predictor::AnalysisResult& result, const ConfirmOptions& options);

}  // namespace stem::explorer
