#include "explorer/execute.h"

#include "trace/checker.h"
#include "trace/reader.h"
#include "tracer/launch/ending.h"
#include "tracer/launch/message.h"
#include "util/error.h"

namespace stem::explorer {

bool is_failure(const launch::RunResult& run) {
  if (run.timed_out) return true;
  switch (run.outcome) {
    case trace::Outcome::AssertFailed:
    case trace::Outcome::Deadlock:
    case trace::Outcome::Livelock:
    case trace::Outcome::Signalled:
      return true;
    case trace::Outcome::Exited:
    case trace::Outcome::Diverged:
    case trace::Outcome::Truncated:
      break;
  }
  return !run.exited;
}

Execution execute(const trace::Test& test, const ExecuteOptions& options) {
  Execution out;
  launch::Options launch;
  if (!test.options.contains(kSwitchOption)) launch.switch_one_in = kNoSwitches;
  launch.expressions = options.expressions;
  launch.output = options.folder;
  launch.timeout = options.timeout;
  launch.quiet = true;
  try {
    out.run = launch::run(test, launch);
    if (is_failure(out.run)) out.failure = launch::ended_text(out.run);
    if (out.run.trace.empty()) {
      out.error = "the run recorded nothing: it " + launch::ended_text(out.run);
      return out;
    }
    if (out.run.timed_out) {  // its trace may be larger than memory, and is looked at only once, as a stream
      for (const launch::RecordedProcess& process : out.run.processes)
        if (process.trace == out.run.trace) out.trace = process.summary.names;
      return out;
    }
    out.trace = trace::load(out.run.trace);
    for (const std::string& message : out.run.messages)
      if (launch::message_kind(message) == "divergence") out.divergence = launch::render_message(message, out.trace);
    if (out.run.diverged && out.divergence.empty()) out.divergence = "the schedule could not be followed";
    if (const trace::CheckResult checked = trace::check(out.trace, 1); !checked.ok()) {
      out.error = "its trace has no meaning: " +
                  (checked.problems.empty() ? std::string() : trace::to_string(checked.problems[0]));
      return out;
    }
    out.paths = paths_of(out.trace);
  } catch (const UserError& error) {
    out.error = error.what();
  }
  return out;
}

}  // namespace stem::explorer
