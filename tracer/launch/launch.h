// Runs a program under a recorder and says what came of it.
//
// One run: a scratch folder with the plan file (trace/plan.h), the program started with STEM_PLAN and STEM_RECORD set, its
// input, output, terminal, signals, exit code untouched; then the wait for the collectors, which hold a lock on their
// traces until these are complete. Children that the program starts (a test suite under make) record themselves the same
// way, so one run can leave several traces. Safe to use from several threads at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/event.h"
#include "trace/test_file.h"
#include "tracer/launch/summary.h"

namespace stem::launch {

struct Options {
  std::string mode = "default";   // default, random, pct, guided, parallel; a test with a schedule makes it guided
  uint64_t seed = 1;
  uint64_t switch_one_in = 0;     // default and random: a switch at one visible operation in so many; 0: the runtime's own
  uint32_t depth = 0;             // pct; 0: the runtime's own
  bool expressions = true;
  std::string output;             // folder that the traces go to; created if need be
  std::chrono::milliseconds timeout{0};  // then the program is killed; 0: never
  bool quiet = false;             // the program reads nothing and its output is thrown away
  bool foreground = false;        // signals sent to us go on to the program (one run at a time only)
  std::string stop;               // "last", or the number of a visible operation: __stem_stop_here() is called there
  std::string tracer;             // "compiled", "valgrind", "pin"; empty: as the program wants it (tracer/launch/tracer.h)
  std::vector<std::string> wrapper;  // put before the program: {"gdb", "--args"}; found by PATH
  std::vector<std::string> environment;  // NAME=VALUE, besides our own
};

struct RecordedProcess {
  std::string trace;              // path
  bool complete = true;           // false: its collector could not finish (disk full, killed)
  std::string unreadable;         // not empty: why not even the head of the trace can be read
  Summary summary;
};

struct RunResult {
  bool exited = false;            // else a signal ended it
  int code = 0;                   // exit code, or the signal
  bool timed_out = false;
  std::vector<RecordedProcess> processes;  // in the order in which they began
  std::chrono::milliseconds duration{0};

  // Of the process that ran test.program (the first of them).
  std::string trace;                     // empty: nothing was recorded
  trace::Outcome outcome = trace::Outcome::Truncated;
  bool diverged = false;                 // the schedule could not be followed; messages say where and why
  std::vector<std::string> messages;     // JSON, see tracer/launch/message.h
  std::string tool;                      // what the recorder's machinery (Valgrind) had to say, in its own words; mostly nothing
};

// Throws UserError when the program cannot be started. A program that records nothing gives no processes: whether that is
// an error is the caller's to say.
RunResult run(const trace::Test& test, const Options& options);

// What kind of file a program is; throws UserError when it cannot be read.
struct ElfFacts {
  bool elf = false;      // for this machine
  bool dynamic = false;  // has an interpreter: libraries can be loaded into it
  bool debug = false;    // debug information, inside or where gdb looks for it
  bool script = false;   // no program: begins with #!
  bool threads = false;  // makes threads by itself
};
ElfFacts elf_facts(const std::string& program);

// Whether STEM is inside an ELF file; throws UserError when the file cannot be read.
bool is_instrumented(const std::string& program);

// The build id of an ELF file as hex; empty if it has none.
std::string build_id(const std::string& program);

// Where `name` would be found by the shell; empty if nowhere.
std::string find_program(const std::string& name);

// <prefix>/lib/stem: the collector, the runtime, the plugin. From STEM_LIBDIR or beside our own executable.
std::string library_folder();

}  // namespace stem::launch
