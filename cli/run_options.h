// What `record` and `replay` share: the values of inputs on the command line, and what a run came to, in words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "trace/event.h"
#include "tracer/launch/ending.h"
#include "tracer/launch/launch.h"

namespace stem::cli {

// NAME=VALUE. VALUE: an integer (decimal, 0x..., negative), "text" or text that is no number, or hex:0a0b0c for bytes.
// Integers are little-endian, 8 bytes; the program takes as many as its input has.
trace::Input parse_input(const std::string& text);

using launch::ended_text;
using launch::outcome_text;

// Ends this process as the program ended: exit code, or the same signal (without a second core file).
[[noreturn]] void end_like(const launch::RunResult& result);

// "1 event", "2 events"; 12,345 for large ones
std::string counted(uint64_t number, const std::string& thing);

}  // namespace stem::cli
