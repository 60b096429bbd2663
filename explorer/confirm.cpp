#include "explorer/confirm.h"

#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "predictor/rounds.h"
#include "trace/reader.h"
#include "tracer/launch/ending.h"
#include "tracer/launch/launch.h"
#include "tracer/launch/tracer.h"
#include "tracer/launch/message.h"
#include "util/error.h"

namespace stem::explorer {

namespace fs = std::filesystem;
using predictor::PairResult;
using predictor::State;

namespace {

std::string program_of(const trace::Trace& trace) {
  const fs::path program = trace.meta.program;
  return program.is_relative() && !trace.meta.cwd.empty() ? (fs::path(trace.meta.cwd) / program).string() : program.string();
}

struct Scratch {  // a folder that goes away
  std::string path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stem-confirm-XXXXXX").string();
    if (!mkdtemp(name.data())) user_error("cannot create a folder in {}; set TMPDIR to one that can be written", fs::temp_directory_path().string());
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
};

struct Outcome {
  State state = State::Implicit;
  std::string detail;
  std::string failure;
};

// The tables of a run that has been read to its end.
trace::Trace names_of(const trace::Reader& run) {
  trace::Trace names;
  names.meta = run.meta();
  names.sites = run.sites();
  names.threads = run.threads();
  names.variables = run.variables();
  for (uint32_t id = 0; id < run.object_count(); ++id) names.objects.push_back(run.object(id));
  return names;
}

// A long schedule takes its time: a thousand operations get ten milliseconds more.
std::chrono::milliseconds time_for(const trace::Test& test, std::chrono::milliseconds least) {
  uint64_t operations = 0;
  for (const trace::Step& step : test.schedule) operations += step.count;
  return least + std::chrono::milliseconds(operations / 100);
}

Outcome replay(const trace::Trace& trace, const PairResult& pair, const trace::Test& test, const std::string& folder,
               std::chrono::milliseconds timeout) {
  launch::Options options;
  options.mode = "guided";
  options.output = folder;
  options.quiet = true;
  options.tracer = trace.meta.recorder;
  options.timeout = timeout;
  try {
    const launch::RunResult run = launch::run(test, options);
    if (run.trace.empty()) return {State::Diverged, "the replay recorded nothing", ""};
    trace::Reader seen(run.trace);
    const bool failed = !run.timed_out && (!run.exited || run.outcome == trace::Outcome::AssertFailed || run.outcome == trace::Outcome::Deadlock ||
                                           run.outcome == trace::Outcome::Livelock);
    if (predictor::shows(seen, trace, pair)) return {State::Confirmed, "", failed ? launch::ended_text(run) : ""};
    for (const std::string& message : run.messages) {
      const std::string kind = launch::message_kind(message);
      if (kind == "divergence" || kind == "deadlock") return {State::Diverged, launch::render_message(message, names_of(seen)), ""};
    }
    if (run.timed_out) return {State::Diverged, fmt::format("the replay was still running after {} s", timeout.count() / 1000), ""};
    return {State::Diverged, "the replay followed the schedule but the use took another value", ""};
  } catch (const UserError& error) {
    return {State::Diverged, error.what(), ""};
  }
}

}  // namespace

std::string cannot_replay(const trace::Trace& trace) {
  if (trace.meta.recorder != "compiled" && trace.meta.recorder != "valgrind") return "its recorder cannot replay";
  if (trace.meta.options.contains("forked")) return "it is of a forked child, and begins in the middle of the program";
  const std::string program = program_of(trace);
  std::error_code error;
  if (program.empty() || !fs::is_regular_file(program, error)) return fmt::format("{} is not there", program.empty() ? "the program" : program);
  try {
    if (const std::string why = launch::why_not_recorded(program, trace.meta.recorder); !why.empty()) return why;
    if (!trace.meta.build_id.empty() && launch::build_id(program) != trace.meta.build_id)
      return fmt::format("{} has been rebuilt since", program);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

void confirm(const trace::Trace& trace, predictor::AnalysisResult& result, const ConfirmOptions& options) {
  std::vector<PairResult*> todo;
  for (PairResult& pair : result.pairs)
    if (pair.state == State::Implicit && pair.witness) todo.push_back(&pair);
  if (todo.empty()) return;
  Scratch scratch;
  if (!options.keep.empty()) fs::create_directories(options.keep);
  const unsigned workers = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  size_t done = 0;
  predictor::run_rounds<Outcome>(
      todo.size(), workers, 4 * workers,
      [&](unsigned, size_t i) {
        if (options.interrupt && *options.interrupt) return Outcome{};
        const std::string folder = fmt::format("{}/{}", scratch.path, i);
        const trace::Test test = predictor::test_of(trace, *todo[i]->witness);
        trace::save_test(test, fmt::format("{}/pair-{}.stemtest", options.keep.empty() ? scratch.path : options.keep, i + 1));
        Outcome outcome = replay(trace, *todo[i], test, folder, time_for(test, options.timeout));
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        return outcome;
      },
      [&](size_t i, Outcome outcome) {
        todo[i]->state = outcome.state;
        if (!outcome.detail.empty()) todo[i]->detail = outcome.detail;
        todo[i]->failure = outcome.failure;
        if (options.progress) options.progress(++done, todo.size());
        return !(options.interrupt && *options.interrupt);
      });
}

}  // namespace stem::explorer
