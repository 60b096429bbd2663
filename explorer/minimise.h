// Makes the schedule of a failure as simple as it gets: first the shortest beginning that still fails (the rest is left
// to the scheduler, which switches only where threads block), then without one switch after the other. Every candidate
// is an execution of the program, a few milliseconds each because nothing but events is recorded.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "explorer/import.h"
#include "trace/test_file.h"

namespace stem::explorer {

struct MinimiseOptions {
  std::string folder;  // for traces; removed
  std::chrono::milliseconds timeout{10000};
  unsigned most = 60;  // executions
  const std::atomic<bool>* interrupt = nullptr;
};

struct Minimised {
  trace::Test test;
  int64_t executions = 0;
};

Minimised minimise(const trace::Test& test, const ImportedFinding& finding, const MinimiseOptions& options);

}  // namespace stem::explorer
