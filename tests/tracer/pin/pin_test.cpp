// The Pin tool without Pin: a program instrumented by hand calls the tool's analysis routines and replacement functions
// from real threads (subject/subject.cpp, fake/pin.H), is recorded by the real collector, and what it left is checked
// and replayed. What decides which instructions call them (instrument.cpp, main.cpp) needs Pin: docs/pin.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "trace/checker.h"
#include "trace/reader.h"
#include "trace/test_file.h"
#include "tracer/launch/launch.h"

namespace fs = std::filesystem;
using namespace stem;
using trace::Kind;

namespace {

struct Recorded {
  launch::RunResult run;
  trace::Trace trace;

  size_t count(Kind kind) const {
    return static_cast<size_t>(
        std::count_if(trace.events.begin(), trace.events.end(), [&](const trace::Event& e) { return e.kind == kind; }));
  }
  // How often another thread goes on.
  size_t switches() const {
    size_t n = 0;
    for (size_t i = 1; i < trace.events.size(); ++i) n += trace.events[i].thread != trace.events[i - 1].thread;
    return n;
  }
};

Recorded record(const std::string& scenario, const std::string& mode = "default", uint64_t seed = 1,
                const std::vector<trace::Step>& schedule = {}) {
  static const bool found = setenv("STEM_LIBDIR", STEM_BUILD_DIR "/lib/stem", 1) == 0;
  REQUIRE(found);
  static int number = 0;
  const fs::path folder =
      fs::temp_directory_path() / ("stem-pin-test-" + std::to_string(getpid()) + "-" + std::to_string(number++));
  trace::Test test;
  test.program = STEM_BUILD_DIR "/tests/pin_subject";
  test.argv = {test.program, scenario};
  test.schedule = schedule;
  launch::Options options;
  options.tracer = "compiled";  // it is started as it is: the recorder is linked into it
  options.mode = schedule.empty() ? mode : "guided";
  options.seed = seed;
  options.switch_one_in = 10;
  options.output = folder.string();
  options.quiet = true;
  options.timeout = std::chrono::seconds(120);
  Recorded result;
  result.run = launch::run(test, options);
  REQUIRE_MESSAGE(!result.run.trace.empty(), scenario << " left no trace; code " << result.run.code);
  result.trace = trace::load(result.run.trace);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return result;
}

void well_formed(const Recorded& r) {
  const trace::CheckResult result = trace::check(r.trace);
  for (const trace::Problem& problem : result.problems) FAIL_CHECK(trace::to_string(problem));
}

}  // namespace

TEST_CASE("every scenario runs one thread at a time, and leaves a well-formed trace") {
  for (const char* scenario : {"locked", "instruction", "atomics", "queue", "phases", "memory", "outside"})
    for (const char* mode : {"default", "random", "pct"}) {
      CAPTURE(scenario);
      CAPTURE(mode);
      const Recorded r = record(scenario, mode, 3);
      CHECK(r.run.exited);
      CHECK(r.run.code == 0);
      CHECK(r.trace.outcome == trace::Outcome::Exited);
      CHECK(r.trace.meta.recorder == "pin");
      well_formed(r);
    }
}

TEST_CASE("switches are injected, and every read sees the write that was recorded last") {
  const Recorded r = record("racy", "random", 7);
  well_formed(r);
  CHECK(r.switches() > 50);
  CHECK(r.count(Kind::Read) >= 400);
  CHECK(r.count(Kind::Branch) == 400);
}

TEST_CASE("what an instruction does is one step: nothing is lost") {
  const Recorded r = record("instruction", "random", 5);
  CHECK(r.run.code == 0);
  for (size_t i = 0; i + 1 < r.trace.events.size(); ++i) {
    const trace::Event &read = r.trace.events[i], &write = r.trace.events[i + 1];
    if (read.kind != Kind::Read || read.thread == 0) continue;
    CHECK(write.kind == Kind::Write);
    CHECK(write.thread == read.thread);
    CHECK(write.value == read.value + 1);
  }
}

TEST_CASE("atomic operations carry both values, and a compare-and-swap that failed is a read") {
  const Recorded r = record("atomics", "random", 11);
  CHECK(r.count(Kind::Rmw) == 200);  // 100 that succeed, 100 exchanges
  for (const trace::Event& e : r.trace.events)
    if (e.kind == Kind::Rmw && (e.flags & trace::kPinned)) CHECK(e.value2 == e.value + 1);
}

TEST_CASE("accesses are named by lines of the program, not by addresses") {
  const Recorded r = record("lost");
  for (const trace::Event& e : r.trace.events)
    if (e.kind == Kind::Read || e.kind == Kind::Write) {
      CHECK(r.trace.sites[e.site].line > 0);
      CHECK(r.trace.sites[e.site].file.ends_with("subject.cpp"));
    }
}

TEST_CASE("a recorded run is repeated by its schedule") {
  for (const char* scenario : {"racy", "queue", "phases", "atomics"}) {
    CAPTURE(scenario);
    const Recorded first = record(scenario, "random", 23);
    const Recorded again = record(scenario, "guided", 1, trace::test_of(first.trace).schedule);
    CHECK_FALSE(again.run.diverged);
    REQUIRE(first.trace.events.size() == again.trace.events.size());
    for (size_t i = 0; i < first.trace.events.size(); ++i) {
      const trace::Event &a = first.trace.events[i], &b = again.trace.events[i];
      CHECK(a.kind == b.kind);
      CHECK(a.thread == b.thread);
      if (a.kind == Kind::Branch) CHECK(a.value == b.value);
    }
  }
}

// Between its read and its write the other thread does both: one increment is lost.
TEST_CASE("a schedule is enforced at accesses: the update that is lost is the schedule's choice") {
  const Recorded plain = record("lost");
  size_t events_of_main = 0;  // until both threads are there
  for (const trace::Event& e : plain.trace.events) {
    if (e.thread == 0 && e.kind == Kind::Join) break;
    events_of_main += e.thread == 0 && trace::is_visible(e.kind);
  }
  const auto main_first = static_cast<uint32_t>(events_of_main);
  const Recorded lost =
      record("lost", "guided", 1,
             {{"main", main_first, 0, {}, ""}, {"main/1", 2, 0, Kind::Read, ""}, {"main/2", 4, 0, Kind::End, ""}});
  CHECK_FALSE(lost.run.diverged);
  CHECK(lost.run.code == 1);
  const Recorded kept =
      record("lost", "guided", 1,
             {{"main", main_first, 0, {}, ""}, {"main/1", 4, 0, Kind::End, ""}, {"main/2", 4, 0, Kind::End, ""}});
  CHECK_FALSE(kept.run.diverged);
  CHECK(kept.run.code == 2);
}

TEST_CASE("a schedule that cannot be followed is a divergence, never a hang") {
  const Recorded other = record("lost", "guided", 1, {{"main", 2, 0, Kind::Unlock, ""}});
  CHECK(other.run.diverged);
  CHECK(other.run.code >= 1);
  const Recorded nobody = record("lost", "guided", 1, {{"main/7", 1, 0, {}, ""}});
  CHECK(nobody.run.diverged);
}

TEST_CASE("a deadlock is seen, not suffered") {
  bool seen = false;
  for (uint64_t seed = 1; seed <= 20 && !seen; ++seed) {
    const Recorded r = record("deadlock", "random", seed);
    seen = r.trace.outcome == trace::Outcome::Deadlock;
  }
  CHECK(seen);
}

TEST_CASE("a thread that waits in a system call lets others run") {
  const Recorded r = record("outside", "default", 1);
  CHECK(r.run.code == 0);
  CHECK(r.count(Kind::End) == 2);
}
