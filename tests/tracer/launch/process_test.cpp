#include "tracer/launch/process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "trace/plan.h"
#include "tracer/launch/launch.h"
#include "tracer/launch/plan_file.h"
#include "util/error.h"

using namespace stem;
using namespace stem::launch;

namespace {

Ended run_shell(const std::string& script, int milliseconds = 0) {
  StartOptions options;
  options.command = {"sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.quiet = true;
  return wait_for(start(options), std::chrono::milliseconds(milliseconds));
}

}  // namespace

TEST_CASE("exit codes and signals come through") {
  Ended ended = run_shell("exit 7");
  CHECK(ended.exited);
  CHECK(ended.code == 7);
  ended = run_shell("kill -USR1 $$");
  CHECK_FALSE(ended.exited);
  CHECK(ended.code == SIGUSR1);
}

TEST_CASE("past its time a program is killed with what it started") {
  std::string marker = "/tmp/stem-process-" + std::to_string(getpid());
  Ended ended = run_shell("sh -c 'echo $$ >" + marker + "; sleep 600' ; true", 300);
  CHECK(ended.timed_out);
  FILE* file = fopen(marker.c_str(), "r");
  REQUIRE(file);
  int child = 0;
  CHECK(fscanf(file, "%d", &child) == 1);
  fclose(file);
  unlink(marker.c_str());
  for (int i = 0; i < 100 && is_alive(child); ++i) usleep(10000);
  CHECK_FALSE(is_alive(child));
}

TEST_CASE("what cannot be run is said") {
  StartOptions options;
  options.command = {"./no-such-program"};
  CHECK_THROWS_AS(start(options), UserError);
  options.command = {"/"};
  CHECK_THROWS_AS(start(options), UserError);
  options.command = {"sh"};
  options.cwd = "/no-such-folder";
  CHECK_THROWS_AS(start(options), UserError);
  CHECK(find_program("sh").ends_with("/sh"));
  CHECK(find_program("no-such-command-at-all").empty());
  CHECK_FALSE(is_instrumented("/proc/self/exe"));
  CHECK_FALSE(is_instrumented("/etc/passwd"));
}

TEST_CASE("a plan holds what the test says") {
  trace::Test test;
  test.inputs = {{"a", {1, 2, 3}}};
  test.schedule = {{"main", 2, 5, trace::Kind::Signal, "main/1"}, {"main/1", 1, 0, std::nullopt, ""}};
  test.feed = {{"main/2", "time", {9}}};
  test.options = {{"symbolic-argv", "1"}};
  Options options;
  options.mode = "random";
  std::string plan = plan_bytes(test, options, "/lib");
  stem_plan_header header;
  std::memcpy(&header, plan.data(), sizeof header);
  CHECK(header.magic == STEM_PLAN_MAGIC);
  std::vector<std::string> texts, threads;
  std::vector<stem_plan_step> steps;
  unsigned items = 0;
  size_t at = sizeof header;
  while (at < plan.size()) {
    stem_plan_item item;
    std::memcpy(&item, plan.data() + at, sizeof item);
    std::string payload = plan.substr(at + sizeof item, item.size);
    at += sizeof item + (item.size + 7) / 8 * 8;
    ++items;
    if (item.type == STEM_PLAN_THREAD) threads.push_back(payload);
    else if (item.type == STEM_PLAN_STEPS) {
      steps.resize(payload.size() / sizeof(stem_plan_step));
      std::memcpy(steps.data(), payload.data(), payload.size());
    } else texts.push_back(payload);
  }
  CHECK(at == plan.size());
  CHECK(items == header.items);
  REQUIRE(steps.size() == 2);
  CHECK(threads.at(steps[0].thread) == "main");
  CHECK(threads.at(steps[1].thread) == "main/1");
  CHECK(threads.at(steps[0].wakes - 1) == "main/1");
  CHECK(steps[0].kind == 1 + static_cast<unsigned>(trace::Kind::Signal));
  CHECK(steps[0].site_key == 5);
  auto has = [&](const std::string& text) { return std::find(texts.begin(), texts.end(), text) != texts.end(); };
  CHECK(has("mode=guided"));  // because there is a schedule
  CHECK(has("symbolic-argv=1"));
  CHECK(has(std::string("a\0\1\2\3", 5)));
}
