// `stem analyze`: the def-use pairs that recorded runs show, and those that other schedules and inputs would show.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/analysis_output.h"
#include "cli/branches.h"
#include "cli/command.h"
#include "explorer/confirm.h"
#include "explorer/import.h"
#include "predictor/analysis.h"
#include "predictor/long_trace.h"
#include "predictor/parts.h"
#include "trace/checker.h"
#include "trace/reader.h"
#include "trace/text.h"
#include "tracer/launch/state.h"
#include "util/error.h"

namespace stem::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(Examples:
  stem analyze                         the latest run of .stem/
  stem analyze 3 5                     runs by their number
  stem analyze run.stemtrace --all     a trace file; explicit and infeasible pairs too
  stem analyze --json > pairs.json     for tools
  stem analyze --branches              which inputs and schedules lead its branches the other way
  stem analyze --timeout 60            what is not decided by then is unknown

A pair is a definition, a use and a variable. "implicit" means that another schedule or input of the same paths shows it; each
has a witness, which is replayed on the program when that is there ("confirmed").)";

std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  interrupted = true;
  signal(SIGINT, SIG_DFL);  // a second one ends us at once
}

struct Options {
  std::vector<std::string> traces;
  std::string state, feasible = "prefix", encoding = "engine", dump, save;
  bool json = false, confirm = false, no_confirm = false, strict = false, no_store = false, branches = false;
  double timeout = 0, query = 5;
  uint64_t events = 4000000;
  predictor::AnalysisOptions analysis;
  PrintOptions print;
};

std::string find_trace(const Options& options, const std::string& name) {
  std::error_code error;
  if (fs::is_regular_file(name, error)) return name;
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 10) {
    const auto run = launch::State(options.state).find(std::stoull(name));
    if (run) return run->trace;
    user_error("no run {} in {}; `stem record ./prog` records one", name, launch::State(options.state).folder());
  }
  user_error("{}: no such trace file, and no run of that number", name);
}

std::vector<std::string> find_traces(const Options& options) {
  std::vector<std::string> paths;
  for (const std::string& name : options.traces) paths.push_back(find_trace(options, name));
  if (!paths.empty()) return paths;
  const auto runs = launch::State(options.state).runs();
  if (runs.empty()) user_error("{} holds no runs yet; record one with `stem record ./prog`, or name a trace file", launch::State(options.state).folder());
  return {runs.back().trace};
}

bool is_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(10, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return file && start == "stem-trace";
}

// A trace, or as much of its beginning as `limit` events: a prefix of a run is a run that was cut short.
trace::Trace load_some(const std::string& path, uint64_t limit, bool& cut) {
  trace::Reader reader(path);
  trace::Trace trace;
  uint32_t objects = 0;
  trace::Reader::Item item = trace::Reader::Item::Expr;
  while (trace.events.size() < limit && (item = reader.next()) != trace::Reader::Item::End) {
    for (; objects < reader.object_count(); ++objects) trace.objects.push_back(reader.object(objects));
    if (item == trace::Reader::Item::Expr) trace.exprs.push_back(reader.expr());
    else trace.events.push_back(reader.event());
  }
  cut = item != trace::Reader::Item::End;
  for (; objects < reader.object_count(); ++objects) trace.objects.push_back(reader.object(objects));
  trace.meta = reader.meta();
  trace.sites = reader.sites();
  trace.threads = reader.threads();
  trace.variables = reader.variables();
  trace.inputs = reader.inputs();
  trace.nondets = reader.nondets();
  if (!cut) trace.outcome = reader.outcome(), trace.exit_code = reader.exit_code();
  // Leaves of events that are not there any more.
  const auto gone = std::find_if(trace.exprs.begin() + 1, trace.exprs.end(), [&](const trace::Expr& e) {
    return e.op == trace::Op::Read && e.value >= trace.events.size();
  });
  trace.exprs.erase(gone, trace.exprs.end());
  if (cut) predictor::hold_last_updates(trace);
  if (!cut && !reader.recovery().complete)
    fmt::print(stderr, "stem: {} is not complete ({}); what it holds up to there is analysed\n", path, reader.recovery().why);
  return trace;
}

// may_cut: its beginning will do.
trace::Trace load(const std::string& path, uint64_t limit, bool may_cut, bool& cut) {
  trace::Trace trace;
  cut = false;
  if (is_text(path)) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    trace = trace::parse(text.str(), path);
  } else {
    trace = load_some(path, limit, cut);
  }
  if (!cut || may_cut) trace::require(trace::check(trace, 3), path);
  return trace;
}

class Progress {
 public:
  explicit Progress(const char* what) : what_(what), terminal_(isatty(STDERR_FILENO)) {}
  ~Progress() {
    if (printed_) fmt::print(stderr, "\r\x1b[K");
  }
  void operator()(uint64_t done, uint64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    printed_ = true;
    fmt::print(stderr, "\r\x1b[K{} {} of {}", what_, done, of);
  }

 private:
  const char* what_;
  bool terminal_, printed_ = false;
  std::chrono::steady_clock::time_point next_{};
};

// --branches: which side each branch did not take, and what would take it.
nlohmann::json other_sides(const trace::Trace& trace, const std::string& path, const Options& options) {
  BranchOptions asked;
  asked.alternates.query_ms = options.analysis.query_ms;
  asked.alternates.dump = options.dump;
  asked.alternates.cut = options.analysis.cut;
  asked.alternates.interrupt = &interrupted;
  asked.threads = options.analysis.threads;
  asked.keep = options.save;
  const std::string why_not = options.no_confirm ? "" : explorer::cannot_replay(trace);
  if (options.confirm && !why_not.empty()) user_error("{}: cannot confirm: {}", path, why_not);
  asked.replay = !options.no_confirm && why_not.empty();
  const std::vector<BranchResult> results = try_branches(trace, asked);
  if (!options.json) fmt::print("{}\n{}", path, render(trace, results));
  return {{"trace", path}, {"branches", to_json(trace, results)}};
}

void analyze_all(Options options) {
  predictor::AnalysisOptions& a = options.analysis;
  a.meaning = options.feasible == "full" ? predictor::Meaning::Full : predictor::Meaning::Prefix;
  a.paper = options.encoding == "paper";
  if (a.paper) a.meaning = predictor::Meaning::Full;
  a.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  a.query_ms = static_cast<unsigned>(options.query * 1000);
  a.dump = options.dump;
  a.strict = options.strict;
  a.interrupt = &interrupted;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);

  const std::vector<std::string> paths = find_traces(options);
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& path : paths) {
    if (interrupted) break;
    bool cut = false;
    trace::Trace trace = load(path, options.events, options.branches, cut);
    a.cut = cut && options.branches;
    if (options.branches) {
      all.push_back(other_sides(trace, path, options));
      continue;
    }
    predictor::AnalysisResult result;
    {
      Progress progress("pairs decided:");
      a.progress = std::ref(progress);
      if (cut && a.paper)
        user_error("{}: the paper's formula is about the whole trace, and it has more than {} events; analyse it without --encoding=paper, "
                   "or raise --events", path, options.events);
      if (cut) {
        trace = {};
        predictor::LongAnalysis all = predictor::analyze_parts(path, a, options.events);
        trace = std::move(all.trace), result = std::move(all.result);
      } else {
        result = predictor::analyze(trace, a);
      }
      if (!trace.meta.semantics)
        result.notes.push_back("recorded without semantics: inputs cannot be solved for, and a read that a later branch may depend on is held fixed");
    }
    const std::string why_not = options.no_confirm ? "" : explorer::cannot_replay(trace);
    if (options.confirm && !why_not.empty()) user_error("{}: cannot confirm: {}", path, why_not);
    if (!options.no_confirm && why_not.empty() && !interrupted) {
      Progress progress("witnesses replayed:");
      explorer::ConfirmOptions confirming;
      confirming.interrupt = &interrupted;
      confirming.keep = options.save;
      confirming.threads = a.threads;
      confirming.progress = std::ref(progress);
      explorer::confirm(trace, result, confirming);
      result.interrupted |= interrupted;
    }
    if (!options.no_store && !is_text(path)) explorer::store_analysis(explorer::state_at(launch::State(options.state).folder()), path, trace, result, a.meaning);
    if (options.json) {
      nlohmann::json one = to_json(trace, result);
      one["trace"] = path;
      one["feasible"] = a.meaning == predictor::Meaning::Full ? "full" : "prefix";
      one["encoding"] = options.encoding;
      all.push_back(std::move(one));
    } else {
      if (paths.size() > 1) fmt::print("{}\n", path);
      fmt::print("{}", render(trace, result, options.print));
    }
  }
  if (options.json) fmt::print("{}\n", nlohmann::json{{"stem_analysis", 1}, {"traces", all}}.dump(1));
}

}  // namespace

void add_analyze(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("analyze", "Find the def-use pairs that other schedules and inputs would show");
  command->footer(kExamples);
  command->add_option("trace", options->traces, "Trace files or run numbers (default: the latest run)");
  command->add_option("--state", options->state, "State folder (default: .stem)");
  command->add_flag("--json", options->json, "Print everything as JSON");
  command->add_flag("--branches", options->branches, "Ask about branches instead: which can go the other way, with which inputs and schedule");
  command->add_flag("--all", options->print.all, "List explicit and infeasible pairs too");
  command->add_flag("--stats", options->print.stats, "Print who decided what, and how long it took");
  command->add_option("--feasible", options->feasible, "prefix: only what leads to the use must execute as recorded; full: the whole trace")
      ->check(CLI::IsMember({"prefix", "full"}))->capture_default_str();
  command->add_option("--encoding", options->encoding, "engine, or paper: the paper's formula for every instance (slow)")
      ->check(CLI::IsMember({"engine", "paper"}))->capture_default_str();
  command->add_option("--timeout", options->timeout, "Seconds for the analysis of one trace; 0: none")->check(CLI::NonNegativeNumber);
  command->add_option("--query-timeout", options->query, "Seconds for one question")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--window", options->analysis.window, "Events that are reordered at once; 0: all if the trace is short, else 1000");
  command->add_option("--instances", options->analysis.kept, "Instances per static pair that are tried first")->capture_default_str();
  command->add_option("--events", options->events, "Hold so many events in memory at once: a longer trace is analysed in parts (--branches: its beginning only)")
      ->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--threads", options->analysis.threads, "0: as many as there are cores");
  command->add_option("--dump-smt", options->dump, "Folder that every question to the solver is written to as SMT-LIB");
  command->add_option("--save-tests", options->save, "Folder that every witness is written to as a test file");
  command->add_flag("--confirm", options->confirm, "Insist on replaying every witness (done anyway when the program is there)");
  command->add_flag("--no-confirm", options->no_confirm, "Replay nothing");
  command->add_flag("--no-store", options->no_store, "Leave the database as it is");
  command->add_flag("--strict", options->strict, "Stop at a witness that the checker refuses")->group("");
  command->callback([options] { analyze_all(*options); });
}

}  // namespace stem::cli
