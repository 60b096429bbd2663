#include <doctest/doctest.h>

#include <cerrno>
#include <functional>

#include "random_trace.h"
#include "trace/checker.h"
#include "trace/value_store.h"

using namespace stem::trace;

namespace {

// The first problem of a trace, "" if there is none.
std::string first_problem(const Trace& trace) {
  CheckResult result = check(trace);
  return result.ok() ? "" : to_string(result.problems.front());
}

std::string with(const std::function<void(Builder&)>& build) {
  Builder b;
  build(b);
  return first_problem(b.take());
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("random traces are well-formed") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    CHECK(first_problem(random_trace(seed, 100 + seed * 30)) == "");
  }
}

TEST_CASE("a changed value anywhere in a random trace is noticed where it matters") {
  std::mt19937_64 rng(9);
  int noticed = 0, tried = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Trace trace = random_trace(seed, 400);
    for (int i = 0; i < 20; ++i) {
      Trace bad = trace;
      Event& e = bad.events[rng() % bad.events.size()];
      if (e.kind != Kind::Branch && e.kind != Kind::Pin && !(e.kind == Kind::Write && e.expr)) continue;
      e.value ^= 1;
      ++tried;
      noticed += !check(bad).ok();
    }
  }
  CHECK(tried > 20);
  CHECK(noticed == tried);
}

TEST_CASE("reads must be explained") {
  auto at = [](Builder& b) { return b.site("a.c", 7, "x"); };
  CHECK(with([&](Builder& b) { auto x = b.global("x", 4, 3); b.read(0, x, 3, at(b)); }) == "");
  CHECK(says(with([&](Builder& b) { auto x = b.global("x", 4, 3); b.read(0, x, 4, at(b)); }), "main a.c:7:1 x: reads 4 from x, which began as something else"));
  CHECK(says(with([&](Builder& b) { auto x = b.global("x", 4); b.write(0, x, 1); b.read(0, x, 2, at(b)); }), "event 2, main a.c:7:1 x: reads 2 from x, but 1 was there last"));
  CHECK(with([&](Builder& b) {
          auto x = b.global("x", 4);
          b.write(0, x, 1);
          b.event(0, Kind::External, 0, 2, x);
          b.read(0, x, 2);
        }) == "");
  CHECK(says(with([&](Builder& b) {  // bytes of a wider write
               auto o = b.object(ObjectKind::Global, "o", 8);
               b.write(0, b.part(o, 0, 8, ""), 0x0102030405060708);
               b.read(0, b.part(o, 2, 2, ".f"), 0x0506);
               b.read(0, b.part(o, 1, 1, ".g"), 0x08);
             }), "reads 8 from o.g, but 7 was there last"));
  CHECK(with([&](Builder& b) {  // reused memory begins anew
          auto h = b.alloc(0, "heap(f:1)", 8);
          b.write(0, b.part(h.object, 0, 8, ""), 5);
          b.free(0, h);
          Var again = b.alloc(0, "heap(f:1)", 8);
          b.at(b.size() - 1).addr = b.object(again.object).base = b.object(h.object).base;
          b.read(0, b.part(again.object, 0, 8, ""), 99);
        }) == "");
  CHECK(says(with([&](Builder& b) { auto x = b.global("x", 1); b.write(0, x, 256); }), "more than its 1 bytes"));
}

TEST_CASE("mutexes are balanced") {
  auto two = [](const std::function<void(Builder&, Var, ThreadId)>& f) {
    return with([&](Builder& b) { auto m = b.sync("m"); auto t = b.spawn("w"); f(b, m, t); });
  };
  CHECK(two([](Builder& b, Var m, ThreadId t) { b.lock(0, m); b.unlock(0, m); b.lock(t, m); b.unlock(t, m); }) == "");
  CHECK(says(two([](Builder& b, Var m, ThreadId t) { b.lock(0, m); b.lock(t, m); }), "main/1: locks m, which main holds"));
  CHECK(says(two([](Builder& b, Var m, ThreadId t) { b.lock(0, m); b.unlock(t, m); }), "unlocks m, which main holds"));
  CHECK(says(two([](Builder& b, Var m, ThreadId) { b.unlock(0, m); }), "unlocks m, which nobody holds"));
  CHECK(says(two([](Builder& b, Var m, ThreadId) { b.lock(0, m); b.lock(0, m); }), "to depth 1, which was at 1"));
  CHECK(two([](Builder& b, Var m, ThreadId) { b.lock(0, m); b.event(0, Kind::Lock, 0, 2, m); b.event(0, Kind::Unlock, 0, 1, m); b.unlock(0, m); }) == "");
  CHECK(says(two([](Builder& b, Var m, ThreadId) { b.event(0, Kind::LockFail, 0, EBUSY, m, kTry); }), "fails to lock m, which nobody holds"));
  CHECK(two([](Builder& b, Var m, ThreadId t) { b.lock(t, m); b.event(0, Kind::LockFail, 0, EBUSY, m, kTry); }) == "");
}

TEST_CASE("read-write locks, semaphores, barriers, once and atomic sections follow their rules") {
  auto two = [](const std::function<void(Builder&, Var, ThreadId)>& f) {
    return with([&](Builder& b) { auto m = b.sync("s"); auto t = b.spawn("w"); f(b, m, t); });
  };
  auto ev = [](Builder& b, ThreadId t, Kind k, Var s, uint64_t v = 0, uint16_t flags = 0) { b.event(t, k, 0, v, s, flags); };
  CHECK(two([&](Builder& b, Var s, ThreadId t) { ev(b, 0, Kind::RdLock, s); ev(b, t, Kind::RdLock, s); ev(b, 0, Kind::RwUnlock, s); ev(b, t, Kind::RwUnlock, s); ev(b, t, Kind::WrLock, s); }) == "");
  CHECK(says(two([&](Builder& b, Var s, ThreadId t) { ev(b, 0, Kind::RdLock, s); ev(b, t, Kind::WrLock, s); }), "which main holds for reading"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId t) { ev(b, 0, Kind::WrLock, s); ev(b, t, Kind::RdLock, s); }), "which main holds for writing"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId) { ev(b, 0, Kind::RwUnlock, s); }), "does not hold"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId) { ev(b, 0, Kind::SemInit, s, 1); ev(b, 0, Kind::SemWait, s); ev(b, 0, Kind::SemWait, s); }), "passes s, whose count is 0"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId) { ev(b, 0, Kind::SemInit, s, 1); ev(b, 0, Kind::SemFail, s, EAGAIN, kTry); }), "whose count is 1"));
  auto barrier = [&](Builder& b, Var s, ThreadId t) {
    ev(b, 0, Kind::BarrierInit, s, 2);
    ev(b, 0, Kind::BarrierArrive, s, 0);
    ev(b, t, Kind::BarrierArrive, s, 0);
    ev(b, t, Kind::BarrierLeave, s, 0, kSerial);
    ev(b, t, Kind::BarrierArrive, s, 1);
    ev(b, 0, Kind::BarrierLeave, s, 0);
  };
  CHECK(two(barrier) == "");
  CHECK(says(two([&](Builder& b, Var s, ThreadId t) { barrier(b, s, t); ev(b, t, Kind::BarrierLeave, s, 1); }), "before everybody arrived"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId t) { barrier(b, s, t); ev(b, 0, Kind::BarrierArrive, s, 0); }), "in generation 0, which is in 1"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId t) { ev(b, 0, Kind::OnceBegin, s); ev(b, t, Kind::OncePass, s); }), "before its initialiser has run"));
  CHECK(says(two([&](Builder& b, Var s, ThreadId t) { ev(b, 0, Kind::AtomicBegin, {}); ev(b, t, Kind::AtomicBegin, {}); (void)s; }), "while main is in one"));
}

TEST_CASE("waits, signals and wake-ups match") {
  auto two = [](const std::function<void(Builder&, Var, Var, ThreadId)>& f) {
    return with([&](Builder& b) { auto m = b.sync("m"), c = b.sync("c"); auto t = b.spawn("w"); f(b, m, c, t); });
  };
  CHECK(two([](Builder& b, Var m, Var c, ThreadId t) { b.lock(t, m); b.wait(t, c, m); b.signal(0, c, t + 1); b.wake(t, c, 0); b.lock(t, m); b.unlock(t, m); }) == "");
  CHECK(says(two([](Builder& b, Var m, Var c, ThreadId t) { b.wait(t, c, m); }), "without holding the mutex"));
  CHECK(says(two([](Builder& b, Var m, Var c, ThreadId t) { b.lock(t, m); b.wait(t, c, m); b.wake(t, c, 0); }), "woken from c by main, which did not signal it"));
  CHECK(says(two([](Builder& b, Var, Var c, ThreadId t) { b.signal(0, c, t + 1); }), "which does not wait for it"));
  CHECK(says(two([](Builder& b, Var m, Var c, ThreadId t) { b.lock(t, m); b.wait(t, c, m); b.broadcast(0, c, 2); }), "to 2 threads, but 1 wait"));
  CHECK(says(two([](Builder& b, Var m, Var c, ThreadId t) { b.lock(t, m); b.wait(t, c, m); b.event(t, Kind::Wake, 0, 0, c); }), "neither timed out nor spuriously"));
  CHECK(says(two([](Builder& b, Var m, Var c, ThreadId t) { b.lock(t, m); b.wait(t, c, m); b.event(t, Kind::Wake, 0, 0, c, kTimeout); b.event(t, Kind::Yield); }), "before the mutex was re-acquired"));
  CHECK(says(two([](Builder& b, Var m, Var c, ThreadId t) { b.lock(t, m); b.wait(t, c, m); b.event(t, Kind::Yield); }), "between a wait and its wake-up"));
}

TEST_CASE("threads live once, in order") {
  CHECK(with([](Builder& b) { auto t = b.spawn("w"); b.end(t); b.join(0, t); }) == "");
  CHECK(says(with([](Builder& b) { auto t = b.spawn("w"); b.join(0, t); }), "joins main/1 before its end"));
  CHECK(says(with([](Builder& b) { auto t = b.spawn("w"); b.end(t); b.join(0, t); b.join(0, t); }), "a second time"));
  CHECK(says(with([](Builder& b) { auto t = b.spawn("w"); b.end(t); b.event(t, Kind::Yield); }), "yield comes after the thread's end"));
  CHECK(says(with([](Builder& b) { auto t = b.create("w"); b.event(t, Kind::Yield); }), "before the thread's start"));
  CHECK(says(with([](Builder& b) { b.trace().threads.push_back({"main/1", 0, ""}); b.start(1); }), "before it was created"));
  CHECK(says(with([](Builder& b) { b.event(0, Kind::Exit); b.event(0, Kind::Yield); }), "after the end of the run"));
}

TEST_CASE("expressions are typed, and agree with the values") {
  auto sum = [](Builder& b, uint64_t written) {
    auto x = b.global("x", 4, 5);
    auto r = b.leaf(b.read(0, x, 5));
    b.write(0, x, written, 0, b.op(Op::Add, 32, r, b.constant(32, 2)));
  };
  CHECK(with([&](Builder& b) { sum(b, 7); }) == "");
  CHECK(says(with([&](Builder& b) { sum(b, 8); }), "writes 8, but its expression e3 evaluates to 7"));
  CHECK(says(with([](Builder& b) { auto e = b.constant(32, 4); b.pin(0, e, 5, b.site("a.c", 2)); }), "a.c:2:1: is pinned to 5, but its expression e1 evaluates to 4"));
  CHECK(says(with([](Builder& b) { b.branch(0, b.op(Op::Ult, 1, b.constant(8, 1), b.constant(8, 2)), 0); }), "decides 0"));
  CHECK(says(with([](Builder& b) { b.pin(0, b.op(Op::Add, 32, b.constant(8, 1), b.constant(8, 2)), 3); }), "operands of another width"));
  CHECK(says(with([](Builder& b) { auto x = b.global("x", 4); auto r = b.read(0, x, 0); b.read(0, x, 0); b.at(r + 1).leaf = b.leaf(r); }), "which is not its leaf"));
  CHECK(says(with([](Builder& b) { b.pin(0, b.expr(Op::Input, 32, 0, 0, 0, 0), 0); }), "bytes that its input does not have"));
  CHECK(says(with([](Builder& b) { b.event(0, Kind::Assert); b.at(1).expr = b.constant(1, 1); }), "asserts 0"));
}

TEST_CASE("values of old expressions are kept on disk") {
  ValueStore store(2);
  constexpr uint64_t n = 400000;
  for (uint64_t i = 0; i < n; ++i) store.push({i * 3, 32, ValueStore::Known});
  CHECK(store.spilled() > 200000);
  for (uint64_t i = 0; i < n; i += 997) CHECK(store.get(i).value == i * 3);
  CHECK(store.get(5).state == ValueStore::Known);
  CHECK(store.get(n).state == ValueStore::Lost);
}
