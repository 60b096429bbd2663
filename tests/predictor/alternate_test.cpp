// Alternate branches: golden case S1, and by hand what bounds an answer, assertions, switches, schedules.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "predictor/alternate.h"
#include "predictor/checker.h"
#include "trace/builder.h"
#include "trace/text.h"

using namespace stem;
using namespace stem::predictor;
using trace::Kind;
using trace::Op;

namespace {

trace::Trace load(const std::string& name) {
  const std::string path = std::string(STEM_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return trace::parse(text.str(), path);
}

uint32_t branch_at(const trace::Trace& trace, uint32_t line) {
  for (uint32_t e = 0; e < trace.events.size(); ++e)
    if (trace.events[e].kind == Kind::Branch && trace.sites[trace.events[e].site].line == line) return e;
  FAIL("no branch at line " << line);
  return 0;
}

int32_t number(const trace::Input& input) {
  uint32_t bits = 0;
  for (size_t k = 0; k < 4; ++k) bits |= static_cast<uint32_t>(input.bytes.at(k)) << 8 * k;
  return static_cast<int32_t>(bits);
}

}  // namespace

TEST_CASE("S1: which branches of each trace can go the other way") {
  for (const char* file : {"s1-pi1.trace", "s1-pi2.trace", "s1-pi3.trace"}) {
    CAPTURE(file);
    const trace::Trace trace = load(file);
    Alternates alternates(trace);
    const Alternate one = alternates.negate(branch_at(trace, 1));
    REQUIRE(one.kind == Alternate::Kind::Feasible);
    CHECK((number(one.witness.inputs[0]) > 1) == (std::string(file) != "s1-pi1.trace"));
    const Alternate six = alternates.negate(branch_at(trace, 6));
    REQUIRE(six.kind == Alternate::Kind::Feasible);
    CHECK(number(six.witness.inputs[1]) > 5);
    const Alternate fourteen = alternates.negate(branch_at(trace, 14));
    REQUIRE(fourteen.kind == Alternate::Kind::Feasible);
    CHECK(number(fourteen.witness.inputs[2]) < 2);
    const Alternate ten = alternates.negate(branch_at(trace, 10));
    if (std::string(file) == "s1-pi1.trace") {
      CHECK(ten.kind == Alternate::Kind::Infeasible);
      CHECK(!ten.bounded);
    } else {
      REQUIRE(ten.kind == Alternate::Kind::Feasible);
      for (size_t i = 0; i < 3; ++i) CHECK(ten.witness.inputs[i] == trace.inputs[i]);  // the order alone does it
      CHECK(ten.value == (std::string(file) == "s1-pi3.trace"));
    }
  }
}

namespace {

// Two threads; main/1 reads x and branches on x > 0 (line 5), main/2 writes x := 1 + input n under a branch n > 3 (line 9).
struct Small {
  trace::Builder b;
  trace::Var x = b.global("x", 4, 0);
  uint32_t n = b.input("n", 2, 4);
  trace::ThreadId t1 = b.spawn("reader"), t2 = b.spawn("writer");
  uint32_t read = 0, branch = 0, write = 0;

  void reader() {
    read = static_cast<uint32_t>(b.read(t1, x, 0, b.site("a.c", 4)));
    branch = static_cast<uint32_t>(b.branch(t1, b.op(Op::Slt, 1, b.constant(32, 0), b.leaf(read)), 0, b.site("a.c", 5)));
  }
  void writer() { write = static_cast<uint32_t>(b.write(t2, x, 3, b.site("a.c", 9), b.op(Op::Add, 32, b.input_leaf(n, 32), b.constant(32, 1)))); }
  trace::Trace finish() {
    b.end(t1), b.end(t2);
    b.join(0, t1), b.join(0, t2);
    b.end(0);
    return b.take();
  }
};

}  // namespace

TEST_CASE("another order alone takes the branch; nothing more than needed is scheduled, inputs stay") {
  Small s;
  s.reader(), s.writer();
  const trace::Trace trace = s.finish();
  const Alternate a = Alternates(trace).negate(s.branch);
  REQUIRE(a.kind == Alternate::Kind::Feasible);
  CHECK(!a.same_order);
  CHECK(a.layer == Layer::Solver);
  CHECK(a.value == 1);
  CHECK(a.witness.inputs == trace.inputs);
  CHECK(a.witness.schedule.back() == s.branch);
  const auto at = [&](uint32_t e) { return std::find(a.witness.schedule.begin(), a.witness.schedule.end(), e) - a.witness.schedule.begin(); };
  CHECK(at(s.write) < at(s.read));
  const trace::Test test = test_of(trace, a);
  REQUIRE(!test.schedule.empty());
  CHECK(test.schedule.back().thread == "main/1");
}

TEST_CASE("the recorded order with another input comes first") {
  Small s;
  s.writer(), s.reader();
  trace::Trace trace = s.finish();
  trace.events[s.read].value = 3, trace.events[s.branch].value = 1;
  const Alternate a = Alternates(trace).negate(s.branch);
  REQUIRE(a.kind == Alternate::Kind::Feasible);
  CHECK(a.layer == Layer::Inputs);
  CHECK(a.same_order);
  CHECK(number(a.witness.inputs[0]) + 1 <= 0);
  AlternateOptions ordered;
  ordered.reorder = false;
  CHECK(Alternates(trace, ordered).negate(s.branch).kind == Alternate::Kind::Feasible);
}

TEST_CASE("a wish: this case of a switch, none of those, events that are to come before") {
  trace::Builder b;
  const uint32_t n = b.input("n", 7, 4);
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  const uint32_t other = static_cast<uint32_t>(b.branch(t2, b.op(Op::Ult, 1, b.input_leaf(n, 32), b.constant(32, 9)), 1, b.site("a.c", 20)));
  const uint32_t choice = static_cast<uint32_t>(b.branch(t1, b.input_leaf(n, 32), 7, b.site("a.c", 5)));
  b.end(t1), b.end(t2);
  b.join(0, t1), b.join(0, t2);
  b.end(0);
  const trace::Trace trace = b.take();
  Alternates alternates(trace);
  const Alternate three = alternates.negate(choice, {.value = 3, .avoid = {}});
  REQUIRE(three.kind == Alternate::Kind::Feasible);
  CHECK(three.value == 3);
  CHECK(number(three.witness.inputs[0]) == 3);
  const Alternate small = alternates.negate(choice, {.value = {}, .avoid = {0, 1, 2, 3, 4, 5, 6, 8}});
  REQUIRE(small.kind == Alternate::Kind::Feasible);
  CHECK(static_cast<uint32_t>(small.value) >= 9);  // the branch of the other thread need not come before
  const Alternate refuted = alternates.negate(choice, {.value = {}, .avoid = {0, 1, 2, 3, 4, 5, 6, 8}, .some_before = {{other}}});
  CHECK(refuted.kind == Alternate::Kind::Infeasible);
  CHECK(!refuted.bounded);
  const Alternate both = alternates.negate(choice, {.value = 8, .avoid = {}, .some_before = {{other}}});
  REQUIRE(both.kind == Alternate::Kind::Feasible);
  CHECK(std::count(both.witness.schedule.begin(), both.witness.schedule.end(), other) == 1);
}

TEST_CASE("an assertion and the branch that tests it are one decision") {
  trace::Builder b;
  const uint32_t n = b.input("n", 7, 4);
  const auto holds = b.op(Op::Ult, 1, b.input_leaf(n, 32), b.constant(32, 9));
  const uint64_t assertion = b.event(0, Kind::Assert, b.site("a.c", 5), 1);
  b.at(assertion).expr = holds;
  const uint32_t branch = static_cast<uint32_t>(b.branch(0, holds, 1, b.site("a.c", 5)));
  const uint32_t later = static_cast<uint32_t>(b.branch(0, holds, 1, b.site("a.c", 6)));
  b.end(0);
  const trace::Trace trace = b.take();
  Alternates alternates(trace);
  for (const uint32_t e : {static_cast<uint32_t>(assertion), branch}) {
    const Alternate a = alternates.negate(e);
    REQUIRE(a.kind == Alternate::Kind::Feasible);
    CHECK(number(a.witness.inputs[0]) >= 9);
  }
  const Alternate after = alternates.negate(later);  // both bind what follows
  CHECK(after.kind == Alternate::Kind::Infeasible);
  CHECK(!after.bounded);
}

TEST_CASE("what bounds a refutation") {
  const auto refuted = [](const std::function<void(Small&)>& before, const std::function<void(Small&)>& after = {}) {
    Small s;
    before(s);
    s.reader();
    if (after) after(s);
    const trace::Trace trace = s.finish();
    const Alternate a = Alternates(trace).negate(s.branch);
    REQUIRE(a.kind == Alternate::Kind::Infeasible);
    CHECK(a.bounded == !a.limit.empty());
    return a;
  };
  CHECK(!refuted([](Small&) {}).bounded);
  // Something of the other thread that may come before, or of its own that must.
  CHECK(refuted([](Small& s) { s.b.event(s.t2, Kind::Nondet); }).bounded);
  CHECK(refuted([](Small&) {}, [](Small& s) { s.b.event(s.t2, Kind::Nondet); }).bounded);
  CHECK(!refuted([](Small&) {}, [](Small& s) { s.b.event(s.t1, Kind::Nondet); }).bounded);  // only after
  // A pin that can change, one that cannot.
  CHECK(refuted([](Small& s) { s.b.pin(s.t2, s.b.input_leaf(s.n, 32), 2); }).bounded);
  CHECK(!refuted([](Small& s) {
           s.b.pin(s.t2, s.b.op(Op::Ule, 1, s.b.input_leaf(s.n, 32), s.b.constant(32, 0xffffffff)), 1);
         }).bounded);
  CHECK(!refuted([](Small& s) {
           const auto y = s.b.global("y", 4, 6);
           s.b.pin(s.t2, s.b.leaf(s.b.read(s.t2, y, 6, s.b.site("a.c", 30))), 6);
         }).bounded);
  // A pinned read that another thread's write can change, and one that nobody writes.
  const auto pinned_read = [](Small& s, bool written) {
    const auto y = s.b.global("y", 4, 6);
    const uint64_t r = s.b.read(s.t2, y, 6, s.b.site("a.c", 30));
    s.b.at(r).flags |= trace::kPinned;
    if (written) s.b.write(0, y, 7, s.b.site("a.c", 31));
  };
  CHECK(!refuted([&](Small& s) { pinned_read(s, false); }).bounded);
  CHECK(refuted([&](Small& s) { pinned_read(s, true); }).bounded);
  AlternateOptions cut;
  cut.cut = true;
  Small s;
  s.reader();
  const trace::Trace trace = s.finish();
  CHECK(Alternates(trace, cut).negate(s.branch).bounded);
}

TEST_CASE("the checker refuses an alternate that is none") {
  Small s;
  s.reader(), s.writer();
  const trace::Trace trace = s.finish();
  const Checker checker(trace);
  Witness good = Alternates(trace).negate(s.branch).witness;
  uint64_t decided = 0;
  CHECK(!checker.check_alternate(good, decided));
  CHECK(decided == 1);
  Witness same{{kInitial, s.branch}, trace.inputs, {}, {}};  // the recording itself
  for (uint32_t e = 0; e <= s.branch; ++e) same.schedule.push_back(e);
  CHECK(checker.check_alternate(same, decided));
  Witness other = good;
  other.inputs[0].bytes = {0xff, 0xff, 0xff, 0xff};  // x = 0
  CHECK(checker.check_alternate(other, decided));
  other = good;
  other.pair.read = s.read;
  CHECK(checker.check_alternate(other, decided));
}

TEST_CASE("whether a run took it: the same thread, site and occurrence") {
  const auto run = [](std::initializer_list<uint64_t> outcomes, uint32_t line) {
    trace::Builder b;
    const auto t = b.spawn("one");
    b.site("a.c", 5), b.site("a.c", 6);  // the same keys in all of them
    for (uint64_t outcome : outcomes) b.branch(t, b.constant(8, outcome), outcome, b.site("a.c", line));
    b.end(t);
    return b.take();
  };
  const trace::Trace trace = run({1, 1, 0}, 5);
  const uint32_t second = branch_at(trace, 5) + 1;
  CHECK(took(run({1, 0, 0}, 5), trace, second) == Taken::Yes);
  CHECK(took(run({1, 1, 0}, 5), trace, second) == Taken::Same);
  CHECK(took(run({0}, 5), trace, second) == Taken::NotReached);
  CHECK(took(run({1, 0, 0}, 6), trace, second) == Taken::NotReached);
  CHECK(took(run({1, 3, 0}, 5), trace, second, {.value = 2, .avoid = {}}) == Taken::Same);
  CHECK(took(run({1, 2, 0}, 5), trace, second, {.value = 2, .avoid = {}}) == Taken::Yes);
}

TEST_CASE("of many instances of one branch a few are asked about") {
  trace::Builder b;
  for (uint64_t i = 0; i < 100; ++i) b.branch(0, b.constant(1, i % 2), i % 2, b.site("a.c", 5));
  b.end(0);
  const std::vector<uint32_t> some = branches_of(b.take(), 4);
  CHECK(some == std::vector<uint32_t>{1, 2, 3, 4, 97, 98, 99, 100});
}

TEST_CASE("What each thread counts in memory of its own does not make the question about a shared total larger") {
  constexpr uint32_t kRounds = 100;
  trace::Builder b;
  const trace::Var total = b.global("total", 4, 0);
  std::vector<trace::ThreadId> threads;
  uint64_t sum = 0;
  for (uint32_t t = 0; t < 3; ++t) {
    const trace::Var own = b.global("own" + std::to_string(t), 4, 0);
    const trace::ThreadId thread = b.spawn("worker");
    threads.push_back(thread);
    trace::ExprId count = 0;
    for (uint32_t i = 0; i <= kRounds; ++i) {
      const uint64_t read = b.read(thread, own, i, b.site("a.c", 3));
      count = b.leaf(read);
      if (i < kRounds) b.write(thread, own, i + 1, b.site("a.c", 4), b.op(Op::Add, 32, count, b.constant(32, 1)));
    }
    const uint64_t read = b.read(thread, total, sum, b.site("a.c", 6));
    b.write(thread, total, sum += kRounds, b.site("a.c", 6), b.op(Op::Add, 32, b.leaf(read), count));
    b.end(thread);
  }
  for (trace::ThreadId thread : threads) b.join(0, thread);
  const uint64_t last = b.read(0, total, sum, b.site("a.c", 9));
  const uint64_t held = b.event(0, Kind::Assert, b.site("a.c", 9), 1);
  b.at(held).expr = b.op(Op::Eq, 1, b.leaf(last), b.constant(32, sum));
  const trace::Trace trace = b.take();
  AlternateOptions options;
  options.query_ms = 60000;
  const Alternate answer = Alternates(trace, options).negate(static_cast<uint32_t>(held));
  CHECK(answer.kind == Alternate::Kind::Feasible);
  CHECK(answer.detail == "");
}
