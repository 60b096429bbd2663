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
    : state_(state), options_(options), known_(known), runs_of_(state.folder.string()), store_(state.database), memory_(store_, version),
      version_(version), jobs_(options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency())),
      began_(Clock::now()), solvers_(jobs_) {}

double Loop::seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

bool Loop::stop() {
  if (options_.interrupt && *options_.interrupt) ended_ = "interrupted";
  else if (options_.runs && executed_ >= options_.runs) ended_ = "runs";
  else if (options_.time.count() && Clock::now() - began_ >= options_.time) ended_ = "time";
  return !ended_.empty();
}

// So many milliseconds, or what is left of the time.
unsigned Loop::within_time(unsigned milliseconds) const {
  if (!options_.time.count()) return milliseconds;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(options_.time - (Clock::now() - began_)).count();
  return static_cast<unsigned>(std::clamp<int64_t>(left, 1, milliseconds));
}

void Loop::progress(const char* doing) {
  if (!options_.progress) return;
  LiveFigures live;
  live.executions = executed_;
  live.pairs = static_cast<size_t>(std::count_if(known_.found().begin(), known_.found().end(), [&](const auto& one) { return known_.shared(one.first.use); }));
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
    Pending pending{stored.id, trace::parse_test(stored.test.json, "the database"), stored.test.origin, stored.test.detail, stored.test.priority, {}};
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
Pending* Loop::add_pending(const trace::Test& test, const std::string& origin, const std::string& detail, double rating) {
  bool fresh = false;
  const int64_t id = memory_.add_test({trace::to_json(test), origin, rating, detail}, &fresh);
  for (Pending& pending : pending_)
    if (pending.id == id) return &pending;
  if (!fresh) return nullptr;
  pending_.push_back({id, test, origin, detail, rating, {}});
  return &pending_.back();
}

// ---- what to do next ----------------------------------------------------------------------------------------------------

// Once everything is covered, only what may fail is of interest.
bool Loop::goal_reached() const {
  return options_.goal == Goal::Escort ? known_.open_escorts() == 0 : known_.open_pairs() == 0;
}

std::vector<size_t> Loop::work_of(const RunPoints& run, const Point& point) const {
  if (point.kind != trace::Kind::Branch || !point.binary) return {};
  const auto outcome = known_.outcome(point.site, !point.value);
  if (!outcome) return {};
  std::set<analysis::BranchOutcome> others = run.outcomes;
  if (const auto own = known_.outcome(point.site, point.value)) others.erase(*own);
  return known_.open_with(*outcome, others);
}

double Loop::rate(const RunPoints& run, const Point& point) const {
  const auto tried = tried_.find({point.site, point.value});
  const double tries = tried == tried_.end() ? 0 : tried->second;
  if (options_.goal == Goal::Escort) {
    const size_t work = point.kind == trace::Kind::Assert ? 0 : work_of(run, point).size();
    if (work == 0 || point.asks) return 0;
    return 2000 + static_cast<double>(work);
  }
  const bool again = point.reordered && point.asks == 1;  // by inputs, now
  const bool deep = !again && !taken_.others(point).empty();
  if (point.kind == trace::Kind::Assert) return deep ? 0 : kAssertion / (1 + tries);
  if (goal_reached()) return 0;
  if (deep && point.shared && !point.order_refuted && point.asks == 0 && point.kind == trace::Kind::Branch) return std::max(kDeep, kOrderAgain / (1 + tries));
  if (deep || point.kind == trace::Kind::Pin) return kDeep / (1 + tries / 8);
  double gain = 0;
  if (const auto outcome = known_.outcome(point.site, !point.value); outcome && point.binary) gain = static_cast<double>(known_.gain(run.sites, *outcome));
  const bool fresh = point.binary ? !taken_.outcome_seen(point.site, !point.value) : !taken_.other_seen(point);
  return ((fresh ? kFreshOutcome : point.shared && !again ? kOtherOrder : kOtherPath) + 10 * std::min(gain, 30.0)) / (1 + tries);
}

double Loop::rate(const Pending& pending) const {
  if (pending.origin == "witness") {
    double best = 0;
    for (const PairKey& pair : pending.pairs) {
      if (const auto* found = known_.find(pair); found && found->seen) continue;
      const auto tried = confirmed_of_.find(pair.variable);
      best = std::max(best, std::max(pending.rating, kDeep) / (1 + (tried == confirmed_of_.end() ? 0 : tried->second)));
    }
    return best;
  }
  return std::max(pending.rating, kDeep);
}

bool Loop::step() {
  // Tests whose pairs other runs have shown by now are not needed any more.
  std::erase_if(pending_, [&](const Pending& pending) {
    const bool needless = pending.origin == "witness" && rate(pending) == 0;
    if (needless) memory_.drop_test(pending.id);
    return needless;
  });
  std::vector<std::pair<double, size_t>> tests;
  for (size_t i = 0; i < pending_.size(); ++i) tests.emplace_back(rate(pending_[i]), i);
  std::stable_sort(tests.begin(), tests.end(), [](const auto& a, const auto& b) { return a.first > b.first; });

  std::vector<Question> questions;
  double analysis = 0;
  size_t unanalysed = 0;
  for (size_t r = 0; r < runs_.size(); ++r) {
    if (!runs_[r].analysed && analysis == 0) {
      analysis = options_.goal == Goal::Escort ? 1e5 : kAnalysis;
      unanalysed = r;
    }
    for (size_t p = 0; p < runs_[r].points.size(); ++p) {
      const Point& point = runs_[r].points[p];
      if (point.closed || point.waiting) continue;
      if (const double rating = rate(runs_[r], point); rating > 0) questions.push_back({r, p, rating, {}});
    }
  }
  std::stable_sort(questions.begin(), questions.end(), [](const Question& a, const Question& b) { return a.rating > b.rating; });

  const double best_test = tests.empty() ? 0 : tests[0].first, best_question = questions.empty() ? 0 : questions[0].rating;
  if (best_test == 0 && best_question == 0 && analysis == 0) return false;
  if (best_test >= std::max(best_question, analysis)) {
    std::vector<size_t> batch;
    const size_t left = options_.runs ? static_cast<size_t>(options_.runs - executed_) : SIZE_MAX;
    for (const auto& [rating, index] : tests)
      if (rating > 0 && rating >= std::max(best_question, analysis) && batch.size() < std::min<size_t>(jobs_, left)) batch.push_back(index);
    run_tests(batch);
  } else if (analysis >= best_question) {
    analyse(unanalysed);
  } else {
    std::vector<Question> batch;
    for (Question& question : questions) {
      if (batch.size() >= jobs_ || question.rating < std::max(best_test, analysis)) break;
      Point& point = runs_[question.run].points[question.point];
      const bool plain = options_.goal == Goal::Escort || (point.reordered && point.asks == 1);
      NextWish next = plain ? NextWish{} : next_wish(runs_, taken_, runs_[question.run], point);
      if (next.deep && !point.binary) limit("a switch or a value held fixed was led to new values only, not to every combination with other threads");
      if (next.none || (next.deep && point.asks >= kMostAsks)) {
        point.closed = true;
        if (!next.none) limit("some branches were led another way only a few times");
        continue;
      }
      question.order_first = point.shared && point.asks == 0 && !next.deep && options_.goal == Goal::Pairs && point.kind == trace::Kind::Branch;
      question.order_only = point.shared && !point.order_refuted && point.asks == 0 && next.deep && options_.goal == Goal::Pairs && point.kind == trace::Kind::Branch &&
                            question.rating > kDeep;
      question.wish = std::move(next.wish);
      batch.push_back(question);
    }
    ask(batch);
  }
  return true;
}

// ---- predictive analysis --------------------------------------------------------------------------------------------------

void Loop::analyse(size_t index) {
  progress("predicting");
  RunPoints& run = runs_[index];
  const auto trace = trace_of(index);
  predictor::AnalysisOptions analysis;
  analysis.threads = jobs_;
  analysis.query_ms = options_.query_ms;
  analysis.timeout = std::chrono::milliseconds(within_time(10 * options_.query_ms));
  analysis.interrupt = options_.interrupt;
  analysis.skip = [&](trace::SiteId def, trace::SiteId use, uint32_t variable) {
    return !known_.wanted(def == trace::kNone ? kInitialKey : trace->sites[def].key, trace->sites[use].key, predictor::variable_name(*trace, variable));
  };
  predictor::AnalysisResult result = predictor::analyze(*trace, analysis);
  solver_seconds_ += result.statistics.solver_seconds;
  run.analysed = true;
  if (options_.interrupt && *options_.interrupt) return;  // it is done again next time
  std::erase_if(result.pairs, [](const predictor::PairResult& pair) { return pair.state == predictor::State::Explicit; });
  for (const predictor::PairResult& pair : result.pairs) {
    const PairKey key{pair.def.initial ? kInitialKey : trace->sites[pair.def.site].key, trace->sites[pair.use.site].key, pair.variable};
    if (pair.state == predictor::State::Infeasible && !pair.bound.whole) limit("long runs were looked at in windows");
    if (pair.state == predictor::State::Unknown)
      limit(fmt::format("{}{}{}", predictor::why_text(pair.why), pair.detail.empty() ? "" : ", ", pair.detail));
    if (pair.state != predictor::State::Implicit || !pair.witness) continue;
    const double rating = pair.relation == predictor::Relation::Race && !pair.def.initial ? kRace : kConfirm;
    const std::string detail = pair_text(known_, key);
    if (Pending* test = add_pending(predictor::test_of(*trace, *pair.witness), "witness", detail, rating)) test->pairs.push_back(key);
    note_implicit(key, known_.predicted(key));
  }
  result.interrupted = false;
  import_analysis(store_, state_, run.hash, *trace, result);
}

// ---- alternate branches ---------------------------------------------------------------------------------------------------

void Loop::ask(const std::vector<Question>& batch) {
  if (batch.empty()) return;
  progress("solving");
  for (const Question& question : batch) trace_of(question.run);
  predictor::AlternateOptions alternates;
  alternates.query_ms = within_time(options_.query_ms);
  alternates.limits_ms = 2 * options_.query_ms;
  alternates.interrupt = options_.interrupt;
  std::vector<std::shared_ptr<const trace::Trace>> traces;
  for (const Question& question : batch) traces.push_back(trace_of(question.run));
  predictor::run_rounds<Alternate>(
      batch.size(), jobs_, batch.size(),
      [&](unsigned worker, size_t i) {
        auto& solvers = solvers_[worker];
        auto at = solvers.find(batch[i].run);
        if (at == solvers.end()) {
          if (solvers.size() >= 4) solvers.clear();
          at = solvers.emplace(batch[i].run, Solver{traces[i], std::make_unique<predictor::Alternates>(*traces[i], alternates)}).first;
        }
        const uint32_t event = runs_[batch[i].run].points[batch[i].point].event;
        if (batch[i].order_only) return at->second.alternates->reorder(event, batch[i].wish);
        if (batch[i].order_first && at->second.alternates->mixed(event))
          if (Alternate order = at->second.alternates->reorder(event, batch[i].wish); order.kind == Alternate::Kind::Feasible) return order;
        return at->second.alternates->negate(event, batch[i].wish);
      },
      [&](size_t i, Alternate answer) {
        take(batch[i], *traces[i], answer);
        return true;
      });
}

void Loop::take(const Question& question, const trace::Trace& trace, const Alternate& answer) {
  RunPoints& run = runs_[question.run];
  Point& point = run.points[question.point];
  solver_seconds_ += answer.seconds;
  tried_[{point.site, point.value}] += 1;
  for (size_t escort : work_of(run, point))
    if (step_ && std::find(step_->work.begin(), step_->work.end(), escort) == step_->work.end()) step_->work.push_back(escort);
  db::StoredNegation row{run.run, point.event, point.asks, "unknown", false, "", 0};
  switch (answer.kind) {
    case Alternate::Kind::Feasible: {
      row.state = "feasible";
      const bool assertion = point.kind == trace::Kind::Assert;
      const double rating = assertion ? kAssertion : options_.goal == Goal::Escort ? question.rating - 1000 : question.rating;
      Pending* test = add_pending(predictor::test_of(trace, answer), assertion ? "assertion" : "branch", point_text(trace, point.event, answer.value), rating);
      if (test) {
        test->run = question.run;
        test->point = question.point;
        point.waiting = true;
        point.reordered = question.order_first && answer.witness.inputs == trace.inputs;
        row.test = test->id;
      } else if (point.reordered && point.asks == 1) {
        point.reordered = false;  // inputs lead to the same test; go on with other combinations
      } else {
        point.closed = true;  // that test was run, and did not lead there
        limit("a test that should have led to another branch did not: " + point_text(trace, point.event, answer.value));
      }
      break;
    }
    case Alternate::Kind::Infeasible:
      if (question.order_only) {  // inputs may lead there yet
        point.order_refuted = true;
        return;
      }
      row.state = "infeasible";
      row.bounded = answer.bounded;
      row.detail = answer.limit;
      point.closed = true;
      if (answer.bounded) limit(answer.limit);
      break;
    case Alternate::Kind::Unknown:
      if (options_.interrupt && *options_.interrupt) return;
      if (question.order_only) {
        point.order_refuted = true;
        return;
      }
      row.detail = fmt::format("{}{}{}", predictor::why_text(answer.why), answer.detail.empty() ? "" : ", ", answer.detail);
      point.closed = true;
      limit(row.detail);
      break;
  }
  ++point.asks;
  memory_.add_negation(row);
}

// ---- guided execution -----------------------------------------------------------------------------------------------------

void Loop::run_tests(const std::vector<size_t>& batch) {
  progress("running");
  std::vector<Pending> tests;
  for (size_t index : batch) tests.push_back(pending_[index]);
  predictor::run_rounds<Execution>(
      tests.size(), jobs_, tests.size(),
      [&](unsigned, size_t i) {
        ExecuteOptions execution;
        execution.folder = (state_.traces / fmt::format("running-{}-{}", getpid(), i)).string();
        execution.timeout = options_.run_timeout;
        return execute(tests[i].test, execution);
      },
      [&](size_t i, Execution execution) {
        flush_step();
        take(tests[i], execution);
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
  if (pending.pairs.empty() && pending.run == SIZE_MAX && pending.origin != "start") detail.clear();  // an attempt, not a claim
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
  if (detail.empty()) detail = taken == predictor::Taken::Same ? "the run decided as before" : "the run did not come there";
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
    context.hang = fmt::format("still running after {} s", std::chrono::duration_cast<std::chrono::seconds>(options_.run_timeout).count());
  return import_trace(store_, state_, entry.trace, static_cast<int64_t>(entry.id), context);
}

// ---- the whole ------------------------------------------------------------------------------------------------------------

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
  while (!stop() && step()) {}
  if (ended_.empty()) ended_ = goal_reached() ? "goal" : "complete";
  flush_step();
  const bool complete = (ended_ == "complete" || ended_ == "goal") && limits_.empty() && options_.goal == Goal::Pairs;
  if (complete) known_.refute_rest();
  else known_.give_up_rest(limits_.empty() ? ended_ : limits_[0]);
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
