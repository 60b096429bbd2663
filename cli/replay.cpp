// `stem replay`: runs a recorded run or a test again, under its schedule, inputs and answers of the outside world, and
// says whether the same happened. Differences are findings: exit code 1.
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/run_options.h"
#include "cli/state.h"
#include "db/store.h"
#include "trace/compare.h"
#include "trace/reader.h"
#include "tracer/launch/launch.h"
#include "tracer/launch/message.h"
#include "tracer/launch/state.h"
#include "tracer/launch/tracer.h"
#include "util/error.h"

namespace stem::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(Examples:
  stem replay 3                        the run that `stem record` called 3, event by event
  stem replay p12                      the witness of a pair, as `stem report` names it; f3 is a finding, r5 a run, t7 a test
  stem replay run.stemtrace            a trace file
  stem replay witness.stemtest         a test: its inputs and schedule; after them the run is free
  stem replay --gdb witness.stemtest   in the debugger, stopped just before the last operation of the schedule
  stem replay --gdb --event 41 3       stopped just before event 41 of run 3 (stem trace dump shows the numbers)
  stem replay --write-test t.stemtest 3    the run as a test file, to edit

Exit code 0: the same happened. 1: it did not, and the first difference was told.)";

struct ReplayOptions {
  std::string what, state, output, write_test;
  bool gdb = false, any_build = false, quiet = false;
  std::vector<std::string> gdb_batch;
  uint64_t event = UINT64_MAX;
  double timeout = 0;
};

// What is to be replayed: a test, and the trace to compare with if there is one.
struct Subject {
  trace::Test test;
  std::string trace;
  std::string name;
  uint64_t events = 0;
  bool cut = false;  // the recording does not reach the end of the run
  bool expressions = true;
  std::string tracer;  // that recorded it; empty: as the program needs
};

// Streams the trace: its schedule is far smaller than its events. `stop`: how many visible operations precede event
// `until`.
void read_trace(Subject& subject, uint64_t until, uint64_t* stop) {
  trace::Reader reader(subject.trace);
  trace::Test& test = subject.test;
  uint64_t visible = 0;
  for (trace::Reader::Item item; (item = reader.next()) != trace::Reader::Item::End;) {
    if (item != trace::Reader::Item::Event) continue;
    const trace::Event& event = reader.event();
    if (event.thread >= reader.threads().size()) continue;
    const std::string& thread = reader.threads()[event.thread].path;
    if (reader.event_index() == until && stop) *stop = visible;
    if (event.kind == trace::Kind::Nondet && event.value < reader.nondets().size()) {
      const trace::Nondet& answer = reader.nondets()[event.value];
      test.feed.push_back({thread, answer.what, answer.bytes});
    }
    if (!trace::is_visible(event.kind)) continue;
    ++visible;
    std::string wakes;
    if (event.kind == trace::Kind::Signal && event.value != 0 && event.value <= reader.threads().size())
      wakes = reader.threads()[event.value - 1].path;
    trace::extend(test.schedule, thread, event.site ? &reader.sites()[event.site] : nullptr, event.kind, wakes);
  }
  if (until != UINT64_MAX && until >= reader.recovery().events)
    user_error("--event {}: the trace has only {}", until, counted(reader.recovery().events, "event"));
  if (reader.meta().program.empty())
    user_error("{}: {} before it says which program it is of: nothing can be replayed", reader.path(),
               reader.recovery().why);
  if (reader.meta().options.contains("forked"))
    user_error("{} is of a forked child: it begins in the middle of the program and cannot be replayed by itself. Replay the run of its parent", subject.name);
  test.program = reader.meta().program;
  test.build_id = reader.meta().build_id;
  test.argv = reader.meta().argv;
  test.cwd = reader.meta().cwd;
  test.inputs = reader.inputs();
  test.options = reader.meta().options;
  subject.events = reader.recovery().events;
  subject.cut = !reader.recovery().complete || reader.outcome() == trace::Outcome::Truncated;
  subject.expressions = reader.meta().semantics;
  subject.tracer = reader.meta().recorder;
}

Subject find_subject(const ReplayOptions& options, uint64_t* stop) {
  Subject subject;
  subject.name = options.what;
  bool number = !options.what.empty() && options.what.find_first_not_of("0123456789") == std::string::npos;
  std::string file = options.what;
  if (number && !fs::exists(file)) {
    launch::State state(options.state);
    auto run = state.find(std::stoull(options.what.substr(0, 18)));
    if (!run)
      user_error("no run {} in {}; {}/runs.jsonl lists them, `stem record` makes them", options.what, state.folder(),
                 state.folder());
    file = run->trace;
    subject.name = "run " + options.what;
  }
  // p12, f3, t7, r5: what the database calls a pair, a finding, a test, a run.
  if (!number && !fs::exists(file) && file.size() > 1 &&
      std::string_view("pftr").find(file[0]) != std::string_view::npos &&
      file.find_first_not_of("0123456789", 1) == std::string::npos) {
    const State project = options.state.empty() ? find_state() : state_at(options.state);
    db::Store store(project.database, db::Mode::Read);
    const db::Store::Replayable found = store.replayable(options.what);
    if (!found.test_json.empty()) {
      subject.test = trace::parse_test(found.test_json, options.what);
      return subject;
    }
    file = absolute_path(project, found.trace_path);
  }
  if (!fs::exists(file))
    user_error("cannot read {}: no such file, and not the number of a run nor the id of a pair (p12) or finding (f3)",
               file);
  if (trace::is_test_file(file)) {
    subject.test = trace::load_test(file);
  } else {
    subject.trace = file;
    read_trace(subject, options.event, stop);
  }
  return subject;
}

void check_program(const Subject& subject, bool any_build) {
  const trace::Test& test = subject.test;
  std::string binary = launch::find_program(test.program);
  if (binary.empty()) user_error("cannot replay {}: {}: no such file", subject.name, test.program);
  if (const std::string why = launch::why_not_recorded(binary, subject.tracer); !why.empty())
    user_error("cannot replay {}: {}", subject.name, why);
  if (test.build_id.empty() || any_build) return;
  std::string found = launch::build_id(binary);
  if (found != test.build_id)
    user_error(
        "{} was recorded from another build of {}: build id {}, now {}. Record again, or try it anyway with "
        "--any-build",
        subject.name, test.program, test.build_id, found.empty() ? "none" : found);
}

// Stops at __stem_stop_here, then goes up to the program's own frame.
std::vector<std::string> gdb_command(const ReplayOptions& options) {
  std::vector<std::string> words = {"gdb", "-q"};
  auto execute = [&](const std::string& command) { words.insert(words.end(), {"-ex", command}); };
  if (!options.gdb_batch.empty()) words.push_back("-batch");
  execute("set startup-with-shell off");
  execute("set breakpoint pending on");
  execute("handle SIGUSR1 SIGUSR2 SIGALRM SIGCHLD nostop noprint pass");
  execute("tbreak __stem_stop_here");
  execute("run");
  // Up past the runtime's frames (installed, they have no lines) and the C library's.
  execute(
      "python\nf = gdb.newest_frame()\n"
      "def ours(f):\n  table = f.find_sal().symtab\n  return not table or 'tracer/runtime/' in table.filename\n"
      "while f.older() and ours(f): f = f.older()\nf.select()");
  execute("frame");
  for (const std::string& command : options.gdb_batch) execute(command);
  words.push_back("--args");
  return words;
}

// The scratch folder of a replay whose trace nobody asked to keep.
class Temporary {
 public:
  Temporary() : path_((fs::temp_directory_path() / "stem-replay-XXXXXX").string()) {
    if (!mkdtemp(path_.data()))
      user_error("cannot create a folder in {}: is TMPDIR right?", fs::temp_directory_path().string());
  }
  ~Temporary() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void replay(const ReplayOptions& options) {
  uint64_t stop = UINT64_MAX;
  Subject subject = find_subject(options, &stop);
  if (!options.write_test.empty()) {
    trace::save_test(subject.test, options.write_test);
    fmt::print(stderr, "stem: {} as a test: {}\n", subject.name, options.write_test);
    return;
  }
  check_program(subject, options.any_build);

  launch::Options run;
  run.mode = "guided";
  run.foreground = true;
  run.expressions = subject.expressions;
  run.tracer = subject.tracer;
  run.quiet = options.quiet;
  run.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  if (options.gdb)
    if (const auto tracer = launch::choose_tracer(launch::find_program(subject.test.program), "");
        tracer != launch::Tracer::Compiled)
      user_error("--gdb needs a program compiled with stem-cc: this one runs under {}", launch::tracer_name(tracer));
  if (options.gdb) {
    run.wrapper = gdb_command(options);
    run.stop = stop == UINT64_MAX ? "last" : std::to_string(stop);
  }
  Temporary scratch;
  run.output = scratch.path();
  launch::RunResult result = launch::run(subject.test, run);
  fmt::print(stderr, "{}", result.tool);
  if (options.gdb) return;
  if (result.trace.empty())
    user_error("the replay of {} recorded nothing: {} {}", subject.name, subject.test.program, ended_text(result));
  const launch::RecordedProcess* process = nullptr;
  for (const auto& one : result.processes)
    if (one.trace == result.trace) process = &one;
  if (!process->unreadable.empty()) user_error("the replay's own trace cannot be read: {}", process->unreadable);

  for (const std::string& message : result.messages)
    if (!subject.trace.empty() || launch::message_kind(message) != "note")
      fmt::print(stderr, "stem: {}\n", launch::render_message(message, process->summary.names));
  bool same = !result.diverged;
  if (subject.trace.empty()) {
    if (same)
      fmt::print(stderr, "stem: {}: the schedule was followed, {}\n", subject.name,
                 process->summary.outcome == trace::Outcome::Truncated
                     ? ended_text(result)
                     : outcome_text(process->summary.outcome, process->summary.code));
  } else {
    auto difference = trace::compare(subject.trace, result.trace);
    // A trace that was cut off says nothing about what came then.
    bool cut = difference && subject.cut && difference->event >= subject.events;
    if (!difference || cut) {
      fmt::print(stderr, "stem: {}: replayed identically: {}{}\n", subject.name, counted(subject.events, "event"),
                 cut ? ", to where the recording was cut off" : "");
    } else {
      same = false;
      fmt::print(stderr, "stem: {}: the replay differs at event {}: {}\n", subject.name, difference->event,
                 difference->what);
    }
  }
  if (!options.output.empty()) {
    std::error_code error;
    fs::copy_file(result.trace, options.output, error);
    if (error) user_error("cannot write {}: {}", options.output, error.message());
  }
  if (!same) throw CLI::RuntimeError(1);
}

}  // namespace

void add_replay(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand("replay", "Run a recorded run or a test again, exactly");
  command->footer(kExamples);
  command->add_option("what", options->what, "A run's number, a trace file or a test file")->required();
  command->add_flag("--gdb", options->gdb, "In the debugger, stopped just before the operation in question");
  command
      ->add_option("--event", options->event,
                   "--gdb: stop before this event of the trace instead of the schedule's last")
      ->type_name("N");
  command->add_option("--gdb-batch", options->gdb_batch, "--gdb: run this command where it stopped, then end")
      ->type_name("COMMAND")
      ->expected(1);
  command->add_flag("--any-build", options->any_build, "Try it with another build of the program");
  command->add_flag("--quiet", options->quiet, "Throw the program's output away");
  command->add_option("--timeout", options->timeout, "Kill the program after so many seconds")->type_name("SECONDS");
  command->add_option("-o,--output", options->output, "Keep the replay's own trace in this file")->type_name("FILE");
  command->add_option("--write-test", options->write_test, "Do not run it: write it as a test file")->type_name("FILE");
  command->add_option("--state", options->state, "Use this folder instead of .stem")->type_name("FOLDER");
  command->callback([options] { replay(*options); });
}

}  // namespace stem::cli
