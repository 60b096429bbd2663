#include "oracle/subjects.h"

namespace stem::oracle {

std::vector<Subject> subjects() {
  return {
      // The oracle alone: against the recording and against runs of the programs.
      {"none", [](const trace::Trace&, Meaning) { return std::set<EventPair>{}; }},
  };
}

}  // namespace stem::oracle
