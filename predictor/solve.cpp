#include "predictor/solve.h"

#include <algorithm>

#include "util/error.h"

namespace stem::predictor {

namespace {

constexpr size_t kLargest = 3000;  // events: beyond, a formula is not worth building

}  // namespace

Solved solve_instances(const Shared& shared, std::vector<EventPair> instances, SolveMode mode) {
  Solved out;
  // The nearer to the start, the smaller the formula.
  std::sort(instances.begin(), instances.end(), [](const EventPair& a, const EventPair& b) {
    auto reach = [](const EventPair& p) { return p.write == kInitial ? p.read : std::max(p.write, p.read); };
    return std::pair(reach(a), a) < std::pair(reach(b), b);
  });
  const size_t n = shared.model.trace.events.size();
  encoder::Options options;
  options.meaning = shared.options.meaning;
  options.timeout_ms = shared.options.query_ms;
  options.dump = shared.options.dump;
  if (mode == SolveMode::Paper) options.paper = true, options.meaning = Meaning::Full;
  std::unique_ptr<encoder::Encoder> encoder;
  uint32_t read = kNoEvent;
  for (const EventPair& pair : instances) {
    if (shared.stop()) {
      out.why = shared.options.interrupt && *shared.options.interrupt ? Why::Interrupted : Why::Budget;
      return out;
    }
    ++out.asked;
    if (n > kLargest && mode != SolveMode::Paper) {
      out.why = Why::Budget;
      out.detail = fmt::format("{} events are too many for the solver", n);
      continue;
    }
    if (!encoder || pair.read != read) {
      encoder = std::make_unique<encoder::Encoder>(shared.model.trace, options);
      read = pair.read;
    }
    encoder::Answer answer = encoder->decide(pair.write, pair.read);
    ++out.queries;
    out.seconds += answer.seconds;
    switch (answer.kind) {
      case encoder::Answer::Kind::Feasible:
        out.witness = Witness{pair, std::move(answer.inputs), std::move(answer.schedule), {}};
        return out;
      case encoder::Answer::Kind::Infeasible: ++out.refuted; break;
      case encoder::Answer::Kind::Unknown:
        out.why = answer.reason.find("timeout") != std::string::npos || answer.reason.find("cancel") != std::string::npos
                      ? Why::Budget : Why::SolverGaveUp;
        out.detail = "solver: " + answer.reason;
        break;
    }
  }
  return out;
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
