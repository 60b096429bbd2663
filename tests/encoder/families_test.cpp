// Each constraint family on a trace of its own, with the answers worked out by hand.
#include <doctest/doctest.h>

#include <cerrno>

#include "encoder/encoder.h"
#include "trace/builder.h"

using namespace stem;
using encoder::Answer;
using encoder::kInitial;
using encoder::Meaning;
using trace::Kind;
using trace::Op;

namespace {

bool feasible(const trace::Trace& trace, uint64_t w, uint64_t r, Meaning meaning = Meaning::Prefix, bool paper = false) {
  encoder::Options options;
  options.meaning = meaning;
  options.paper = paper;
  encoder::Encoder encoder(trace, options);
  const Answer answer = encoder.decide(static_cast<uint32_t>(w), static_cast<uint32_t>(r));
  REQUIRE(answer.kind != Answer::Kind::Unknown);
  return answer.kind == Answer::Kind::Feasible;
}

// Two workers; what each test puts between is up to it.
struct Two {
  trace::Builder b;
  trace::Var x = b.global("x", 4), y = b.global("y", 4);
  trace::ThreadId t1 = b.spawn("one"), t2 = b.spawn("two");
  trace::Trace done() {
    b.end(t1), b.end(t2);
    b.join(0, t1), b.join(0, t2);
    return b.take();
  }
};

}  // namespace

TEST_CASE("program order, creation and join") {
  trace::Builder b;
  const auto x = b.global("x", 4);
  const auto before = b.write(0, x, 1);
  const auto t = b.spawn("worker");
  const auto read = b.read(t, x, 1);
  const auto own = b.write(t, x, 2);
  b.end(t);
  const auto meanwhile = b.write(0, x, 3);
  b.join(0, t);
  const auto last = b.read(0, x, 3);
  const auto trace = b.take();
  CHECK(feasible(trace, before, read));
  CHECK(feasible(trace, meanwhile, read));
  CHECK_FALSE(feasible(trace, kInitial, read));
  CHECK_FALSE(feasible(trace, own, read));
  CHECK(feasible(trace, own, last));
  CHECK(feasible(trace, meanwhile, last));
  CHECK_FALSE(feasible(trace, before, last));
}

TEST_CASE("mutual exclusion: no value escapes a section that overwrites it") {
  Two p;
  const auto m = p.b.sync("m");
  p.b.lock(p.t1, m);
  const auto w1 = p.b.write(p.t1, p.x, 1);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  p.b.unlock(p.t1, m);
  const auto unlocked = p.b.read(p.t2, p.x, 2);
  p.b.lock(p.t2, m);
  const auto locked = p.b.read(p.t2, p.x, 2);
  p.b.unlock(p.t2, m);
  const auto trace = p.done();
  CHECK(feasible(trace, w1, unlocked));
  CHECK_FALSE(feasible(trace, w1, locked));
  CHECK(feasible(trace, w2, locked));
  CHECK(feasible(trace, kInitial, locked));
}

TEST_CASE("a lock that is held when r comes still excludes: relaxed at acquisitions only") {
  Two p;
  const auto m = p.b.sync("m");
  p.b.lock(p.t1, m);
  const auto w1 = p.b.write(p.t1, p.x, 1);
  const auto r1 = p.b.read(p.t1, p.y, 0);
  p.b.unlock(p.t1, m);
  p.b.lock(p.t2, m);
  const auto w2 = p.b.write(p.t2, p.y, 1);
  const auto r2 = p.b.read(p.t2, p.x, 1);
  p.b.unlock(p.t2, m);
  const auto trace = p.done();
  CHECK(feasible(trace, w2, r1));  // the second section first, whole
  CHECK(feasible(trace, w1, r2));
  CHECK(feasible(trace, kInitial, r1));
  CHECK(feasible(trace, kInitial, r2));
}

TEST_CASE("recursive locks: only the outermost section counts") {
  Two p;
  const auto m = p.b.sync("m");
  p.b.lock(p.t1, m);
  const auto w1 = p.b.write(p.t1, p.x, 1);
  p.b.event(p.t1, Kind::Lock, 0, 2, m);
  p.b.event(p.t1, Kind::Unlock, 0, 1, m);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  p.b.unlock(p.t1, m);
  p.b.lock(p.t2, m);
  const auto r = p.b.read(p.t2, p.x, 2);
  p.b.unlock(p.t2, m);
  const auto trace = p.done();
  CHECK_FALSE(feasible(trace, w1, r));
  CHECK(feasible(trace, w2, r));
}

TEST_CASE("a failed trylock happens while another holds the lock") {
  Two p;
  const auto m = p.b.sync("m");
  p.b.lock(p.t1, m);
  const auto w1 = p.b.write(p.t1, p.x, 1);
  p.b.event(p.t2, Kind::LockFail, 0, EBUSY, m, trace::kTry);
  const auto r = p.b.read(p.t2, p.x, 1);
  p.b.unlock(p.t1, m);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  const auto trace = p.done();
  CHECK(feasible(trace, w1, r));
  CHECK(feasible(trace, w2, r));
  CHECK(feasible(trace, kInitial, r));  // locked, failed, read, and only then written
  trace::Trace free = trace;            // the same, but the attempt is before anybody could hold it
  for (auto& e : free.events)
    if (e.kind == Kind::Lock) e.kind = Kind::Yield;
  CHECK_FALSE(feasible(free, w1, r));
}

TEST_CASE("read-write locks: readers share, writers do not") {
  for (const bool writer : {false, true}) {
    Two p;
    const auto l = p.b.sync("l");
    p.b.event(p.t1, writer ? Kind::WrLock : Kind::RdLock, 0, 0, l);
    const auto w1 = p.b.write(p.t1, p.x, 1);
    const auto w2 = p.b.write(p.t1, p.x, 2);
    p.b.event(p.t1, Kind::RwUnlock, 0, 0, l);
    p.b.event(p.t2, Kind::RdLock, 0, 0, l);
    const auto r = p.b.read(p.t2, p.x, 2);
    p.b.event(p.t2, Kind::RwUnlock, 0, 0, l);
    const auto trace = p.done();
    CHECK(feasible(trace, w1, r) == !writer);
    CHECK(feasible(trace, w2, r));
  }
}

TEST_CASE("condition variables: a signal wakes one, a broadcast all, a timed-out wait needs none") {
  enum class How { Signal, TwoSignals, Broadcast, Timeout };
  for (const How how : {How::Signal, How::TwoSignals, How::Broadcast, How::Timeout}) {
    trace::Builder b;
    const auto x = b.global("x", 4);
    const auto m = b.sync("m"), c = b.sync("c");
    const auto t1 = b.spawn("one"), t2 = b.spawn("two");
    for (const auto t : {t1, t2}) b.lock(t, m), b.wait(t, c, m);
    const auto w = b.write(0, x, 1);
    if (how == How::Broadcast) b.broadcast(0, c, 2);
    if (how == How::Signal || how == How::TwoSignals) b.signal(0, c, 1 + t1);
    uint64_t w2 = 0;
    if (how == How::TwoSignals) w2 = b.write(0, x, 2), b.signal(0, c, 1 + t2);
    uint64_t read[2];
    for (const auto t : {t1, t2}) {
      b.wake(t, c, 0);
      if (how == How::Timeout || (how == How::Signal && t == t2)) b.at(b.size() - 1).flags = trace::kTimeout;
      b.lock(t, m);
      read[t - 1] = b.read(t, x, 1);
      b.unlock(t, m);
      b.end(t);
    }
    const auto trace = b.take();
    CHECK(feasible(trace, w, read[0]));
    CHECK(feasible(trace, w, read[1]));
    CHECK(feasible(trace, kInitial, read[0]) == (how == How::Timeout));
    CHECK(feasible(trace, kInitial, read[1]) == (how == How::Timeout || how == How::Signal));
    if (how == How::TwoSignals) CHECK(feasible(trace, w2, read[0]));
  }
}

TEST_CASE("two waiters and two signals: whoever wakes first, both cannot see what comes before the first signal") {
  trace::Builder b;
  const auto x = b.global("x", 4), y = b.global("y", 4);
  const auto m = b.sync("m"), c = b.sync("c");
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  for (const auto t : {t1, t2}) b.lock(t, m), b.wait(t, c, m);
  b.signal(0, c, 1 + t1);
  const auto between = b.write(0, x, 1);
  b.signal(0, c, 1 + t2);
  b.wake(t1, c, 0), b.lock(t1, m);
  const auto read1 = b.read(t1, x, 1);
  const auto told = b.write(t1, y, 1);
  b.unlock(t1, m), b.end(t1);
  b.wake(t2, c, 0), b.lock(t2, m);
  const auto saw = b.read(t2, y, 1);
  b.pin(t2, b.leaf(saw), 1);  // t1 was first
  const auto read2 = b.read(t2, x, 1);
  b.unlock(t2, m), b.end(t2);
  const auto trace = b.take();
  CHECK(feasible(trace, kInitial, read1));
  CHECK_FALSE(feasible(trace, kInitial, read2));  // both woken: the second signal, and the write before it, are past
  CHECK(feasible(trace, between, read2));
  CHECK(feasible(trace, told, saw));
  CHECK(feasible(trace, kInitial, saw));
}

TEST_CASE("semaphores count") {
  Two p;
  const auto s = p.b.sync("s");
  const auto w1 = p.b.write(p.t1, p.x, 1);
  p.b.event(p.t1, Kind::SemPost, 0, 0, s);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  p.b.event(p.t1, Kind::SemPost, 0, 0, s);
  p.b.event(p.t2, Kind::SemWait, 0, 0, s);
  const auto r1 = p.b.read(p.t2, p.x, 2);
  p.b.event(p.t2, Kind::SemWait, 0, 0, s);
  const auto r2 = p.b.read(p.t2, p.x, 2);
  p.b.event(p.t2, Kind::SemFail, 0, EAGAIN, s, trace::kTry);
  const auto r3 = p.b.read(p.t2, p.x, 2);
  const auto trace = p.done();
  CHECK(feasible(trace, w1, r1));
  CHECK(feasible(trace, w2, r1));
  CHECK_FALSE(feasible(trace, kInitial, r1));
  CHECK_FALSE(feasible(trace, w1, r2));
  CHECK(feasible(trace, w2, r2));
  CHECK(feasible(trace, w2, r3));
}

TEST_CASE("barriers and once") {
  Two p;
  const auto bar = p.b.sync("barrier"), once = p.b.sync("once");
  const auto w1 = p.b.write(p.t1, p.x, 1);
  p.b.event(p.t1, Kind::OnceBegin, 0, 0, once);
  const auto init = p.b.write(p.t1, p.y, 1);
  p.b.event(p.t1, Kind::OnceEnd, 0, 0, once);
  p.b.event(p.t1, Kind::BarrierArrive, 0, 0, bar);
  const auto early = p.b.read(p.t2, p.x, 1);
  p.b.event(p.t2, Kind::OncePass, 0, 0, once);
  const auto passed = p.b.read(p.t2, p.y, 1);
  p.b.event(p.t2, Kind::BarrierArrive, 0, 0, bar);
  p.b.event(p.t2, Kind::BarrierLeave, 0, 0, bar, trace::kSerial);
  p.b.event(p.t1, Kind::BarrierLeave, 0, 0, bar);
  const auto late = p.b.read(p.t2, p.x, 1);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  const auto trace = p.done();
  CHECK(feasible(trace, kInitial, early));
  CHECK_FALSE(feasible(trace, w2, early));
  CHECK_FALSE(feasible(trace, kInitial, late));
  CHECK(feasible(trace, w1, late));
  CHECK(feasible(trace, w2, late));
  CHECK_FALSE(feasible(trace, kInitial, passed));
  CHECK(feasible(trace, init, passed));
}

TEST_CASE("atomic sections and read-modify-writes are not torn") {
  Two p;
  p.b.event(p.t1, Kind::AtomicBegin);
  const auto w1 = p.b.write(p.t1, p.x, 1);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  p.b.event(p.t1, Kind::AtomicEnd);
  const auto a1 = p.b.rmw(p.t1, p.y, 0, 1);
  p.b.event(p.t2, Kind::AtomicBegin);
  const auto r = p.b.read(p.t2, p.x, 2);
  p.b.event(p.t2, Kind::AtomicEnd);
  const auto a2 = p.b.rmw(p.t2, p.y, 1, 2);
  const auto trace = p.done();
  CHECK_FALSE(feasible(trace, w1, r));
  CHECK(feasible(trace, w2, r));
  CHECK(feasible(trace, a2, a1));
  CHECK(feasible(trace, a1, a2));
  CHECK_FALSE(feasible(trace, a1, a1));
}

TEST_CASE("a compare-and-swap that succeeded is one event with its pin") {
  Two p;  // t1: x = 1. t2: if cas(x, 0, 5). t1 reads x at the end.
  const auto cas = p.b.rmw(p.t2, p.x, 0, 5);
  p.b.pin(p.t2, p.b.op(Op::Eq, 1, p.b.leaf(cas), p.b.constant(32, 0)), 1);
  const auto w = p.b.write(p.t1, p.x, 1);
  const auto r = p.b.read(p.t1, p.x, 1);
  const auto trace = p.done();
  CHECK(feasible(trace, w, r));
  CHECK(feasible(trace, w, cas));         // what r reads is free: here the swap fails
  CHECK_FALSE(feasible(trace, cas, r));   // it would have to succeed on 1
}

TEST_CASE("accesses of mixed sizes are matched byte by byte") {
  trace::Builder b;
  const auto object = b.object(trace::ObjectKind::Global, "u", 8);
  b.object(object).zeroed = true;
  const auto whole = b.part(object, 0, 4, ""), low = b.part(object, 0, 1, ".low"), high = b.part(object, 2, 2, ".high");
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  const auto w = b.write(t1, whole, 0x01020304);
  const auto wl = b.write(t1, low, 9);
  const auto wh = b.write(t1, high, 0x0707);
  const auto r = b.read(t2, whole, 0x07070309);
  b.branch(t2, b.op(Op::Eq, 1, b.leaf(r), b.constant(32, 0x07070309)), 1);
  const auto rl = b.read(t2, low, 9);
  const auto rh = b.read(t2, high, 0x0707);
  b.end(t1), b.end(t2);
  const auto trace = b.take();
  CHECK(feasible(trace, w, r));
  CHECK(feasible(trace, wl, r));
  CHECK(feasible(trace, wh, r));
  CHECK(feasible(trace, kInitial, r));
  CHECK(feasible(trace, wl, rl));
  CHECK_FALSE(feasible(trace, w, rl));  // the branch needs all three writes
  CHECK_FALSE(feasible(trace, w, rh));
  CHECK(feasible(trace, wh, rh));
}

TEST_CASE("PREFIX frees r and what follows; FULL does not") {
  Two p;
  const auto w = p.b.write(p.t1, p.x, 3);
  const auto r = p.b.read(p.t2, p.x, 3);
  p.b.branch(p.t2, p.b.op(Op::Slt, 1, p.b.constant(32, 2), p.b.leaf(r)), 1);
  const auto later = p.b.read(p.t2, p.x, 3);
  const auto trace = p.done();
  CHECK(feasible(trace, kInitial, r));
  CHECK_FALSE(feasible(trace, kInitial, r, Meaning::Full));
  CHECK_FALSE(feasible(trace, kInitial, later));
  CHECK(feasible(trace, w, r, Meaning::Full));
  CHECK_FALSE(feasible(trace, kInitial, r, Meaning::Full, true));  // the paper's formula means FULL
  CHECK(feasible(trace, w, r, Meaning::Full, true));
}

TEST_CASE("opaque values and pinned reads hold the trace where it is not understood") {
  Two p;
  const auto w1 = p.b.write(p.t1, p.x, 1);
  const auto w2 = p.b.write(p.t1, p.x, 2);
  const auto r = p.b.read(p.t2, p.x, 1);
  const auto w3 = p.b.write(p.t2, p.y, 7, 0, p.b.expr(Op::Opaque, 32, p.b.leaf(r), 0, 0, 7));
  const auto r2 = p.b.read(p.t1, p.y, 7);
  p.b.pin(p.t1, p.b.leaf(r2), 7);
  const auto after = p.b.read(p.t1, p.x, 2);
  const auto pinned = p.b.event(p.t2, Kind::Read, 0, 2, p.x, trace::kPinned);
  const auto end = p.b.read(p.t2, p.y, 7);
  const auto trace = p.done();
  CHECK(feasible(trace, w2, r));
  CHECK(feasible(trace, w3, r2));
  CHECK(feasible(trace, w2, after));
  CHECK(feasible(trace, w1, pinned));  // r's own pin does not bind,
  CHECK(feasible(trace, w3, end));
  CHECK_FALSE(feasible(trace, w2, r, Meaning::Full));  // but r must have been 1 for the 7 that t1 is pinned to
  CHECK_FALSE(feasible(trace, w1, pinned, Meaning::Full));
}

TEST_CASE("a released object is not used") {
  trace::Builder b;
  const auto whole = b.alloc(0, "heap(main:1)", 4, 0, trace::kZeroed);
  const auto field = b.part(whole.object, 0, 4, "");
  const auto flag = b.global("flag", 4);
  const auto t = b.spawn("worker");
  const auto w = b.write(t, field, 1);
  const auto r = b.read(t, field, 1);
  const auto f = b.read(t, flag, 0);
  b.free(0, whole);
  const auto raised = b.write(0, flag, 1);
  b.end(t);
  const auto trace = b.take();
  CHECK(feasible(trace, w, r));
  CHECK_FALSE(feasible(trace, kInitial, r));
  CHECK(feasible(trace, raised, f));  // the release may come after both uses and before the flag is read
}

TEST_CASE("an update's own pins bind with it, also where a part of the trace ends between them") {
  for (const bool pinned : {true, false}) {
    // A compare-and-swap that succeeds only if it reads 0: it cannot come between the write of 5 and the read.
    Two p;
    const auto swap = p.b.rmw(p.t2, p.x, 0, 1);
    p.b.write(p.t1, p.x, 5);
    const auto r = p.b.read(p.t1, p.x, 5);
    if (pinned) p.b.pin(p.t2, p.b.op(Op::Eq, 1, p.b.leaf(swap), p.b.constant(32, 0)), 1);
    const auto trace = p.done();
    const encoder::Index index(trace);
    for (const uint64_t last : {r + 1, r + 2}) {
      encoder::Scope scope;
      for (uint32_t e = 0; e < last; ++e) scope.events.push_back(e);
      encoder::Encoder encoder(index, {}, scope);
      const Answer answer = encoder.decide(static_cast<uint32_t>(swap), static_cast<uint32_t>(r));
      CHECK(answer.kind == (pinned ? Answer::Kind::Infeasible : Answer::Kind::Feasible));
    }
  }
}

TEST_CASE("a wait gives back a recursive mutex at once, and takes it back to the same depth") {
  Two p;
  const auto m = p.b.sync("m"), c = p.b.sync("c");
  p.b.lock(p.t1, m);
  p.b.event(p.t1, Kind::Lock, 0, 2, m);
  p.b.event(p.t1, Kind::Wait, 0, m.addr, c);
  p.b.event(p.t2, Kind::Signal, 0, 1 + p.t1, c);
  p.b.event(p.t1, Kind::Wake, 0, 1 + p.t2, c);
  p.b.event(p.t1, Kind::Lock, 0, 2, m);
  p.b.event(p.t1, Kind::Unlock, 0, 1, m);
  const auto inside = p.b.write(p.t1, p.x, 1);  // still locked
  p.b.write(p.t1, p.x, 2);
  p.b.event(p.t1, Kind::Unlock, 0, 0, m);
  p.b.lock(p.t2, m);
  const auto r = p.b.read(p.t2, p.x, 2);
  p.b.unlock(p.t2, m);
  const auto trace = p.done();
  CHECK_FALSE(feasible(trace, inside, r));
  CHECK(feasible(trace, kInitial, r));
}

TEST_CASE("what uses an object comes after its allocation") {
  Two p;
  p.b.write(p.t1, p.x, 1);
  const auto heap = p.b.alloc(p.t1, "heap(make:1)", 8);
  p.b.read(p.t2, p.b.part(heap.object, 0, 4, ""), 0);
  const auto r = p.b.read(p.t2, p.x, 1);
  CHECK_FALSE(feasible(p.done(), kInitial, r));
}
