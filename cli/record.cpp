// `stem record`: runs a program, keeps the trace, passes everything else through. Nothing of ours goes to standard output;
// one line a recorded process to standard error.
#include <fmt/core.h>
#include <signal.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/run_options.h"
#include "explorer/import.h"
#include "tracer/launch/launch.h"
#include "tracer/launch/message.h"
#include "tracer/launch/state.h"
#include "tracer/launch/summary.h"
#include "tracer/launch/tracer.h"
#include "util/error.h"

namespace stem::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(Examples:
  stem-cc -g -O1 prog.c -o prog -pthread          compile with STEM inside
  stem record ./prog data.txt                     record one run into .stem/
  stem record --mode random --seed 7 ./prog       another schedule; the same seed gives the same one
  stem record --runs 20 --mode pct ./prog         twenty runs, seeds 1 to 20
  stem record --input n=3 --input 'key="abc"' ./prog     values for stem_input() and its like
  stem record --test witness.stemtest             inputs and schedule of a test file
  stem record make check                          every instrumented program that a command starts
  gcc -g -O2 prog.c -o prog && stem record ./prog   a program as it is: under Valgrind (docs/binaries.md)
  stem record --tracer valgrind make check        every program with debug information that a command starts

The program's output, exit code and signals are its own. Traces: .stem/traces/, listed in .stem/runs.jsonl.
Without the launcher: STEM_RECORD=folder ./prog)";

struct RecordOptions {
  launch::Options run;
  std::vector<std::string> inputs;
  std::string schedule, test, output, state;
  bool symbolic_argv = false, parallel = false, no_expressions = false, any_build = false;
  uint64_t symbolic_stdin = 0;
  std::vector<std::string> symbolic_files;
  uint64_t runs = 1;
  double timeout = 0;
  CLI::App* command = nullptr;
};

// The program and its arguments: what the options left over, or what the test says.
trace::Test make_test(const RecordOptions& options) {
  trace::Test test;
  if (!options.test.empty()) test = trace::load_test(options.test);
  std::vector<std::string> words = program_words(*options.command);
  if (!words.empty()) {
    test.program = words[0];
    test.argv = words;
    test.cwd.clear();
  }
  if (test.program.empty()) user_error("stem record needs a program: stem record ./prog args");
  if (!options.schedule.empty()) {
    trace::Test other = trace::load_test(options.schedule);
    test.schedule = other.schedule;
    test.build_id = other.build_id;
  }
  // An input that is given here replaces all of that name in the test.
  std::vector<trace::Input> given;
  for (const std::string& text : options.inputs) given.push_back(parse_input(text));
  std::erase_if(test.inputs, [&](const trace::Input& old) {
    for (const trace::Input& input : given)
      if (input.name == old.name) return true;
    return false;
  });
  test.inputs.insert(test.inputs.end(), given.begin(), given.end());
  if (options.symbolic_argv) test.options["symbolic-argv"] = "1";
  if (options.symbolic_stdin) test.options["symbolic-stdin"] = std::to_string(options.symbolic_stdin);
  for (const std::string& file : options.symbolic_files) {
    std::string& all = test.options["symbolic-file"];
    all += (all.empty() ? "" : "\n") + file;
  }
  return test;
}

// Where a trace goes that does not belong into .stem/: a folder, or a file (a second trace gets a number).
std::string place(const std::string& trace, const std::string& output) {
  fs::path target = output;
  if (output.ends_with('/') || fs::is_directory(target)) {
    fs::create_directories(target);
    target /= fs::path(trace).filename();
  }
  fs::path free = target;
  for (int i = 2; fs::exists(free); ++i) free = fmt::format("{}.{}", target.string(), i);
  std::error_code error;
  fs::rename(trace, free, error);
  if (error) {
    error.clear();
    fs::copy_file(trace, free, error);
    if (error) user_error("cannot write {}: {}; the trace is {}", free.string(), error.message(), trace);
    fs::remove(trace);
  }
  return free.string();
}

// Keeps one trace and says so. False: it is not whole.
bool keep(const RecordOptions& options, const trace::Test& test, const launch::Options& run, const launch::RecordedProcess& process,
          const launch::RunResult& result, bool only) {
  const launch::Summary& summary = process.summary;
  std::string ended = only && summary.outcome == trace::Outcome::Truncated ? ended_text(result) : outcome_text(summary.outcome, summary.code);

  launch::RunEntry entry;
  entry.trace = process.trace;
  entry.program = summary.names.meta.program.empty() ? test.program : summary.names.meta.program;
  entry.argv = summary.names.meta.argv;
  entry.mode = summary.names.meta.mode;
  entry.seed = run.seed;
  entry.outcome = ended;
  entry.events = summary.events;
  entry.threads = summary.names.threads.size();
  entry.test = options.test.empty() ? options.schedule : options.test;
  std::string name;
  if (options.output.empty()) {
    entry = launch::State(options.state).add(entry);
    explorer::store_trace(explorer::state_at(launch::State(options.state).folder()), entry.trace, static_cast<int64_t>(entry.id));
    name = std::to_string(entry.id);
  } else {
    name = entry.trace = place(process.trace, options.output);
  }
  for (const std::string& message : summary.messages) fmt::print(stderr, "stem: {}\n", launch::render_message(message, summary.names));
  fmt::print(stderr, "stem: {}{}: {}, {}, {}; next: stem replay {}\n", options.output.empty() ? "run " : "", name, counted(entry.events, "event"),
             counted(entry.threads, "thread"), ended, name);
  if (process.complete) return true;
  std::error_code error;
  fs::space_info space = fs::space(fs::path(entry.trace).parent_path().empty() ? "." : fs::path(entry.trace).parent_path(), error);
  if (!error && space.available < (1u << 20))
    fmt::print(stderr, "stem: the disk is full: {} holds the run only up to there; make room and record again\n", entry.trace);
  else
    fmt::print(stderr, "stem: {} is not complete: {}; what it holds up to there can be used\n", entry.trace,
               process.unreadable.empty() ? "its collector could not write on (a limit on file sizes?) or was killed" : process.unreadable);
  return false;
}

void record(const RecordOptions& options) {
  trace::Test test = make_test(options);
  launch::Options run = options.run;
  if (options.parallel) run.mode = "parallel";
  if (!test.schedule.empty()) run.mode = "guided";
  run.expressions = !options.no_expressions;
  run.output = options.output.empty() ? launch::State(options.state).traces() : fs::path(options.output).parent_path().string();
  if (run.output.empty()) run.output = ".";
  run.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  run.foreground = true;
  std::string binary = launch::find_program(test.program);
  if (!test.build_id.empty() && !binary.empty() && !options.any_build) {
    std::string found = launch::build_id(binary);
    if (found != test.build_id)
      user_error("{} was made for another program or another build of it: build id {}, {} has {}. Record anew, or try it anyway with --any-build",
                 options.schedule.empty() ? options.test : options.schedule, test.build_id, binary, found.empty() ? "none" : found);
  }

  const launch::Tracer tracer = launch::choose_tracer(binary, run.tracer);
  const bool as_it_is = tracer != launch::Tracer::Compiled;
  if (as_it_is && run.mode == "parallel") user_error("--parallel needs a program compiled with stem-cc: {} runs one thread at a time", launch::tracer_name(tracer));
  if (as_it_is && (!test.inputs.empty() || !test.options.empty()))
    user_error("inputs need a program compiled with stem-cc: {} records no expressions, so nothing can be solved for them", launch::tracer_name(tracer));

  launch::RunResult worst;
  worst.exited = true;
  bool whole = true;
  for (uint64_t i = 0; i < options.runs; ++i) {
    launch::RunResult result = launch::run(test, run);
    fmt::print(stderr, "{}", result.tool);
    for (const auto& process : result.processes) whole &= keep(options, test, run, process, result, result.processes.size() == 1);
    if (result.processes.empty()) {
      if (tracer == launch::Tracer::Valgrind) {
        fmt::print(stderr, "stem: nothing was recorded: {} makes no threads, has no debug information and started nothing that has; it {}.\nstem: compile with -g what is to be recorded\n",
                   test.program, ended_text(result));
        throw CLI::RuntimeError(2);
      }
      bool elf = !binary.empty() && !launch::is_instrumented(binary);
      fmt::print(stderr, "stem: nothing was recorded: {} {}; it {}.\nstem: compile with stem-cc or stem-c++ in place of the compiler, for example CC=stem-cc make; or record it as it is, compiled with -g, by --tracer valgrind\n",
                 test.program, elf ? "has no STEM inside and started nothing that has" : "ended before its recorder began", ended_text(result));
      throw CLI::RuntimeError(2);
    }
    if (!result.exited || result.code != 0 || result.timed_out) worst = result;
    if (!result.exited && (result.code == SIGINT || result.code == SIGTERM || result.code == SIGQUIT)) break;
    ++run.seed;
  }
  if (!whole) throw CLI::RuntimeError(2);
  end_like(worst);
}

}  // namespace

void add_record(CLI::App& app) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* command = app.add_subcommand("record", "Run a program and record it: stem record [options] [--] PROGRAM [arguments]");
  options->command = command;
  command->prefix_command();
  command->footer(kExamples);
  command->add_option("--mode", options->run.mode, "How threads are scheduled")
      ->check(CLI::IsMember({"default", "random", "pct", "parallel"}))
      ->capture_default_str();
  command->add_option("--seed", options->run.seed, "Of the scheduler's choices")->capture_default_str();
  command->add_option("--switch", options->run.switch_one_in, "default, random: switch threads at one visible operation in N")->type_name("N");
  command->add_option("--depth", options->run.depth, "pct: number of priority changes")->type_name("N");
  command->add_option("--tracer", options->run.tracer, "compiled: by stem-cc; valgrind, pin: for a program as it is, compiled with -g (default: as the program needs)")
      ->check(CLI::IsMember({"compiled", "valgrind", "pin"}));
  command->add_flag("--parallel", options->parallel, "Threads run freely on all cores (short for --mode parallel)");
  command->add_option("--schedule", options->schedule, "Follow the schedule of this test file, then run on")->type_name("FILE");
  command->add_option("--test", options->test, "Inputs, schedule and program of this test file")->type_name("FILE");
  command->add_flag("--any-build", options->any_build, "Follow a schedule that was made for another build");
  command->add_option("--input", options->inputs, "Value of an input: an integer, \"text\", or hex:0a0b")->type_name("NAME=VALUE")->take_all()->allow_extra_args(false);
  command->add_flag("--symbolic-argv", options->symbolic_argv, "The program's arguments are inputs");
  command->add_option("--symbolic-stdin", options->symbolic_stdin, "The first N bytes of standard input are inputs")->type_name("N");
  command->add_option("--symbolic-file", options->symbolic_files, "What is read from this file is an input")->type_name("FILE")->take_all()->allow_extra_args(false);
  command->add_flag("--no-expressions", options->no_expressions, "Record events only: cheaper; values count as fixed");
  command->add_option("--runs", options->runs, "Record so many runs, with seeds counting up")->check(CLI::PositiveNumber)->type_name("N");
  command->add_option("--timeout", options->timeout, "Kill the program after so many seconds")->type_name("SECONDS");
  command->add_option("-o,--output", options->output, "Write the trace to this file or folder/ instead of .stem/")->type_name("PATH");
  command->add_option("--state", options->state, "Use this folder instead of .stem")->type_name("FOLDER");
  command->callback([options] { record(*options); });
}

}  // namespace stem::cli
