// The def-use pairs that a recorded run shows, found by streaming its trace once: every byte remembers its last write, and
// vector clocks and lock sets say what stands between the write and the read. Memory grows with the memory the program
// touched, not with the length of the run; about a tenth of a microsecond an access.
#pragma once

#include <string>

#include "db/rows.h"
#include "trace/reader.h"

namespace stem::explorer {

// Fills everything but names.version, names.sources and what Run says of the file (hash, path). Site files are as in the trace.
db::RunData observed_flows(trace::Reader& reader);

}  // namespace stem::explorer
