// One worker's share of an analysis: opens a window, harvests it, and sweeps the reads it is given over the static pairs
// that are still undecided. Workers share the model and see the decisions of earlier rounds only, so that results do not
// depend on how many there are.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "predictor/analysis.h"
#include "predictor/candidates.h"
#include "predictor/checker.h"
#include "predictor/engine.h"
#include "predictor/harvest.h"

namespace stem::predictor {

struct Task {
  uint32_t first = 0, last = 0;     // the window
  std::vector<uint32_t> reads;      // of the window, ascending
  bool freeze = false;              // harvest
  bool sweep = false;               // decide
};

struct Findings {
  struct Found {
    uint32_t pair;
    Layer layer;
    Witness witness;
  };
  struct Open {
    uint32_t pair;
    EventPair instance;
  };
  std::vector<Found> found;
  std::vector<uint32_t> tried;      // static pair of each question that refuted an instance
  std::vector<uint32_t> searched;   // those that took the search
  std::vector<Open> open;           // instances that the engine left
  uint64_t queries = 0, rejected = 0;
  std::vector<std::string> rejections;
  bool finished = true;             // false: time was up
};

struct Shared {
  const Model& model;
  const Candidates& candidates;
  const Checker& checker;
  const AnalysisOptions& options;
  std::chrono::steady_clock::time_point deadline;
  bool stop() const {
    return (options.interrupt && options.interrupt->load(std::memory_order_relaxed)) ||
           std::chrono::steady_clock::now() > deadline;
  }
};

class Worker {
 public:
  explicit Worker(const Shared& shared);
  // decided: by static pair; read-only while workers run.
  Findings run(const Task& task, const std::vector<uint8_t>& decided);
  // Puts a witness through the checker; true if it is good.
  static bool confirm(const Shared& shared, Witness& witness, Findings& findings);

 private:
  bool wanted(uint32_t pair) const { return pair != trace::kNone && !(*decided_)[pair] && !local_[pair]; }
  bool any_wanted(uint32_t read) const;
  void found(uint32_t w, uint32_t r, Layer layer, std::vector<uint32_t> schedule);
  void freeze(uint32_t r);
  void sweep(uint32_t r);
  void sweep_atom(uint32_t r, uint32_t atom);
  void ask(uint32_t pair, uint32_t w, uint32_t writer, uint32_t r, uint32_t atom);

  const Shared& shared_;
  const Model& model_;
  Engine engine_;
  Harvest harvest_;
  Task task_;
  bool opened_ = false;
  uint32_t first_ = 0, last_ = 0;
  const std::vector<uint8_t>* decided_ = nullptr;
  std::vector<uint8_t> local_;      // decided in this task
  std::vector<uint32_t> touched_;
  Findings findings_;
};

}  // namespace stem::predictor
