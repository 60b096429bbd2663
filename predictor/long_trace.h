// The analysis of a trace of any length, in memory that does not grow with it.
//
//   1. it is read once: checked, and its static pairs counted, with some instances of each (survey.h);
//   2. parts of it (parts.h) that hold such instances are loaded, to show what they can: most of what is feasible;
//   3. all parts are, one after the other: every instance of what is left is looked at, in windows.
//
// A witness is a witness. What no window of any part shows is infeasible within windows, and where a part left
// something open, or time was up, it is unknown.
#pragma once

#include <string>

#include "predictor/analysis.h"

namespace stem::predictor {

struct LongAnalysis {
  // The run's tables, and of its events those that the result speaks of: AnalysisResult::numbers has their numbers.
  trace::Trace trace;
  AnalysisResult result;
};

// part: events that are held in memory at once. Throws UserError if the trace is not well-formed.
LongAnalysis analyze_parts(const std::string& path, const AnalysisOptions& options, uint64_t part);

}  // namespace stem::predictor
