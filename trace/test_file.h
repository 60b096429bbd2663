// A test: a program, its arguments, input values and a schedule - what `stem replay` runs, what an exploration stores and
// passes on. As JSON (`*.stemtest`), so that people can read and edit it:
//
//   {"stem_test": 1,
//    "program": {"path": "./prog", "build_id": "3fa9..."},
//    "argv": ["./prog", "-x"], "cwd": "/home/me/project",
//    "inputs": [{"name": "a", "bytes": "02000000"}],
//    "schedule": [{"thread": "main/1", "count": 3, "site": "00112233445566ff", "kind": "read", "wakes": "main/2"}],
//    "feed": [{"thread": "main", "what": "time", "bytes": "..."}],
//    "options": {"symbolic-argv": "1"}}
//
// A step lets one thread execute `count` visible operations; site and kind say what the last of them must be, wakes whom
// a signal wakes. After the schedule the run is free. The feed is what the outside world answered, per thread in order.
// Everything but stem_test and program may be missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/event.h"

namespace stem::trace {

struct Step {
  std::string thread;        // creation path
  uint32_t count = 1;        // visible operations
  uint64_t site = 0;         // key of the site of the last of them; 0: any
  std::optional<Kind> kind;  // kind of the last of them
  std::string wakes;         // creation path; empty: the oldest waiter

  bool operator==(const Step&) const = default;
};

struct Answer {
  std::string thread;  // creation path
  std::string what;
  std::vector<uint8_t> bytes;

  bool operator==(const Answer&) const = default;
};

struct Test {
  std::string program;
  std::string build_id;           // hex; empty: any build will do
  std::vector<std::string> argv;  // argv[0] included; empty: just the program
  std::string cwd;                // empty: the current folder
  std::vector<Input> inputs;
  std::vector<Step> schedule;
  std::vector<Answer> feed;
  std::map<std::string, std::string> options;  // further options of trace/plan.h: symbolic-argv, symbolic-stdin, ...
};

// Appends one visible operation to a schedule, joining it to the last step where nothing is lost by that.
void extend(std::vector<Step>& schedule, const std::string& thread, const Site* site, Kind kind, const std::string& wakes = "");

// The test that repeats a recorded run. With `last` only the events up to that index are scheduled; the run is free then.
Test test_of(const Trace& trace, size_t last = SIZE_MAX);

std::string to_json(const Test& test);
Test parse_test(const std::string& json, const std::string& file_name);  // throws UserError naming the file and the member
Test load_test(const std::string& file_name);
void save_test(const Test& test, const std::string& file_name);          // complete or not at all
bool is_test_file(const std::string& file_name);                         // by its content

std::string hex(const std::vector<uint8_t>& bytes);
std::optional<std::vector<uint8_t>> unhex(const std::string& text);

}  // namespace stem::trace
