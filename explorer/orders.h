// Deadlocks that a run only just missed: threads that take the same locks in different orders.
//
// From one run: which lock each thread asked for while it held which others. Threads that close a cycle, and that no lock
// common to all keeps apart, are brought there: each runs up to its first lock of the cycle, then each takes it, and then
// each asks for the next one's. It is an attempt, not a proof: what threads do may depend on the order, and then the run goes on
// otherwise. No solver is asked; a cycle costs one execution.
#pragma once

#include <string>
#include <vector>

#include "trace/test_file.h"

namespace stem::explorer {

struct OrderTest {
  std::string name;   // equal for the same cycle of source lines in other runs
  std::string what;   // for people
  trace::Test test;
};

std::vector<OrderTest> lock_orders(const trace::Trace& trace, size_t most = 16);

}  // namespace stem::explorer
