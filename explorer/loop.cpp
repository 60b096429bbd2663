#include "explorer/loop.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "explorer/explain.h"
#include "explorer/import.h"
#include "explorer/loop_state.h"
#include "explorer/static_check.h"
#include "predictor/rounds.h"
#include "trace/program.h"
#include "trace/reader.h"
#include "tracer/launch/tracer.h"
#include "util/error.h"

namespace stem::explorer {

namespace fs = std::filesystem;
using predictor::Alternate;

Loop::Loop(const State& state, const LoopOptions& options, Knowledge& known, const db::Version& version)
    : state_(state),
      options_(options),
      known_(known),
      runs_of_(state.folder.string()),
      store_(state.database),
      memory_(store_, version),
      version_(version),
      jobs_(options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency())),
      began_(Clock::now()),
      solvers_(jobs_) {}

double Loop::seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

bool Loop::stop() {
  if (options_.interrupt && *options_.interrupt)
    ended_ = "interrupted";
  else if (options_.runs && executed_ >= options_.runs)
    ended_ = "runs";
  else if (options_.time.count() && Clock::now() - began_ >= options_.time)
    ended_ = "time";
  return !ended_.empty();
}

// So many milliseconds, or what is left of the time.
unsigned Loop::within_time(unsigned milliseconds) const {
  if (!options_.time.count()) return milliseconds;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.time - (Clock::now() - began_)).count();
  return static_cast<unsigned>(std::clamp<int64_t>(left, 1, milliseconds));
}

void Loop::progress(const char* doing) {
  if (!options_.progress) return;
  LiveFigures live;
  live.executions = executed_;
  live.pairs = static_cast<size_t>(std::count_if(known_.found().begin(), known_.found().end(),
                                                 [&](const auto& one) { return known_.shared(one.first.use); }));
  live.open_escorts = known_.open_escorts();
  live.omega = pending_.size();
  live.findings = findings_.size();
  live.seconds = seconds();
  live.doing = doing;
  options_.progress(live);
}

void Loop::limit(const std::string& why) {
  if (limits_.size() < 20 && std::find(limits_.begin(), limits_.end(), why) == limits_.end()) limits_.push_back(why);
}

std::shared_ptr<const trace::Trace> Loop::trace_of(size_t run) {
  const auto at = traces_.find(run);
  if (at != traces_.end()) return at->second;
  if (traces_.size() >= 16) traces_.erase(traces_.begin());
  return traces_[run] = std::make_shared<const trace::Trace>(trace::load(runs_[run].file));
}

// Takes a run into the sets: a new one if no earlier run did the same, thread by thread.
void Loop::add_run(RunPoints run, std::shared_ptr<const trace::Trace> trace) {
  if (!run.paths.inexact.empty()) limit(run.paths.inexact);
  if (run.cut) limit("a run ended before all its threads did");
  if (!paths_.insert(run.paths.paths).second) return;
  if (run.left_out) limit("branches of loops were tried in their first and last rounds only");
  taken_.add(runs_.size(), run);
  if (trace) traces_[runs_.size()] = std::move(trace);
  runs_.push_back(std::move(run));
}

void Loop::load() {
  for (const db::StoredPair& pair : memory_.pairs()) {
    const PairKey key{pair.def, pair.use, pair.variable};
    if (pair.predicted) known_.predicted(key);
    if (pair.seen) known_.seen(key);
    if (pair.test && !pair.seen) witnesses_[pair.test].push_back(key);
  }
  std::map<int64_t, size_t> by_id;
  for (const db::StoredRun& stored : memory_.runs()) {
    const std::string file = absolute_path(state_, stored.trace_path);
    std::error_code error;
    if (stored.outcome == trace::outcome_name(trace::Outcome::Truncated)) {  // a hang: nothing follows from it
      limit("a run ended before all its threads did");
      continue;
    }
    if (!fs::is_regular_file(file, error)) {
      limit("traces of earlier runs are gone");
      continue;
    }
    auto trace = std::make_shared<const trace::Trace>(trace::load(file));
    RunPoints run = points_of(*trace, known_, options_.per_site);
    run.run = stored.id;
    run.file = file;
    run.hash = stored.trace_hash;
    run.analysed = stored.analysed;
    visible_.insert(run.paths.visible);
    const size_t before = runs_.size();
    add_run(std::move(run), nullptr);
    if (runs_.size() > before) by_id[stored.id] = before;
  }
  std::map<int64_t, std::pair<size_t, size_t>> asked_for;  // test -> run, point
  for (const db::StoredNegation& n : memory_.negations()) {
    const auto at = by_id.find(n.run);
    if (at == by_id.end()) continue;
    auto& points = runs_[at->second].points;
    const auto point = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.event == n.event; });
    if (point == points.end()) continue;
    point->asks = std::max(point->asks, n.ask + 1);
    if (n.state != "feasible") point->closed = true;
    if (n.state == "unknown") limit(n.detail);
    if (n.state == "infeasible" && n.bounded) limit(n.detail);
    if (n.test) asked_for[n.test] = {at->second, static_cast<size_t>(point - points.begin())};
  }
  for (const db::StoredTest& stored : memory_.pending()) {
    Pending pending{stored.id,
                    trace::parse_test(stored.test.json, "the database"),
                    stored.test.origin,
                    stored.test.detail,
                    stored.test.priority,
                    {}};
    if (pending.test.build_id != version_.build_id) continue;  // of another version
    if (const auto at = asked_for.find(stored.id); at != asked_for.end()) {
      pending.run = at->second.first;
      pending.point = at->second.second;
      runs_[pending.run].points[pending.point].waiting = true;
    }
    if (const auto at = witnesses_.find(stored.id); at != witnesses_.end()) pending.pairs = at->second;
    pending_.push_back(std::move(pending));
  }
  load_findings();
  add_pending(options_.start, "start", "", 1e6);
}

// Into Omega, unless it was there before. Null: it was run already.
Pending* Loop::add_pending(const trace::Test& test, const std::string& origin, const std::string& detail,
                           double rating) {
  bool fresh = false;
  const int64_t id = memory_.add_test({trace::to_json(test), origin, rating, detail}, &fresh);
  for (Pending& pending : pending_)
    if (pending.id == id) return &pending;
  if (!fresh) return nullptr;
  pending_.push_back({id, test, origin, detail, rating, {}});
  return &pending_.back();
}

void Loop::save_figures() {
  db::Figures figures = earlier_;
  figures.goal = options_.goal == Goal::Escort ? "escort" : "pairs";
  figures.executions += executed_;
  figures.repeated += repeated_;
  figures.minimising += minimising_;
  figures.diverged += diverged_;
  figures.seconds += seconds();
  figures.solver_seconds += solver_seconds_;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  figures.memory_kb = usage.ru_maxrss;
  figures.ended = ended_;
  memory_.set(figures);
  figures_ = figures;
}

LoopResult Loop::run() {
  memory_.known(earlier_);
  earlier_.ended.clear();
  fs::create_directories(state_.traces);
  load();
  while (!stop() && step()) {
  }
  if (ended_.empty()) ended_ = goal_reached() ? "goal" : "complete";
  flush_step();
  const bool complete = (ended_ == "complete" || ended_ == "goal") && limits_.empty() && options_.goal == Goal::Pairs;
  if (complete)
    known_.refute_rest();
  else
    known_.give_up_rest(limits_.empty() ? ended_ : limits_[0]);
  store_program(complete);
  save_figures();
  return result();
}

LoopResult explore(const State& state, const LoopOptions& options, std::optional<Knowledge>& known) {
  LoopOptions all = options;
  const std::string program = launch::find_program(options.start.program);
  if (program.empty()) user_error("{}: no such program", options.start.program);
  if (const std::string why = launch::why_not_recorded(program); !why.empty()) user_error("cannot explore: {}", why);
  const trace::Program code = trace::Program::open(program);
  analysis::Result program_facts = analysis::analyze_program(code);
  keep_facts(state, code.build_id(), program_facts.facts);  // every run is held against them
  known.emplace(std::move(program_facts), options.sigma);
  all.start.program = fs::canonical(program).string();
  all.start.build_id = launch::build_id(program);
  if (all.start.argv.empty()) all.start.argv = {options.start.program};
  if (all.start.cwd.empty()) all.start.cwd = fs::current_path().string();
  db::Version version;
  version.program = project_path(state, all.start.program);
  version.build_id = all.start.build_id;
  return Loop(state, all, *known, version).run();
}

}  // namespace stem::explorer
