// How a run ended, in words: "exited with 3", "killed by SIGSEGV", "deadlock", ...
#pragma once

#include <string>

#include "tracer/launch/launch.h"

namespace stem::launch {

std::string outcome_text(trace::Outcome outcome, int code);
std::string ended_text(const RunResult& result);

}  // namespace stem::launch
