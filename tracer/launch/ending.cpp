#include "tracer/launch/ending.h"

#include <fmt/format.h>
#include <string.h>

namespace stem::launch {

namespace {

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

}  // namespace

std::string outcome_text(trace::Outcome outcome, int code) {
  switch (outcome) {
    case trace::Outcome::Exited: return fmt::format("exited with {}", code);
    case trace::Outcome::Signalled: return fmt::format("killed by {}", signal_name(code));
    case trace::Outcome::Deadlock: return "deadlock";
    case trace::Outcome::Livelock: return "livelock";
    case trace::Outcome::Diverged: return "left the schedule";
    case trace::Outcome::AssertFailed: return "an assertion failed";
    case trace::Outcome::Truncated: return "cut short";
  }
  return "?";
}

std::string ended_text(const RunResult& result) {
  if (result.timed_out) return "killed when its time was up";
  return outcome_text(result.exited ? trace::Outcome::Exited : trace::Outcome::Signalled, result.code);
}

}  // namespace stem::launch
