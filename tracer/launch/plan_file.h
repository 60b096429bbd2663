// Writes a test and the options of a run as the plan that the runtime maps (trace/plan.h).
#pragma once

#include <string>

#include "trace/test_file.h"
#include "tracer/launch/launch.h"

namespace stem::launch {

std::string plan_bytes(const trace::Test& test, const Options& options, const std::string& library_folder);

}  // namespace stem::launch
