// Guided executions: tests are run side by side, and what each showed is taken into the sets, one after another.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "explorer/import.h"
#include "explorer/loop_state.h"
#include "predictor/rounds.h"
#include "trace/reader.h"
#include "util/error.h"

namespace stem::explorer {

namespace fs = std::filesystem;

void Loop::run_tests(const std::vector<size_t>& batch) {
  progress("running");
  std::vector<Pending> tests;
  for (size_t index : batch) tests.push_back(pending_[index]);
  predictor::run_rounds<Execution>(
      tests.size(), jobs_, tests.size(),
      [&](unsigned, size_t i) {
        ExecuteOptions execution;
        execution.folder = (state_.traces / fmt::format("running-{}-{}", getpid(), i)).string();
        execution.timeout = std::chrono::milliseconds(within_time(static_cast<unsigned>(options_.run_timeout.count())));
        return execute(tests[i].test, execution);
      },
      [&](size_t i, Execution execution) {
        // Cut because the session's time was over, not its own: it stays to be run.
        const bool cut = execution.run.timed_out && stop() && ended_ == "time";
        if (!cut) {
          flush_step();
          take(tests[i], execution);
        }
        std::error_code ignored;
        fs::remove_all(state_.traces / fmt::format("running-{}-{}", getpid(), i), ignored);
        return true;
      });
  save_figures();
}

void Loop::take(const Pending& pending, Execution& execution) {
  ++executed_;
  const int64_t number = earlier_.executions + executed_;
  begin_step(pending, execution, number);
  std::string detail = execution.error.empty() ? execution.divergence : execution.error;
  std::optional<ImportedTrace> imported;
  if (!execution.error.empty() && executed_ == 1 && runs_.empty()) user_error("{}", execution.error);
  if (execution.run.timed_out && !execution.run.trace.empty()) {
    imported = keep(pending, execution, number);
    for (const PairKey& pair : imported->observed) note_explicit(pair, known_.seen(pair));
    limit("a run ended before all its threads did");
    if (pending.run != SIZE_MAX) {
      runs_[pending.run].points[pending.point].waiting = false;
      runs_[pending.run].points[pending.point].closed = true;
    }
  }
  const bool readable = !execution.run.trace.empty() && !execution.paths.visible.empty();
  if (readable && visible_.insert(execution.paths.visible).second) {
    imported = keep(pending, execution, number);
    for (const PairKey& pair : imported->observed) note_explicit(pair, known_.seen(pair));
    auto trace = std::make_shared<const trace::Trace>(std::move(execution.trace));
    RunPoints run = points_of(*trace, known_, options_.per_site);
    run.run = imported->run;
    run.file = kept_;
    run.hash = imported->hash;
    const size_t before = runs_.size();
    add_run(std::move(run), trace);
    step_->tested = runs_.size() == before;
    if (!step_->tested) add_orders(*trace);
    check_branch(pending, *trace, detail);
  } else if (readable) {
    ++repeated_;
    step_->tested = true;
    check_branch(pending, execution.trace, detail);
  }
  for (const PairKey& pair : pending.pairs) {
    if (execution.run.timed_out) break;
    confirmed_of_[pair.variable] += 1;
    const auto* found = known_.find(pair);
    if (found && found->seen) continue;
    known_.diverged(pair);
    if (detail.empty()) detail = "the run followed the schedule but the use took another value";
  }
  if (pending.pairs.empty() && pending.run == SIZE_MAX && pending.origin != "start")
    detail.clear();  // an attempt, not a claim
  if (!detail.empty()) {
    ++diverged_;
    divergences_.push_back(fmt::format("{}: {}", pending.detail.empty() ? pending.origin : pending.detail, detail));
    if (pending.run != SIZE_MAX || !pending.pairs.empty()) limit("a test did not lead where it should");
  }
  step_->divergence = detail;
  memory_.end_test(pending.id, detail.empty(), detail, execution.failure);
  std::erase_if(pending_, [&](const Pending& other) { return other.id == pending.id; });
  if (imported && imported->finding) {
    // A run that was shuffled is repeated by its own schedule.
    const bool shuffled = pending.test.options.contains(kSwitchOption);
    trace::Test test = shuffled ? trace::test_of(trace::load(kept_)) : pending.test;
    take_finding(*imported->finding, std::move(test), number);
  }
}

// Did the branch go the other way? Its point can be asked about again.
void Loop::check_branch(const Pending& pending, const trace::Trace& trace, std::string& detail) {
  if (pending.run == SIZE_MAX) return;
  Point& point = runs_[pending.run].points[pending.point];
  point.waiting = false;
  const predictor::Taken taken = predictor::took(trace, *trace_of(pending.run), point.decision);
  if (taken == predictor::Taken::Yes) {
    detail.clear();
    point.closed = point.kind == trace::Kind::Assert;  // it has failed, and nothing comes behind that
    return;
  }
  point.closed = true;
  if (detail.empty())
    detail = taken == predictor::Taken::Same ? "the run decided as before" : "the run did not come there";
}

// Moves the trace into the state folder and the run into the database.
ImportedTrace Loop::keep(const Pending& pending, const Execution& execution, int64_t number) {
  launch::RunEntry entry;
  entry.trace = execution.run.trace;
  entry.program = execution.trace.meta.program;
  entry.argv = execution.trace.meta.argv;
  entry.mode = execution.trace.meta.mode;
  entry.seed = execution.trace.meta.seed;
  entry.outcome = execution.failure.empty() ? "exited with " + std::to_string(execution.run.code) : execution.failure;
  entry.events = execution.trace.events.size();
  entry.threads = execution.trace.threads.size();
  entry = runs_of_.add(entry);
  kept_ = entry.trace;
  RunContext context;
  context.test = db::Test{trace::to_json(pending.test), pending.origin, pending.rating, pending.detail};
  context.paths = execution.paths.paths;
  context.visible = execution.paths.visible;
  context.execution = number;
  if (execution.run.timed_out)
    context.hang = fmt::format("still running after {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(options_.run_timeout).count());
  return import_trace(store_, state_, entry.trace, static_cast<int64_t>(entry.id), context);
}

}  // namespace stem::explorer
