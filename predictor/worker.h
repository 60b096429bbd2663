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
#include "predictor/enumerate.h"
#include "predictor/harvest.h"

namespace stem::predictor {

struct Task {
  uint32_t first = 0, last = 0;     // the window
  std::vector<uint32_t> reads;      // of the window, ascending
  bool freeze = false;              // harvest
  bool sweep = false;               // decide
  uint64_t states = 0;              // enumerate, so many states at most; 0: do not
};

// An event pair that the engine could not decide, and the window it looked at.
struct OpenInstance {
  EventPair pair;
  uint32_t first = 0, last = 0;
  auto operator<=>(const OpenInstance&) const = default;
};

struct Findings {
  struct Found {
    uint32_t pair;
    Layer layer;
    Witness witness;
  };
  struct Open {
    uint32_t pair;
    OpenInstance instance;
  };
  std::vector<Found> found;
  std::vector<uint32_t> tried;      // static pair of each question that refuted an instance
  std::vector<uint32_t> searched;   // those that took the search
  std::vector<Open> open;           // instances that the engine left
  std::vector<std::pair<uint32_t, uint64_t>> excluded;  // by enumeration: static pair, instances
  bool enumerated = false;          // the whole window
  uint64_t states = 0;
  uint64_t queries = 0, rejected = 0;
  std::vector<std::string> rejections;
  bool finished = true;             // false: time was up
};

struct Shared {
  const Model& model;
  const Candidates& candidates;
  const Checker& checker;
  const Independence& independence;
  const AnalysisOptions& options;
  std::chrono::steady_clock::time_point deadline;
  bool stop() const {
    return (options.interrupt && options.interrupt->load(std::memory_order_relaxed)) ||
           std::chrono::steady_clock::now() > deadline;
  }
};

class Worker : Enumerate::Listener {
 public:
  explicit Worker(const Shared& shared);
  // decided: by static pair; read-only while workers run.
  Findings run(const Task& task, const std::vector<uint8_t>& decided);
  // Puts a witness through the checker; true if it is good.
  static bool confirm(const Shared& shared, Witness& witness, Findings& findings);

 private:
  bool wanted(uint32_t pair) const { return pair != trace::kNone && !(*decided_)[pair] && !local_[pair]; }
  bool any_wanted(uint32_t read) const;
  void leave_open(uint32_t pair, EventPair instance) { findings_.open.push_back({pair, {instance, task_.first, task_.last}}); }
  void found(uint32_t w, uint32_t r, Layer layer, std::vector<uint32_t> schedule);
  void enumerate();
  void count_excluded();
  uint32_t label(uint32_t write) override;
  void flow(uint32_t write, uint32_t read) override;
  bool stop() override;
  void freeze(uint32_t r);
  void sweep(uint32_t r);
  void sweep_atom(uint32_t r, uint32_t atom);
  void ask(uint32_t pair, uint32_t w, uint32_t writer, uint32_t r, uint32_t atom);

  const Shared& shared_;
  const Model& model_;
  Engine engine_;
  Harvest harvest_;
  std::unique_ptr<Enumerate> enumerate_;
  std::vector<uint8_t> def_wanted_;  // by class of definitions
  uint64_t wanted_left_ = 0;         // static pairs that the window may still show
  Task task_;
  bool opened_ = false;
  uint32_t first_ = 0, last_ = 0;
  const std::vector<uint8_t>* decided_ = nullptr;
  std::vector<uint8_t> local_;      // decided in this task
  std::vector<uint32_t> touched_;
  Findings findings_;
};

}  // namespace stem::predictor
