// Deadlocks that a run only just missed: threads that take the same locks in different orders.
//
// From one run: which lock each thread asked for while it held which others. Threads that close a cycle, and that no
// lock common to all keeps apart, are brought there: each runs up to its first lock of the cycle, then each takes it,
// and then each asks for the next one's. It is an attempt, not a proof: what threads do may depend on the order, and
// then the run goes on otherwise. No solver is asked; a cycle costs one execution.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "trace/test_file.h"

namespace stem::explorer {

struct OrderTest {
  std::string name;  // equal for the same cycle of source lines in other runs
  std::string what;  // for people
  trace::Test test;
};

std::vector<OrderTest> lock_orders(const trace::Trace& trace, size_t most = 16);

// Lost wake-ups: everybody who waits for a condition in some run is made to wait first, before anybody signals. How a
// thread comes to its wait is learned from whichever run and thread of the same function showed it; each new input is
// tried with that.
class WaitingOrders {
 public:
  // The tests that a run gives rise to, of inputs that were not tried with these waits.
  std::vector<OrderTest> add(const trace::Trace& trace);

 private:
  struct Operation {
    uint64_t site;
    trace::Kind kind;
  };
  struct Known {                       // a run of an input
    trace::Test test;                  // without schedule
    std::vector<trace::Step> creates;  // main up to its last creation of a thread before it waits for any
    std::vector<std::pair<std::string, std::string>> threads;  // path and function, in the order of creation
  };
  std::map<std::string, std::vector<Operation>> waits_;  // by function: what a thread does up to its first wait
  std::vector<Known> inputs_;
  std::set<std::string> seen_;
};

}  // namespace stem::explorer
