// `stem explore`: runs a program under one input and schedule after the other, chosen so that each shows what none did before.
#include <fmt/core.h>
#include <signal.h>

#include <atomic>
#include <fstream>

#include "cli/command.h"
#include "cli/explore_output.h"
#include "cli/run_options.h"
#include "explorer/loop.h"
#include "tracer/launch/state.h"
#include "util/error.h"

namespace stem::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  stem-cc -g -O1 prog.c -o prog -pthread          compile with STEM inside
  stem explore ./prog data.txt                    until nothing is left to cover or to try, or the budget is spent
  stem explore --runs 50 --time 60 ./prog         a budget; the same command goes on where it ended
  stem explore --input n=3 ./prog                 values to begin with; others are found by solving
  stem explore --symbolic-argv ./prog abc         arguments are inputs; also --symbolic-stdin, --symbolic-file
  stem explore --explain ./prog                   what each run showed, and what it led to
  stem explore --json out.json ./prog             for tools; - is standard output
  stem replay f1                                  a failure that was found, again

What it does: static analysis says which definition may reach which read (pairs), and which two branches lead to both (escort
branch pairs). A first run shows some pairs. From what it recorded, other schedules and inputs are predicted that show more, or lead
a branch the other way, let an assertion fail, or close a cycle of locks. The most promising is run next, and so on. A pair that
was predicted is confirmed by running it.

What is found: crashes, failed assertions, deadlocks, livelocks and hangs, each with a test that `stem replay` repeats.
A pair that was not found is infeasible only if every question about it was refuted without meeting a limit.

Exit code 0: nothing failed. 1: something did, or there are findings from before. Everything is kept in .stem/ (stem report).)";

std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  interrupted = true;
  signal(SIGINT, SIG_DFL);  // a second one ends us at once
}

struct Options {
  explorer::LoopOptions loop;
  std::vector<std::string> inputs, symbolic_files;
  std::string goal = "pairs", sigma = "ours", json, state, test;
  double time = 300, query = 2, run_timeout = 10;
  bool explain = false, all = false, symbolic_argv = false, no_minimise = false;
  uint64_t symbolic_stdin = 0;
  CLI::App* command = nullptr;
};

trace::Test start_of(const Options& options) {
  trace::Test test;
  if (!options.test.empty()) test = trace::load_test(options.test);
  const std::vector<std::string> words = program_words(*options.command);
  if (!words.empty()) {
    test.program = words[0];
    test.argv = words;
    test.cwd.clear();
  }
  if (test.program.empty()) user_error("stem explore needs a program: stem explore ./prog args");
  for (const std::string& text : options.inputs) {
    const trace::Input input = parse_input(text);
    std::erase_if(test.inputs, [&](const trace::Input& old) { return old.name == input.name; });
    test.inputs.push_back(input);
  }
  if (options.symbolic_argv) test.options["symbolic-argv"] = "1";
  if (options.symbolic_stdin) test.options["symbolic-stdin"] = std::to_string(options.symbolic_stdin);
  for (const std::string& file : options.symbolic_files) {
    std::string& all = test.options["symbolic-file"];
    all += (all.empty() ? "" : "\n") + file;
  }
  return test;
}

void explore_program(Options& options) {
  explorer::LoopOptions& loop = options.loop;
  loop.start = start_of(options);
  loop.goal = options.goal == "escort" ? explorer::Goal::Escort : explorer::Goal::Pairs;
  loop.sigma = options.sigma == "paper" ? explorer::Sigma::Paper : explorer::Sigma::Ours;
  loop.time = std::chrono::milliseconds(static_cast<int64_t>(options.time * 1000));
  loop.query_ms = static_cast<unsigned>(options.query * 1000);
  loop.run_timeout = std::chrono::milliseconds(static_cast<int64_t>(options.run_timeout * 1000));
  loop.minimise = !options.no_minimise;
  loop.interrupt = &interrupted;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (options.explain) {
    loop.jobs = 1;  // one step after the other
    loop.step = [](const explorer::Knowledge& known, const explorer::Step& step) { fmt::print("{}", render(known, step)); };
  }
  std::optional<explorer::Knowledge> known;
  explorer::LoopResult result;
  {
    ExploreProgress progress;
    if (!options.explain) loop.progress = std::ref(progress);
    result = explorer::explore(explorer::state_at(launch::State(options.state).folder()), loop, known);
  }
  if (options.json == "-") {
    fmt::print("{}\n", to_json(*known, result).dump(1));
  } else {
    fmt::print("{}", render(*known, result, options.all));
    if (!options.json.empty()) {
      std::ofstream file(options.json);
      if (!(file << to_json(*known, result).dump(1) << '\n')) user_error("cannot write {}", options.json);
    }
  }
  if (!result.findings.empty()) throw CLI::RuntimeError(1);
}

}  // namespace

void add_explore(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explore", "Find pairs and failures by running a program in new ways: stem explore [options] [--] PROGRAM [arguments]");
  options->command = command;
  command->prefix_command();
  command->footer(kExamples);
  command->add_option("--runs", options->loop.runs, "Executions of the program at most, confirming ones included; 0: no limit")->check(CLI::NonNegativeNumber)->type_name("N");
  command->add_option("--time", options->time, "Seconds at most; 0: no limit")->check(CLI::NonNegativeNumber)->capture_default_str()->type_name("SECONDS");
  command->add_option("--jobs", options->loop.jobs, "Executions and questions at once; 0: as many as there are cores")->type_name("N");
  command->add_option("--goal", options->goal, "pairs: while a pair is neither found nor refuted; escort: until every escort branch pair is covered, as in the paper")
      ->check(CLI::IsMember({"pairs", "escort"}))->capture_default_str();
  command->add_option("--sigma", options->sigma, "ours: initial definitions escort branches too; paper: they do not")
      ->check(CLI::IsMember({"ours", "paper"}))->capture_default_str();
  command->add_option("--input", options->inputs, "Value of an input to begin with: an integer, \"text\", or hex:0a0b")->type_name("NAME=VALUE")->take_all()->allow_extra_args(false);
  command->add_option("--test", options->test, "Begin with the inputs and schedule of this test file")->type_name("FILE");
  command->add_flag("--symbolic-argv", options->symbolic_argv, "The program's arguments are inputs");
  command->add_option("--symbolic-stdin", options->symbolic_stdin, "The first N bytes of standard input are inputs")->type_name("N");
  command->add_option("--symbolic-file", options->symbolic_files, "What is read from this file is an input")->type_name("FILE")->take_all()->allow_extra_args(false);
  command->add_option("--run-timeout", options->run_timeout, "Seconds after which a run counts as a hang")->check(CLI::PositiveNumber)->capture_default_str()->type_name("SECONDS");
  command->add_option("--query-timeout", options->query, "Seconds for one question to the solver")->check(CLI::PositiveNumber)->capture_default_str()->type_name("SECONDS");
  command->add_flag("--no-minimise", options->no_minimise, "Keep the schedules of failures as they were found");
  command->add_flag("--explain", options->explain, "Print every step: run, predictions, branches, what is left (one job)");
  command->add_flag("--all", options->all, "List every pair");
  command->add_option("--json", options->json, "Write everything to this file as JSON; - for standard output")->type_name("FILE");
  command->add_option("--state", options->state, "Use this folder instead of .stem")->type_name("FOLDER");
  command->callback([options] { explore_program(*options); });
}

}  // namespace stem::cli
