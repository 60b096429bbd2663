// Recordings without semantics: reads are pinned by rule (docs/binaries.md), not by what the program does with them.
#pragma once

#include <string>

#include "oracle/program.h"

namespace stem::oracle {

struct Rule {
  std::string wrong;     // or nothing
  bool skipped = false;  // too many states: nothing was compared
  size_t observed = 0;   // pairs of the program's variables in the recording,
  size_t allowed = 0;    // in executions that its pins allow,
  size_t meant = 0;      // and in those that the program itself has
};

// What is predicted from the recording must be what brute force finds in it, exactly, and nothing that brute force does not find
// when the same execution is recorded with all that the program means.
Rule check_rule(const Program& program, const trace::Trace& recorded, size_t limit);

}  // namespace stem::oracle
