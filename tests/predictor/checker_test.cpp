// The witness checker: it accepts what the solver finds, and refuses what was tampered with.
#include "predictor/checker.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "oracle/harness.h"
#include "trace/builder.h"

using namespace stem;
using predictor::Checker;
using predictor::kInitial;
using predictor::Meaning;
using predictor::Witness;
using trace::Kind;
using trace::Op;

namespace {

std::string refusal(const trace::Trace& trace, const Witness& witness, Meaning meaning = Meaning::Prefix) {
  const auto rejection = Checker(trace).check(witness, meaning);
  return rejection ? rejection->reason : "";
}
bool says(const std::string& reason, const char* part) { return reason.find(part) != std::string::npos; }

std::vector<uint32_t> recorded_until(uint64_t last) {
  std::vector<uint32_t> schedule;
  for (uint32_t e = 0; e <= last; ++e) schedule.push_back(e);
  return schedule;
}

Witness witness_of(const trace::Trace& trace, uint64_t w, uint64_t r, std::vector<uint32_t> schedule) {
  Witness witness{{static_cast<uint32_t>(w), static_cast<uint32_t>(r)}, trace.inputs, std::move(schedule), {}};
  predictor::assign_wakeups(trace, witness);
  return witness;
}

void move_before(std::vector<uint32_t>& schedule, uint64_t event, uint64_t before) {
  schedule.erase(std::find(schedule.begin(), schedule.end(), static_cast<uint32_t>(event)));
  schedule.insert(std::find(schedule.begin(), schedule.end(), static_cast<uint32_t>(before)), static_cast<uint32_t>(event));
}

}  // namespace

TEST_CASE("the recording is a witness of its own flows, and of no others") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const trace::Trace trace = oracle::interpret(oracle::generate(seed), seed);
    const Checker checker(trace);
    const auto observed = oracle::observed_pairs(trace);
    for (const auto& pair : oracle::candidates(trace)) {
      const Witness witness = witness_of(trace, pair.write, pair.read, recorded_until(pair.read));
      CHECK(checker.check(witness).has_value() == !observed.count(pair));
    }
  }
}

TEST_CASE("random tampering is never accepted for a pair that cannot be") {
  oracle::Random random(7);
  size_t accepted = 0, refused = 0;
  for (uint64_t seed = 100; seed < 160; ++seed) {
    const oracle::Program program = oracle::generate(seed);
    const trace::Trace trace = oracle::interpret(program, seed);
    const auto truth = oracle::enumerate(trace, oracle::all_inputs(program), 40000);
    if (!truth) continue;
    const Checker checker(trace), short_cut(trace, 0);  // what begins as recorded is executed again, and is not
    for (const auto& pair : oracle::candidates(trace)) {
      Witness witness = witness_of(trace, pair.write, pair.read, recorded_until(pair.read));
      for (int change = 0; change < 40; ++change) {
        auto& schedule = witness.schedule;
        const uint32_t at = random.below(static_cast<uint32_t>(schedule.size()));
        const uint32_t to = random.below(static_cast<uint32_t>(schedule.size()));
        switch (random.below(4)) {
          case 0: std::swap(schedule[at], schedule[to]); break;
          case 1: {
            const uint32_t event = schedule[at];
            schedule.erase(schedule.begin() + at);
            schedule.insert(schedule.begin() + std::min<uint32_t>(to, static_cast<uint32_t>(schedule.size())), event);
            break;
          }
          case 2:
            if (schedule.size() > 1 && at + 1 < schedule.size()) schedule.erase(schedule.begin() + at);
            break;
          case 3:
            for (auto& input : witness.inputs) input.bytes[0] = static_cast<uint8_t>(random.below(6));
            break;
        }
        predictor::assign_wakeups(trace, witness);
        const auto rejection = checker.check(witness), same = short_cut.check(witness);
        CHECK(rejection.has_value() == same.has_value());
        if (rejection && same) CHECK(rejection->reason == same->reason);
        if (rejection) {
          ++refused;
          if (random.one_in(3)) witness = witness_of(trace, pair.write, pair.read, recorded_until(pair.read));
        } else {
          ++accepted;
          CHECK(truth->prefix.count(pair) == 1);
        }
      }
    }
  }
  CHECK(accepted > 1000);
  CHECK(refused > 10000);
}

TEST_CASE("each way to break a witness is refused with its reason") {
  trace::Builder b;
  const auto x = b.global("x", 4), y = b.global("y", 4);
  const auto m = b.sync("m");
  const auto in = b.input("a", 1, 4);
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  b.lock(t1, m);
  const auto w1 = b.write(t1, x, 2, 0, b.op(Op::Add, 32, b.input_leaf(in, 32), b.constant(32, 1)));
  const auto unlock = b.unlock(t1, m);
  const auto lock2 = b.lock(t2, m);
  const auto r = b.read(t2, x, 2);
  b.branch(t2, b.op(Op::Eq, 1, b.leaf(r), b.constant(32, 2)), 1);
  const auto w2 = b.write(t2, y, 1);
  b.unlock(t2, m), b.end(t2);
  const auto last = b.read(t1, y, 1);
  b.end(t1);
  const auto end1 = b.size() - 1;
  b.join(0, t1);
  const auto trace = b.take();

  const Witness good = witness_of(trace, w2, last, recorded_until(last));
  CHECK(refusal(trace, good) == "");
  CHECK(refusal(trace, witness_of(trace, w1, r, recorded_until(r))) == "");

  Witness bad = good;
  bad.pair.write = kInitial;
  CHECK(says(refusal(trace, bad), "does not take a byte"));
  bad = good;
  bad.pair.read = static_cast<uint32_t>(w2);
  CHECK(says(refusal(trace, bad), "not a read"));
  bad = good;
  bad.schedule.pop_back();
  CHECK(says(refusal(trace, bad), "does not end with r"));
  bad = good;
  move_before(bad.schedule, lock2, unlock);
  CHECK(says(refusal(trace, bad), "main/1 holds it"));
  bad = good;
  bad.schedule.erase(std::find(bad.schedule.begin(), bad.schedule.end(), static_cast<uint32_t>(w1)));
  CHECK(says(refusal(trace, bad), "not the next event of its thread"));
  bad = good;
  bad.inputs[0].bytes[0] = 5;  // x becomes 6, and the branch goes the other way
  CHECK(says(refusal(trace, bad), "it gives 0 here, 1 in the recording"));
  bad = good;
  bad.inputs.clear();
  CHECK(says(refusal(trace, bad), "inputs"));
  bad = good;
  std::rotate(bad.schedule.begin(), std::find_if(bad.schedule.begin(), bad.schedule.end(),
              [&](uint32_t e) { return trace.events[e].thread == t2; }), bad.schedule.begin() + 6);
  CHECK(refusal(trace, bad) != "");
  bad = good;
  bad.schedule.back() = 1u << 30;
  CHECK(says(refusal(trace, bad), "no event"));
  bad = witness_of(trace, w1, r, recorded_until(r));
  CHECK(says(refusal(trace, bad, Meaning::Full), "not the whole trace"));
  CHECK(refusal(trace, witness_of(trace, w1, r, recorded_until(trace.events.size() - 1)), Meaning::Full) == "");
  bad = witness_of(trace, w1, r, recorded_until(trace.events.size() - 1));
  move_before(bad.schedule, trace.events.size() - 2, end1);  // the join before the child's end
  CHECK(says(refusal(trace, bad, Meaning::Full), "has not ended"));
}

TEST_CASE("wake-ups are checked one by one") {
  trace::Builder b;
  const auto x = b.global("x", 4);
  const auto m = b.sync("m"), c = b.sync("c");
  const auto t1 = b.spawn("one"), t2 = b.spawn("two");
  for (const auto t : {t1, t2}) b.lock(t, m), b.wait(t, c, m);
  const auto signal = b.signal(0, c, 1 + t1);
  const auto wake1 = b.wake(t1, c, 0);
  b.lock(t1, m), b.unlock(t1, m);
  const auto second = b.signal(0, c, 1 + t2);
  const auto wake2 = b.wake(t2, c, 0);
  b.lock(t2, m);
  const auto r = b.read(t2, x, 0);
  const auto trace = b.take();

  const Witness good = witness_of(trace, kInitial, r, recorded_until(r));
  REQUIRE(good.wakeups.size() == 2);
  CHECK(refusal(trace, good) == "");
  Witness bad = good;
  bad.wakeups.pop_back();
  CHECK(says(refusal(trace, bad), "nobody has woken it"));
  bad = good;
  bad.wakeups[1].wake = static_cast<uint32_t>(wake1);
  CHECK(says(refusal(trace, bad), "does not wait here"));
  bad = good;
  bad.wakeups[1].signal = bad.wakeups[0].signal;
  CHECK(says(refusal(trace, bad), "wakes two waiters"));
  bad = good;
  bad.wakeups[0].wake = static_cast<uint32_t>(wake2), bad.wakeups[1].wake = static_cast<uint32_t>(wake1);
  CHECK(says(refusal(trace, bad), "nobody has woken it"));  // t1 wakes before the second signal
  bad = good;
  move_before(bad.schedule, wake1, signal);
  CHECK(says(refusal(trace, bad), "nobody has woken it"));
  bad = good;
  bad.wakeups.push_back({static_cast<uint32_t>(r), static_cast<uint32_t>(wake2)});
  CHECK(says(refusal(trace, bad), "not in the schedule"));
  CHECK(second > signal);
}
