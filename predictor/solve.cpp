#include "predictor/solve.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "util/error.h"

namespace stem::predictor {

namespace {

constexpr size_t kLargest = 3000;   // events: beyond, a formula is not worth building
constexpr unsigned kQuestions = 8;  // whose time one static pair gets

// Interrupts an encoder when the user wants no more; its own timeout sees to the rest.
class Watch {
 public:
  Watch(const Shared& shared, encoder::Encoder& encoder) {
    if (!shared.options.interrupt) return;
    thread_ = std::jthread([this, &shared, &encoder](std::stop_token over) {
      std::unique_lock lock(mutex_);
      while (!over.stop_requested()) {
        if (shared.options.interrupt->load(std::memory_order_relaxed)) encoder.interrupt();
        wake_.wait_for(lock, over, std::chrono::milliseconds(50), [] { return false; });
      }
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace

// One static pair's questions.
class Solver::Asking {
 public:
  Asking(const Solver& solver, bool paper) : solver_(solver), shared_(solver.shared_), start_(std::chrono::steady_clock::now()) {
    options_.meaning = paper ? Meaning::Full : shared_.options.meaning;
    options_.paper = paper;
    options_.dump = shared_.options.dump;
    options_.interrupt = shared_.options.interrupt;
    options_.timeout_ms = shared_.options.query_ms;
    if (!paper && shared_.options.query_ms)
      end_ = start_ + std::chrono::milliseconds(uint64_t{kQuestions} * shared_.options.query_ms);
  }

  Solved out;

  // False: no more of them.
  bool go_on() {
    if (shared_.stop()) {
      out.why = shared_.options.interrupt && *shared_.options.interrupt ? Why::Interrupted : Why::Budget;
      return false;
    }
    if (std::chrono::steady_clock::now() < end_) return true;
    out.why = Why::Budget;
    if (out.detail.empty()) out.detail = fmt::format("the solver had {} s", kQuestions * shared_.options.query_ms / 1000.0);
    return false;
  }

  // Whether the scope's formula shows or excludes the pair; nothing: it says neither. keep: for the next one.
  std::optional<bool> ask(const EventPair& pair, encoder::Scope scope, bool keep) {
    std::unique_ptr<encoder::Encoder> own;
    const Key key{pair.read, scope.first, scope.events.empty() ? 0 : scope.events.back()};
    if (!keep || !kept_ || key != kept_for_) {
      options_.timeout_ms = time_left();
      own = std::make_unique<encoder::Encoder>(solver_.index_, options_, std::move(scope));
      if (keep) kept_ = std::move(own), kept_for_ = key;
    }
    encoder::Encoder& encoder = own ? *own : *kept_;
    encoder.set_timeout(time_left());
    encoder::Answer answer;
    {
      const Watch watch(shared_, encoder);
      answer = encoder.decide(pair.write, pair.read);
    }
    ++out.queries;
    out.seconds += answer.seconds;
    switch (answer.kind) {
      case encoder::Answer::Kind::Feasible:
        out.witness = Witness{pair, std::move(answer.inputs), std::move(answer.schedule), {}};
        return true;
      case encoder::Answer::Kind::Infeasible: return false;
      case encoder::Answer::Kind::Unknown: break;
    }
    const bool late = answer.reason.find("timeout") != std::string::npos || answer.reason.find("cancel") != std::string::npos;
    out.why = late ? Why::Budget : Why::SolverGaveUp;
    out.detail = "solver: " + answer.reason;
    return std::nullopt;
  }

  void too_large(size_t events) {
    out.why = Why::Budget;
    out.detail = fmt::format("{} events are too many for the solver", events);
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;

  // For the next question, in milliseconds; 0: for ever.
  unsigned time_left() const {
    using namespace std::chrono;
    if (shared_.deadline == steady_clock::time_point::max()) return shared_.options.query_ms;
    const auto left = duration_cast<milliseconds>(shared_.deadline - steady_clock::now()).count();
    const auto until = static_cast<unsigned>(std::clamp<int64_t>(left, 1, 1'000'000'000));
    return shared_.options.query_ms ? std::min(shared_.options.query_ms, until) : until;
  }

  const Solver& solver_;
  const Shared& shared_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::time_point::max();
  encoder::Options options_;
  std::unique_ptr<encoder::Encoder> kept_;
  Key kept_for_;
};

Solver::Solver(const Shared& shared, const MustOrder& order)
    : shared_(shared), order_(order), index_(shared.model.trace), cones_(shared.model) {}

Solved Solver::solve(const std::set<OpenInstance>& instances) const {
  const Model& model = shared_.model;
  const auto n = static_cast<uint32_t>(model.trace.events.size());
  const bool prefix = shared_.options.meaning == Meaning::Prefix;
  // By read, so that they share a formula; the nearest to the start first: they need the fewest events.
  std::vector<OpenInstance> sorted(instances.begin(), instances.end());
  std::sort(sorted.begin(), sorted.end(), [](const OpenInstance& a, const OpenInstance& b) {
    return std::tuple(a.pair.read, a.first, a.last, a.pair.write) < std::tuple(b.pair.read, b.first, b.last, b.pair.write);
  });
  Asking asking(*this, false);
  asking.out.given = instances.size();
  for (const auto& [pair, first, last] : sorted) {
    if (!asking.go_on()) break;
    const bool whole = first == 0 && last == n;
    if (!prefix && !whole) {  // every event executes: a window says nothing
      asking.too_large(n);
      continue;
    }
    // All that can come before the read.
    encoder::Scope all;
    all.first = first;
    all.name = whole ? "" : fmt::format("from{}to{}", first, last);
    for (uint32_t e = first; e < last; ++e)
      if (!prefix || e == pair.read || !order_.before(pair.read, e)) all.events.push_back(e);
    if (prefix) {
      const std::vector<uint32_t> needed = pair.write == kInitial ? cones_.of({pair.read}) : cones_.of({pair.write, pair.read});
      encoder::Scope cone;
      cone.first = first;
      cone.name = whole ? "cone" : all.name + "_cone";
      for (uint32_t e : all.events)
        if (model.position[e] < needed[model.trace.events[e].thread]) cone.events.push_back(e);
      if (cone.events.size() <= kLargest && cone.events.size() < all.events.size() &&
          asking.ask(pair, std::move(cone), false).value_or(false))
        break;
    }
    if (all.events.size() > kLargest) {
      asking.too_large(all.events.size());
      continue;
    }
    const std::optional<bool> answer = asking.ask(pair, std::move(all), true);
    if (answer.value_or(false)) break;
    asking.out.refuted += answer.has_value();
  }
  return std::move(asking.out);
}

Solved Solver::solve_as_paper(const std::vector<EventPair>& instances) const {
  Asking asking(*this, true);
  asking.out.given = instances.size();
  for (const EventPair& pair : instances) {
    if (!asking.go_on()) break;
    const std::optional<bool> answer = asking.ask(pair, {}, true);
    if (answer.value_or(false)) break;
    asking.out.refuted += answer.has_value();
  }
  return std::move(asking.out);
}

std::vector<EventPair> all_instances(const Model& model, const Candidates& candidates, uint32_t pair) {
  std::vector<EventPair> out;
  for (uint32_t r = 0; r < model.trace.events.size(); ++r) {
    if (!model.atom_count[r] || !model.is_read(r)) continue;
    const size_t before = out.size();
    for (unsigned k = 0; k < model.atom_count[r]; ++k) {
      if (candidates.find(kFromStart, r) == pair) out.push_back({kInitial, r});
      for (uint32_t w : model.writes_of(model.first_atom[r] + k))
        if (w != r && candidates.find(w, r) == pair) out.push_back({w, r});
    }
    std::sort(out.begin() + before, out.end());
    out.erase(std::unique(out.begin() + before, out.end()), out.end());
  }
  return out;
}

}  // namespace stem::predictor
