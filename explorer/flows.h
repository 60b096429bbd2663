// The def-use pairs that a recorded run shows, found by streaming its trace once: every byte remembers its last write,
// and vector clocks and lock sets say what stands between the write and the read. Memory grows with the memory the
// program touched, not with the length of the run; about a tenth of a microsecond an access.
#pragma once

#include <string>

#include "db/rows.h"
#include "trace/reader.h"

namespace stem::explorer {

// Who wants to see what goes by: accesses, where reads take their values from, branches.
struct FlowObserver {
  virtual ~FlowObserver() = default;
  virtual void access(const trace::Reader& reader, const trace::Event& event, bool write) = 0;
  virtual void flow(const trace::Reader& reader, db::DefKind kind, uint64_t def_key, const trace::Event& use) = 0;
  virtual void branch(const trace::Reader& reader, const trace::Event& event) = 0;
};

// Fills everything but names.version, names.sources and what Run says of the file (hash, path). Site files are as in
// the trace.
db::RunData observed_flows(trace::Reader& reader, FlowObserver* observer = nullptr);

}  // namespace stem::explorer
