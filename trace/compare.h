// Are two runs the same? Event by event: thread by creation path, site by key, kind, object by identity and offset, size,
// value. A value that points into an object is compared as that object and offset: addresses differ between runs.
#pragma once

#include <optional>
#include <string>

#include "trace/reader.h"

namespace stem::trace {

struct CompareOptions {
  bool visible_only = false;  // leave out what no schedule counts: branches, pins, allocations, ...
};

struct Difference {
  uint64_t event = 0;  // index in the first run (with visible_only: among the visible ones)
  std::string what;    // in source terms
};

// Nothing if they are the same. Reads both to the first difference, in memory that does not grow with their length.
std::optional<Difference> compare(Reader& first, Reader& second, const CompareOptions& options = {});
std::optional<Difference> compare(const std::string& first, const std::string& second, const CompareOptions& options = {});

}  // namespace stem::trace
