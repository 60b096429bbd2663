// Cycles of locks, from runs that did not deadlock.
#include "explorer/orders.h"

#include <doctest/doctest.h>

using namespace stem;
using namespace stem::explorer;
using trace::Kind;

namespace {

struct Builder {
  trace::Trace trace;
  Builder(uint32_t threads) {
    trace.threads.push_back({"main", trace::kNone, "main"});
    event(0, Kind::Start);
    for (uint32_t t = 1; t <= threads; ++t) {
      trace.threads.push_back({"main/" + std::to_string(t), 0, "worker"});
      event(0, Kind::Create, 0, t);
    }
    for (uint32_t t = 1; t <= threads; ++t) event(t, Kind::Start);
  }
  void event(uint32_t thread, Kind kind, uint64_t addr = 0, uint64_t value = 0) {
    trace::Event e;
    e.thread = thread;
    e.kind = kind;
    e.addr = addr;
    e.value = value;
    trace::Site site;
    site.key = 100 + trace.sites.size();
    e.site = static_cast<uint32_t>(trace.sites.size());
    trace.sites.push_back(site);
    trace.events.push_back(e);
  }
  void section(uint32_t thread, std::vector<uint64_t> locks) {
    for (uint64_t lock : locks) event(thread, Kind::Lock, lock, 1);
    for (size_t i = locks.size(); i-- > 0;) event(thread, Kind::Unlock, locks[i], 0);
  }
};

uint64_t steps_of(const trace::Test& test, const std::string& thread) {
  uint64_t count = 0;
  for (const trace::Step& step : test.schedule)
    if (step.thread == thread) count += step.count;
  return count;
}

}  // namespace

TEST_CASE("two locks in different orders are brought together") {
  Builder b(2);
  b.section(1, {0xa, 0xb});
  b.section(2, {0xb, 0xa});
  const auto tests = lock_orders(b.trace);
  REQUIRE(tests.size() == 1);
  CHECK(steps_of(tests[0].test, "main") == 3);    // start, two creations
  CHECK(steps_of(tests[0].test, "main/1") == 2);  // start, the first lock
  CHECK(steps_of(tests[0].test, "main/2") == 2);
}

TEST_CASE("the same order, one thread, or a lock around both: nothing") {
  Builder same(2), alone(1), gate(2);
  same.section(1, {0xa, 0xb});
  same.section(2, {0xa, 0xb});
  CHECK(lock_orders(same.trace).empty());
  alone.section(1, {0xa, 0xb});
  alone.section(1, {0xb, 0xa});
  CHECK(lock_orders(alone.trace).empty());
  gate.section(1, {0xc, 0xa, 0xb});
  gate.section(2, {0xc, 0xb, 0xa});
  CHECK(lock_orders(gate.trace).empty());
}

TEST_CASE("three threads, each with its neighbour's lock") {
  Builder b(3);
  b.section(1, {0xa, 0xb});
  b.section(2, {0xb, 0xc});
  b.section(3, {0xc, 0xa});
  CHECK(lock_orders(b.trace).size() == 1);
}

TEST_CASE("whoever was seen to wait is made to wait first, once for each input") {
  Builder waits(2);
  waits.event(1, Kind::Lock, 0xa, 1);
  waits.event(1, Kind::Wait, 0xc, 0xa);
  waits.event(2, Kind::Signal, 0xc, 2);
  WaitingOrders orders;
  const auto first = orders.add(waits.trace);
  REQUIRE(first.size() == 1);
  CHECK(steps_of(first[0].test, "main/1") == 3);
  CHECK(steps_of(first[0].test, "main/2") == 3);  // the same function: start, lock, wait
  CHECK(orders.add(waits.trace).empty());
  waits.trace.inputs.push_back({"n", {1}});
  CHECK(orders.add(waits.trace).size() == 1);
}
