#include "trace/test_file.h"

#include <doctest/doctest.h>

#include "util/error.h"

using namespace stem;
using namespace stem::trace;

namespace {

std::string error_of(const std::string& json) {
  try {
    parse_test(json, "t.stemtest");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a test survives JSON") {
  Test test;
  test.program = "./prog";
  test.build_id = "3fa9";
  test.argv = {"./prog", "-x", "two words"};
  test.cwd = "/tmp";
  test.inputs = {{"a", {2, 0, 0, 0}}, {"empty", {}}};
  test.schedule = {{"main", 7, 0, std::nullopt, ""}, {"main/1", 1, 0xfedcba9876543210u, Kind::Signal, "main/2"}};
  test.feed = {{"main", "time", {1, 2, 3}}};
  test.options = {{"symbolic-argv", "1"}};
  Test back = parse_test(to_json(test), "t.stemtest");
  CHECK(back.program == test.program);
  CHECK(back.build_id == test.build_id);
  CHECK(back.argv == test.argv);
  CHECK(back.cwd == test.cwd);
  REQUIRE(back.inputs.size() == 2);
  CHECK(back.inputs[0].name == "a");
  CHECK(back.inputs[0].bytes == test.inputs[0].bytes);
  CHECK(back.inputs[1].bytes.empty());
  CHECK(back.schedule == test.schedule);
  CHECK(back.feed == test.feed);
  CHECK(back.options == test.options);
  CHECK(to_json(back) == to_json(test));
}

TEST_CASE("what is wrong with a test file is said with its place") {
  CHECK(error_of("") .find("not a test file") != std::string::npos);
  CHECK(error_of("[]").find("must be an object") != std::string::npos);
  CHECK(error_of("{}").find("no \"stem_test\"") != std::string::npos);
  CHECK(error_of(R"({"stem_test":2,"program":{"path":"x"}})").find("version 2") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1})").find("program is missing") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{}})").find("program.path is missing") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"inputs":[{"name":"a","bytes":"0"}]})").find("inputs[0].bytes") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"schedule":[{"thread":"main"},{"count":1}]})").find("schedule[1].thread") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"schedule":[{"thread":"main","count":0}]})").find("schedule[0].count") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"schedule":[{"thread":"main","kind":"jump"}]})").find("schedule[0].kind") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"schedule":[{"thread":"main","kind":"branch"}]})").find("never scheduled") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"schedule":{}})").find("must be a list") != std::string::npos);
  CHECK(error_of(R"({"stem_test":1,"program":{"path":"x"},"options":{"a":1}})").find("options.a") != std::string::npos);
}

TEST_CASE("a recorded run becomes steps: joined per thread, cut where a signal wakes somebody") {
  Trace run;
  run.meta.program = "./prog";
  run.sites.resize(3);
  run.sites[1].key = 11;
  run.sites[2].key = 22;
  run.threads = {{"main", kNone, ""}, {"main/1", 0, "f"}};
  auto add = [&](Kind kind, ThreadId thread, SiteId site, uint64_t value = 0) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.site = site;
    event.value = value;
    run.events.push_back(event);
  };
  run.nondets = {{"time", {9}}};
  add(Kind::Start, 0, 0);
  add(Kind::Write, 0, 1);
  add(Kind::Branch, 0, 2);      // not visible: not counted
  add(Kind::Nondet, 0, 0, 0);
  add(Kind::Wait, 1, 2);
  add(Kind::Signal, 0, 2, 2);   // wakes main/1
  add(Kind::Read, 0, 1);
  Test test = test_of(run);
  std::vector<Step> expected = {{"main", 2, 11, Kind::Write, ""},
                                {"main/1", 1, 22, Kind::Wait, ""},
                                {"main", 1, 22, Kind::Signal, "main/1"},
                                {"main", 1, 11, Kind::Read, ""}};
  CHECK(test.schedule == expected);
  CHECK(test.feed == std::vector<Answer>{{"main", "time", {9}}});
  CHECK(test_of(run, 1).schedule == std::vector<Step>{{"main", 2, 11, Kind::Write, ""}});
}
