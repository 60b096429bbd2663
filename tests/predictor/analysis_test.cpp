// Golden case S1 by way of static pairs, and what an analysis promises beside its verdicts.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "predictor/analysis.h"
#include "predictor/checker.h"
#include "trace/builder.h"
#include "trace/text.h"

using namespace stem;
using namespace stem::predictor;

namespace {

using Names = std::set<std::string>;  // "x W13 R2"

trace::Trace load(const std::string& name) {
  const std::string path = std::string(STEM_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return trace::parse(text.str(), path);
}

Names names(const trace::Trace& trace, const AnalysisResult& result, State state) {
  Names out;
  for (const PairResult& p : result.pairs)
    if (p.state == state)
      out.insert(fmt::format("{} W{} R{}", p.variable, p.def.initial ? 0 : trace.sites[p.def.site].line, trace.sites[p.use.site].line));
  return out;
}

// A counter under a mutex: nothing but the lock's own argument refutes that the second read of a section sees another thread.
trace::Trace counters() {
  trace::Builder b;
  const auto x = b.global("x", 4, 0);
  const auto m = b.sync("m");
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  uint32_t line = 10;
  for (auto t : {t1, t2}) {
    b.lock(t, m);
    b.write(t, x, line, b.site("a.c", line));
    b.read(t, x, line, b.site("a.c", line + 1));
    b.unlock(t, m);
    line += 10;
  }
  b.end(t1), b.end(t2);
  b.join(0, t1), b.join(0, t2);
  return b.take();
}

}  // namespace

TEST_CASE("S1: the implicit pairs of each trace, PREFIX and FULL") {
  struct Golden {
    const char* file;
    Names observed, full, prefix;
  };
  const Golden all[] = {
      {"s1-pi1.trace", {"x W0 R2", "x W0 R10", "z W2 R13", "y W0 R9"}, {"x W13 R2", "z W0 R13"}, {"x W13 R2", "z W0 R13"}},
      {"s1-pi2.trace", {"x W0 R4", "z W4 R11", "x W5 R10", "y W0 R9"}, {}, {"x W0 R10"}},
      {"s1-pi3.trace",
       {"x W0 R4", "x W0 R10", "z W4 R13", "y W0 R9"},
       {"x W13 R4", "z W0 R13"},
       {"x W13 R4", "z W0 R13", "x W5 R10"}},
  };
  for (const Golden& golden : all) {
    CAPTURE(golden.file);
    const trace::Trace trace = load(golden.file);
    for (const Meaning meaning : {Meaning::Prefix, Meaning::Full}) {
      AnalysisOptions options;
      options.meaning = meaning;
      options.strict = true;
      const AnalysisResult result = analyze(trace, options);
      CHECK(names(trace, result, State::Explicit) == golden.observed);
      CHECK(names(trace, result, State::Implicit) == (meaning == Meaning::Full ? golden.full : golden.prefix));
      CHECK(names(trace, result, State::Unknown).empty());
    }
    AnalysisOptions paper;
    paper.paper = true;
    paper.meaning = Meaning::Full;
    CHECK(names(trace, analyze(trace, paper), State::Implicit) == golden.full);
  }
}

TEST_CASE("a lock hides and covers; the evidence names it") {
  const trace::Trace trace = counters();
  const AnalysisResult result = analyze(trace);
  CHECK(names(trace, result, State::Explicit) == Names{"x W10 R11", "x W20 R21"});
  CHECK(names(trace, result, State::Implicit).empty());
  CHECK(names(trace, result, State::Infeasible).size() == 4);
  for (const PairResult& p : result.pairs) {
    CHECK(p.use.locks == std::vector<std::string>{"m"});
    if (p.state == State::Infeasible) CHECK(p.layer == Layer::MustOrder);
  }
}

TEST_CASE("results do not depend on the number of threads") {
  const trace::Trace trace = load("s1-pi3.trace");
  std::string first;
  for (unsigned threads : {1u, 2u, 3u}) {
    AnalysisOptions options;
    options.threads = threads;
    std::string all;
    for (const PairResult& p : analyze(trace, options).pairs) {
      all += fmt::format("{} {} {} {} {}", p.variable, p.def.event, p.use.event, state_name(p.state), layer_name(p.layer));
      if (p.witness) for (uint32_t e : p.witness->schedule) all += fmt::format(" {}", e);
      all += "\n";
    }
    if (first.empty()) first = all;
    CHECK(all == first);
  }
}

TEST_CASE("an interrupted analysis keeps what was decided and says the rest is unknown") {
  const trace::Trace trace = load("s1-pi1.trace");
  std::atomic<bool> stop{true};
  AnalysisOptions options;
  options.interrupt = &stop;
  const AnalysisResult result = analyze(trace, options);
  CHECK(result.interrupted);
  CHECK(names(trace, result, State::Explicit).size() == 4);
  CHECK(names(trace, result, State::Implicit).empty());
  for (const PairResult& p : result.pairs)
    if (p.state == State::Unknown) CHECK(p.why == Why::Interrupted);
}

TEST_CASE("a witness becomes a test whose last step is the use") {
  const trace::Trace trace = load("s1-pi1.trace");
  for (const PairResult& p : analyze(trace).pairs) {
    if (!p.witness) continue;
    const trace::Test test = test_of(trace, *p.witness);
    REQUIRE(!test.schedule.empty());
    CHECK(test.schedule.back().site == trace.sites[p.use.site].key);
    CHECK(test.schedule.back().kind == trace::Kind::Read);
    CHECK(test.schedule.back().thread == p.use.thread);
  }
}

TEST_CASE("pairs on memory that unseen code has written are unknown, never excluded") {
  trace::Builder b;
  const auto x = b.global("x", 4, 0);
  const auto t = b.spawn("one");
  b.write(0, x, 1, b.site("a.c", 1));
  auto e = b.event(t, trace::Kind::External, 0, 7, x);
  auto r = b.read(t, x, 7, b.site("a.c", 2));
  b.at(e).flags |= trace::kTainted;
  b.at(r).flags |= trace::kTainted;
  b.end(t);
  b.join(0, t);
  const trace::Trace trace = b.take();
  bool seen = false;
  for (const PairResult& p : analyze(trace).pairs)
    if (!p.observed) {
      seen = true;
      CHECK(p.state == State::Unknown);
      CHECK(p.why == Why::External);
    }
  CHECK(seen);
}

TEST_CASE("a wait takes a recursive mutex back to the depth that it had") {
  trace::Builder b;
  const auto x = b.global("x", 4, 0);
  const auto m = b.sync("m"), c = b.sync("c");
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  using trace::Kind;
  b.lock(t1, m);
  b.event(t1, Kind::Lock, 0, 2, m);
  b.event(t1, Kind::Wait, 0, m.addr, c);
  b.event(t2, Kind::Signal, 0, 1 + t1, c);
  b.event(t1, Kind::Wake, 0, 1 + t2, c);
  b.event(t1, Kind::Lock, 0, 2, m);
  b.event(t1, Kind::Unlock, 0, 1, m);
  b.write(t1, x, 1, b.site("a.c", 1));  // still locked
  b.write(t1, x, 2, b.site("a.c", 2));
  b.event(t1, Kind::Unlock, 0, 0, m);
  b.lock(t2, m);
  b.read(t2, x, 2, b.site("a.c", 3));
  b.unlock(t2, m);
  b.end(t1), b.end(t2);
  b.join(0, t1), b.join(0, t2);
  const trace::Trace trace = b.take();
  const AnalysisResult result = analyze(trace);
  CHECK(names(trace, result, State::Infeasible) == Names{"x W1 R3"});
  CHECK(names(trace, result, State::Implicit) == Names{"x W0 R3"});
}
