#include "oracle/subjects.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "predictor/all_pairs.h"
#include "predictor/alternate.h"
#include "predictor/analysis.h"
#include "predictor/checker.h"
#include "predictor/enumerate.h"
#include "predictor/long_trace.h"
#include "predictor/parts.h"
#include "trace/checker.h"
#include "trace/writer.h"
#include "util/error.h"

namespace stem::oracle {

namespace {

// Every candidate pair asked of Z3 over the whole trace, every witness checked.
std::set<EventPair> ask_encoder(const trace::Trace& trace, const encoder::Options& options) {
  std::set<EventPair> found;
  encoder::Encoder encoder(trace, options);
  const predictor::Checker checker(trace);
  for (const EventPair& pair : candidates(trace)) {
    const encoder::Answer answer = encoder.decide(pair.write, pair.read);
    if (answer.kind == encoder::Answer::Kind::Unknown) user_error("{}: unknown: {}", answer.name, answer.reason);
    if (answer.kind != encoder::Answer::Kind::Feasible) continue;
    found.insert(pair);
    predictor::Witness witness{pair, answer.inputs, answer.schedule, {}};
    predictor::assign_wakeups(trace, witness);
    if (auto rejection = checker.check(witness, options.meaning))
      user_error("{}: the checker refuses step {}: {}", answer.name, rejection->step, rejection->reason);
  }
  return found;
}

std::set<EventPair> ask_all(const trace::Trace& trace, Meaning meaning, bool enumerate) {
  predictor::AllPairsOptions options;
  options.enumerate = enumerate;
  options.meaning = meaning;
  options.query_ms = 0;
  std::set<EventPair> found;
  for (const auto& [pair, verdict] : predictor::decide_all(trace, options)) {
    if (verdict.is_unknown()) user_error("pair ({}, {}): unknown: {}", pair.write, pair.read, verdict.reason().detail);
    if (verdict.is_feasible()) found.insert(pair);
  }
  return found;
}

std::set<EventPair> ask_engine(const trace::Trace& trace, Meaning meaning) { return ask_all(trace, meaning, false); }

// Every branch, pin and assertion that anything can change; every answer is checked by the predictor itself.
std::set<uint32_t> ask_alternates(const trace::Trace& trace) {
  predictor::AlternateOptions options;
  options.query_ms = 0;
  predictor::Alternates alternates(trace, options);
  std::set<uint32_t> found;
  // Not asked: pins that are part of a read-modify-write, and those right after an input that say what the brute force tries.
  std::map<trace::ThreadId, bool> after_rmw;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    using trace::Kind;
    const trace::Event& event = trace.events[e];
    if (event.kind != Kind::Pin) after_rmw[event.thread] = event.kind == Kind::Rmw;
    const bool decides = event.kind == Kind::Branch || event.kind == Kind::Assert || (event.kind == Kind::Pin && trace.events[e - 1].kind != Kind::Input && !after_rmw[event.thread]);
    if (!decides || !event.expr) continue;
    const predictor::Alternate a = alternates.negate(e);
    if (a.kind == predictor::Alternate::Kind::Unknown) user_error("branch {}: unknown: {}", e, a.detail);
    if (a.kind == predictor::Alternate::Kind::Feasible) found.insert(e);
  }
  return found;
}

void must_accept(const predictor::Checker& checker, const trace::Trace& trace, predictor::Witness witness, Meaning meaning) {
  predictor::assign_wakeups(trace, witness);
  if (auto rejection = checker.check(witness, meaning))
    user_error("({}, {}): the checker refuses step {}: {}", witness.pair.write, witness.pair.read, rejection->step, rejection->reason);
}

// What an enumeration shows, every witness checked.
struct Collect : predictor::Enumerate::Listener {
  Collect(const trace::Trace& t, Meaning m) : trace(t), checker(t), meaning(m) {}
  uint32_t label(uint32_t write) override { return write == predictor::kInitial ? 1 : write + 2; }
  bool stop() override { return false; }
  void flow(uint32_t write, uint32_t read) override {
    if (found.insert({write, read}).second) must_accept(checker, trace, {{write, read}, trace.inputs, run->schedule(read), {}}, meaning);
  }
  const trace::Trace& trace;
  const predictor::Checker checker;
  const Meaning meaning;
  predictor::Enumerate* run = nullptr;
  std::set<EventPair> found;
};

// Windows that begin inside the trace: the formula over what is left of it, constants at its start, against all executions from
// there, one after the other. Part of a window (what the recording did next) shows no more than all of it.
std::set<EventPair> ask_windows(const trace::Trace& trace, Meaning meaning) {
  const predictor::Model model(trace);
  const predictor::MustOrder order(model);
  const predictor::Independence independence(model, order);
  const encoder::Index index(trace);
  const auto n = static_cast<uint32_t>(trace.events.size());
  for (uint32_t first : {n / 5, n / 2, n * 3 / 4}) {
    Collect collect(trace, meaning);
    predictor::Enumerate enumerate(model, independence);
    collect.run = &enumerate;
    enumerate.run(first, n, SIZE_MAX, collect);
    encoder::Options options;
    options.timeout_ms = 0;
    encoder::Scope window, part;
    window.first = part.first = first;
    for (uint32_t e = first; e < (first + n) / 2; ++e) part.events.push_back(e);
    encoder::Encoder whole(index, options, window), some(index, options, part);
    for (const EventPair& pair : candidates(trace)) {
      if (pair.read < first) continue;
      const encoder::Answer answer = whole.decide(pair.write, pair.read);
      const bool feasible = answer.kind == encoder::Answer::Kind::Feasible;
      if (feasible != collect.found.count(pair))
        user_error("from {}: ({}, {}) is {} by the formula, not by enumeration", first, pair.write, pair.read, feasible ? "shown" : "excluded");
      if (feasible) must_accept(collect.checker, trace, {pair, answer.inputs, answer.schedule, {}}, meaning);
      if (pair.read >= (first + n) / 2) continue;
      if (some.decide(pair.write, pair.read).kind == encoder::Answer::Kind::Feasible && !feasible)
        user_error("from {}: ({}, {}) is shown by a part of the window only", first, pair.write, pair.read);
    }
  }
  return ask_engine(trace, meaning);
}

// All executions one after the other. Where another input might go further, they are only part of the truth.
std::set<EventPair> ask_enumeration(const trace::Trace& trace, Meaning meaning) {
  Collect collect(trace, meaning);
  const predictor::Model model(trace);
  const predictor::MustOrder order(model);
  const predictor::Independence independence(model, order);
  predictor::Enumerate enumerate(model, independence, meaning);
  collect.run = &enumerate;
  switch (enumerate.run(0, static_cast<uint32_t>(trace.events.size()), SIZE_MAX, collect)) {
    case predictor::Enumerate::Outcome::Complete:
      if (collect.found != ask_all(trace, meaning, true)) user_error("all pairs, with enumeration, differ");
      return collect.found;
    case predictor::Enumerate::Outcome::TooMany: user_error("gave up without a limit");
    case predictor::Enumerate::Outcome::Inexact: break;
  }
  std::set<EventPair> all = ask_engine(trace, meaning);
  for (const EventPair& pair : collect.found)
    if (!all.count(pair)) user_error("({}, {}) is shown, but the engine excludes it", pair.write, pair.read);
  return all;
}

using StaticKey = std::tuple<uint32_t, uint32_t, std::string>;  // definition site or kNone, use site, variable

// The analysis of static pairs, as a whole and in windows that are far too small: what it finds must be among the event
// pairs, and what it excludes must not.
std::set<EventPair> ask_analysis(const trace::Trace& trace, Meaning meaning) {
  const std::set<EventPair> pairs = ask_engine(trace, meaning);
  std::set<StaticKey> truth;
  for (const EventPair& p : pairs) {
    const trace::Event& r = trace.events[p.read];
    truth.insert({p.write == predictor::kInitial ? trace::kNone : trace.events[p.write].site, r.site,
                  r.variable < trace.variables.size() ? trace.variables[r.variable] : "(unnamed)"});
  }
  for (const auto& [window, states] : {std::pair{0u, 0u}, {0u, 100u}, {14u, 0u}, {14u, 100u}, {30u, 1000000u}}) {
    predictor::AnalysisOptions options;
    options.states = states;
    options.meaning = meaning;
    options.window = window;
    options.strict = true;
    options.threads = 1 + window % 3;
    options.query_ms = 0;
    for (const auto& p : predictor::analyze(trace, options).pairs) {
      const bool feasible = truth.count({p.def.initial ? trace::kNone : p.def.site, p.use.site, p.variable});
      const char* state = predictor::state_name(p.state);
      const bool external = p.state == predictor::State::Unknown && p.why == predictor::Why::External;
      if (p.state == predictor::State::Explicit || external) continue;
      const bool claimed = p.state == predictor::State::Implicit;
      const bool denied = p.state == predictor::State::Infeasible && p.bound.whole;
      if ((claimed && !feasible) || (denied && feasible) || (window == 0 && !claimed && !denied))
        user_error("window {}: {} of event {} and read {} is {} ({})", window, p.variable, p.def.event, p.use.event, state, p.detail);
    }
  }
  return pairs;
}

struct TemporaryTrace {
  explicit TemporaryTrace(const trace::Trace& trace) : path(fmt::format("{}/stem-oracle-{}.stemtrace", std::filesystem::temp_directory_path().string(), getpid())) {
    trace::save(trace, path);
  }
  ~TemporaryTrace() { std::remove(path.c_str()); }
  const std::string path;
};

std::set<EventPair> enumerate_window(const trace::Trace& trace, uint32_t first, uint32_t last) {
  const predictor::Model model(trace);
  const predictor::MustOrder order(model);
  const predictor::Independence independence(model, order);
  Collect collect(trace, Meaning::Prefix);
  predictor::Enumerate enumerate(model, independence);
  collect.run = &enumerate;
  enumerate.run(first, last, SIZE_MAX, collect);  // with the recorded inputs
  return collect.found;
}

// Parts that begin anywhere are well-formed, and have the flows that the whole trace has from there on.
void compare_parts(const trace::Trace& trace, const std::string& path, uint64_t size) {
  predictor::each_part(
      path, {size, 3}, [](uint64_t, uint64_t) { return true; },
      [&](predictor::Part&& part) {
        const auto checked = trace::check(part.trace);
        if (!checked.ok()) user_error("part of {} from {}: {}", size, part.first, trace::to_string(checked.problems[0]));
        if (part.first == 0 || !part.calm) return true;  // inputs are free there; who was woken is not as recorded
        const auto last = static_cast<uint32_t>(part.number(static_cast<uint32_t>(part.trace.events.size())));
        bool held = false;  // an update at its end keeps its value: its pins may be missing
        for (uint32_t e = part.from; e < part.trace.events.size(); ++e) held |= part.trace.events[e].flags != trace.events[part.number(e)].flags;
        std::set<EventPair> found;
        for (const EventPair& pair : enumerate_window(part.trace, part.from, static_cast<uint32_t>(part.trace.events.size())))
          found.insert({pair.write == predictor::kInitial ? pair.write : static_cast<uint32_t>(part.number(pair.write)), static_cast<uint32_t>(part.number(pair.read))});
        const std::set<EventPair> whole = enumerate_window(trace, static_cast<uint32_t>(part.first), last);
        for (const EventPair& pair : found)
          if (!whole.count(pair)) user_error("part of {} from {}: ({}, {}) is shown by the part only", size, part.first, pair.write, pair.read);
        for (const EventPair& pair : whole)
          if (!held && !found.count(pair)) user_error("part of {} from {}: ({}, {}) is not shown by the part", size, part.first, pair.write, pair.read);
        return true;
      });
}

// The analysis in parts that are far too small: what it finds is among the event pairs, its witnesses execute on the whole trace,
// and it has an answer for every pair that the analysis in memory has.
std::set<EventPair> ask_parts(trace::Trace trace, Meaning meaning) {
  for (trace::Event& e : trace.events)  // the interpreter's main ends before it exits; nobody joins it
    if (e.kind == trace::Kind::End && e.thread == 0) e.kind = trace::Kind::Yield;
  if (!trace::check(trace).ok()) return ask_engine(trace, meaning);  // atomic sections in one another: not for analyze
  const TemporaryTrace file(trace);
  if (meaning == Meaning::Prefix)
    for (uint64_t size : {5, 9, 16}) compare_parts(trace, file.path, size);
  const std::set<EventPair> pairs = ask_engine(trace, meaning);
  const predictor::Checker checker(trace);
  predictor::AnalysisOptions options;
  options.meaning = meaning;
  options.strict = true;
  options.query_ms = 0;
  std::map<StaticKey, predictor::PairResult> whole;
  auto key = [](const predictor::PairResult& p) { return StaticKey{p.def.initial ? trace::kNone : p.def.site, p.use.site, p.variable}; };
  for (auto& p : predictor::analyze(trace, options).pairs) whole[key(p)] = p;
  options.window = 4 + static_cast<uint32_t>(trace.events.size() % 7);
  const predictor::LongAnalysis parts = predictor::analyze_parts(file.path, options, 2 * options.window + 1);
  if (parts.result.pairs.size() != whole.size()) user_error("{} static pairs in parts, {} in memory", parts.result.pairs.size(), whole.size());
  for (const auto& p : parts.result.pairs) {
    const auto it = whole.find(key(p));
    if (it == whole.end()) user_error("{}: a pair in parts only", p.variable);
    const predictor::State state = it->second.state;
    const bool feasible = state == predictor::State::Implicit;
    if ((p.state == predictor::State::Explicit) != (state == predictor::State::Explicit) ||
        (p.why == predictor::Why::External && p.state == predictor::State::Unknown) != (it->second.why == predictor::Why::External && state == predictor::State::Unknown) ||
        (p.state == predictor::State::Implicit && !feasible) || (p.state == predictor::State::Infeasible && p.bound.whole))
      user_error("{} {} -> {}: {} ({}) in parts, {} in memory", p.variable, p.def.site, p.use.site, predictor::state_name(p.state), p.detail, predictor::state_name(state));
    if (p.state == predictor::State::Unknown && p.detail.empty() && p.why != predictor::Why::External) user_error("{}: unknown without a reason", p.variable);
    if (!p.witness) continue;
    const auto number = [&](uint32_t event) { return static_cast<uint32_t>(parts.result.numbers.at(event)); };
    predictor::Witness witness = *p.witness;
    uint64_t operations = 0;
    std::vector<uint32_t> schedule;
    std::vector<uint32_t> tail;
    for (uint32_t e : p.witness->schedule) tail.push_back(number(e));
    for (uint32_t e = 0; std::find(tail.begin(), tail.end(), e) == tail.end(); ++e) {
      operations += trace::is_visible(trace.events[e].kind);
      if (operations > p.witness->after) break;
      schedule.push_back(e);
    }
    schedule.insert(schedule.end(), tail.begin(), tail.end());
    witness.schedule = schedule;
    witness.pair = {p.witness->pair.write == predictor::kInitial ? predictor::kInitial : number(p.witness->pair.write), number(p.witness->pair.read)};
    witness.run = nullptr, witness.after = 0;
    predictor::assign_wakeups(trace, witness);
    const trace::Test test = predictor::test_of(parts.trace, *p.witness), same = predictor::test_of(trace, witness);
    uint64_t steps = 0, wanted = 0;
    for (const auto& step : test.schedule) steps += step.count;
    for (const auto& step : same.schedule) wanted += step.count;
    const trace::Step &last = test.schedule.back(), &other = same.schedule.back();  // others may be woken on the way
    if (steps != wanted || last.thread != other.thread || last.site != other.site || last.kind != other.kind || test.inputs != same.inputs)
      user_error("{}: another test", p.variable);
    must_accept(checker, trace, witness, Meaning::Prefix);
  }
  return pairs;
}

}  // namespace

std::vector<Subject> subjects() {
  return {
      {"encoder",
       [](const trace::Trace& trace, Meaning meaning) {
         encoder::Options options;
         options.meaning = meaning;
         options.timeout_ms = 0;
         return ask_encoder(trace, options);
       }},
      // The paper's formula means FULL; it is asked nothing else.
      {"paper",
       [](const trace::Trace& trace, Meaning) {
         encoder::Options options;
         options.meaning = Meaning::Full;
         options.paper = true;
         options.timeout_ms = 0;
         return ask_encoder(trace, options);
       },
       false},
      // The whole predictor: order-graph engine, harvest, and Z3 for what they leave; every witness checked.
      {"engine", ask_engine},
      {"analysis", ask_analysis},
      {"enumeration", ask_enumeration},
      {"windows", ask_windows, true, false},
      {"parts", ask_parts},
      {"alternate", nullptr, false, false, ask_alternates},
      // The oracle alone: against the recording and against runs of the programs.
      {"none", [](const trace::Trace&, Meaning) { return std::set<EventPair>{}; }, false, false},
  };
}

}  // namespace stem::oracle
