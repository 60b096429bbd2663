// One guided execution: a test is run under the compiled recorder, its trace is read, and what became of it is told.
#pragma once

#include <chrono>
#include <string>

#include "explorer/paths.h"
#include "trace/test_file.h"
#include "tracer/launch/launch.h"

namespace stem::explorer {

struct ExecuteOptions {
  std::string folder;  // for the trace
  std::chrono::milliseconds timeout{10000};
  bool expressions = true;
};

struct Execution {
  launch::RunResult run;
  trace::Trace trace;
  Paths paths;
  std::string error;       // not empty: nothing can be said about this run, because ...
  std::string divergence;  // the schedule could not be followed: where and why
  std::string failure;     // "killed by SIGSEGV", "deadlock"; empty: it ended well
};

// Whether a run ended in a way that nobody wants: a crash, a failed assertion, a deadlock, a livelock, no end at all.
bool is_failure(const launch::RunResult& run);

// Threads are switched where they block or the schedule says so, and nowhere else, unless the test has an option of
// that name: what a test does not ask for stays as simple as possible.
constexpr const char* kSwitchOption = "switch";
constexpr uint64_t kNoSwitches = uint64_t{1} << 40;

Execution execute(const trace::Test& test, const ExecuteOptions& options);

}  // namespace stem::explorer
