// `stem static`: what the source alone says. Potential pairs, escort branch pairs, threads and definitions that nobody
// can use.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "explorer/static_check.h"
#include "static/analysis.h"
#include "trace/reader.h"
#include "util/error.h"
#include "util/text.h"

namespace stem::cli {

namespace {

using namespace analysis;
using nlohmann::json;

constexpr const char* kExamples = R"(Examples:
  stem static ./prog                   a summary; potential pairs, escort branch pairs, definitions nobody can use
  stem static ./prog --variable q      only those of variables whose name contains q (also: --file queue.c)
  stem static ./prog --sigma=paper     escort branch pairs without initial definitions
  stem static ./prog --all             also locals and heap that only one thread uses
  stem static ./prog --json            everything, for tools
  stem static ./prog --check run.stemtrace   does a recorded run stay inside what static analysis allows?

Nothing is run: the bitcode that stem-cc left in the program is analysed. A potential pair is a definition that may reach a read as
far as the source tells; runs (stem record) and predictions (stem analyze) say which of them do. An escort branch pair
p T => q F says: taking p's true way leads to a write, q's false way to a read of the same variable. A bare pair needs no
branch to be taken. Long lists are counted by variable; --variable, --file and --full show them.)";

constexpr size_t kLong = 120;  // lines of a list that nobody asked for in particular

struct Options {
  std::string program, sigma = "ours";
  std::vector<std::string> traces, files, variables;
  bool as_json = false, all = false, full = false;
  bool filtered() const { return !files.empty() || !variables.empty(); }
};

std::string place(const StaticSite& site) {
  const std::string line = fmt::format("{}:{}", std::filesystem::path(site.file).filename().string(), site.line);
  return printable(site.function.empty() ? line : fmt::format("{} ({})", line, site.function));
}

std::string definition(const Result& result, uint32_t site) {
  return site == kInitial ? "initial value" : place(result.sites[site]);
}

std::string way(const Result& result, const BranchOutcome& outcome) {
  if (outcome.site == kInitial) return "initial value";
  const StaticSite& site = result.sites[outcome.site];
  std::string taken = outcome.outcome ? "T" : "F";
  if (site.text == "switch") taken = outcome.is_default ? "default" : fmt::format("case {}", outcome.outcome);
  return place(site) + " " + taken;
}

std::vector<EscortPair> sigma_of(const Result& result, const Options& options) {
  std::vector<EscortPair> escorts = result.escorts;
  if (options.sigma == "paper")
    std::erase_if(escorts, [](const EscortPair& escort) { return escort.def.site == kInitial; });
  return escorts;
}

bool contains_any(const std::string& text, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(),
                                      [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

bool in_files(const Result& result, uint32_t site, const Options& options) {
  return options.files.empty() || (site != kInitial && contains_any(result.sites[site].file, options.files));
}

bool shown(const Result& result, const PotentialPair& pair, const Options& options) {
  return (pair.shared || options.all) && contains_any(pair.variable, options.variables) &&
         (in_files(result, pair.def, options) || in_files(result, pair.use, options));
}

void print_summary(const Result& result, const Options& options) {
  size_t shared = 0, cross = 0, bare = 0;
  std::set<std::string> variables;
  for (const PotentialPair& pair : result.pairs) {
    if (!pair.shared) continue;
    ++shared;
    cross += pair.cross_thread && pair.def != kInitial;
    bare += result.bare(pair);
    variables.insert(pair.variable);
  }
  uint64_t unlisted = 0;
  for (const Unlisted& one : result.unlisted) unlisted += one.pairs;
  fmt::print("Summary\n  {} instructions, {} sites, {} kinds of threads\n", result.instructions, result.sites.size(),
             result.threads.size());
  fmt::print("  {} potential pairs on {} shared variables: {} between threads, {} bare\n", shared, variables.size(),
             cross, bare);
  fmt::print("  {}{} escort branch pairs, {} definitions that no read can use\n", sigma_of(result, options).size(),
             result.escorts_cut ? " or more" : "", result.dead_definitions.size());
  if (result.unlisted.empty()) return;
  fmt::print("  not listed: up to {} pairs on {} variables that too many places may use, most on\n", unlisted,
             result.unlisted.size());
  for (size_t i = 0; i < result.unlisted.size() && i < 5; ++i)
    fmt::print("    {} ({})\n", printable(result.unlisted[i].variable), result.unlisted[i].pairs);
}

void print_threads(const Result& result) {
  fmt::print("\nThreads\n");
  for (const ThreadInfo& thread : result.threads)
    fmt::print("  {}{}\n", printable(thread.entry), thread.many ? ", any number" : "");
}

// Of a long list the variables with most pairs: what to look at next.
void print_counts(const std::vector<const PotentialPair*>& pairs) {
  std::map<std::string, size_t> counts;
  for (const PotentialPair* pair : pairs) ++counts[pair->variable];
  std::vector<std::pair<size_t, std::string>> most;
  for (const auto& [variable, count] : counts) most.emplace_back(count, variable);
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr size_t kTop = 30;
  for (size_t i = 0; i < most.size() && i < kTop; ++i)
    fmt::print("  {:>8}  {}\n", most[i].first, printable(most[i].second));
  if (most.size() > kTop) fmt::print("  and {} more variables\n", most.size() - kTop);
  fmt::print("  (--variable NAME or --file NAME lists the pairs of some, --full all)\n");
}

void print_pairs(const Result& result, const Options& options) {
  std::vector<const PotentialPair*> pairs;
  size_t hidden = 0;
  for (const PotentialPair& pair : result.pairs) {
    if (shown(result, pair, options)) pairs.push_back(&pair);
    hidden += !pair.shared && !options.all;
  }
  fmt::print("\nPotential pairs ({})\n", pairs.size());
  if (pairs.size() > kLong && !options.full && !options.filtered()) {
    print_counts(pairs);
  } else {
    std::string variable;
    for (const PotentialPair* pair : pairs) {
      if (pair->variable != variable) fmt::print("  {}\n", printable(variable = pair->variable));
      fmt::print("    {} -> {}{}{}\n", definition(result, pair->def), place(result.sites[pair->use]),
                 pair->def != kInitial && !pair->cross_thread ? ", in one thread" : "",
                 result.bare(*pair) ? ", bare" : "");
    }
  }
  if (hidden) fmt::print("  and {} on locals and heap memory that only one thread uses (--all)\n", hidden);
}

void print_escorts(const Result& result, const Options& options) {
  if (!options.variables.empty()) return;  // an escort pair stands for many variables
  auto escorts = sigma_of(result, options);
  std::erase_if(escorts, [&](const EscortPair& escort) {
    return !in_files(result, escort.def.site, options) && !in_files(result, escort.use.site, options);
  });
  fmt::print("\nEscort branch pairs ({})\n", escorts.size());
  if (escorts.size() > kLong && !options.full && options.files.empty()) {
    fmt::print("  (--file NAME lists those of some files, --full all)\n");
    return;
  }
  for (const EscortPair& escort : escorts) fmt::print("  {} => {}\n", way(result, escort.def), way(result, escort.use));
}

void print_dead(const Result& result, const Options& options) {
  if (!options.variables.empty()) return;
  std::vector<uint32_t> dead = result.dead_definitions;
  std::erase_if(dead, [&](uint32_t site) { return !in_files(result, site, options); });
  fmt::print("\nDefinitions that no read can use ({})\n", dead.size());
  for (size_t i = 0; i < dead.size() && (i < kLong || options.full || options.filtered()); ++i)
    fmt::print("  {} {}\n", place(result.sites[dead[i]]), printable(result.sites[dead[i]].text));
  if (dead.size() > kLong && !options.full && !options.filtered())
    fmt::print("  and {} more (--full)\n", dead.size() - kLong);
}

json outcome_json(const BranchOutcome& outcome) {
  if (outcome.site == kInitial) return {{"initial", true}};
  json one = {{"site", outcome.site}};
  if (outcome.is_default)
    one["default"] = true;
  else
    one["outcome"] = outcome.outcome;
  return one;
}

json to_json(const Result& result, const Options& options) {
  json sites = json::array(), threads = json::array(), pairs = json::array(), escorts = json::array(),
       dominated = json::array(), unlisted = json::array();
  for (const Unlisted& one : result.unlisted)
    unlisted.push_back({{"variable", valid_utf8(one.variable)}, {"pairs", one.pairs}});
  for (const StaticSite& site : result.sites) {
    json one = {{"key", fmt::format("{:016x}", site.key)},
                {"file", valid_utf8(site.file)},
                {"line", site.line},
                {"column", site.column},
                {"function", valid_utf8(site.function)},
                {"text", valid_utf8(site.text)},
                {"kind", site.kind == SiteKind::Branch ? "branch" : "access"}};
    one["escorts"] = json::array();
    for (const BranchOutcome& outcome : site.escorts) one["escorts"].push_back(outcome_json(outcome));
    sites.push_back(std::move(one));
  }
  for (const ThreadInfo& thread : result.threads)
    threads.push_back({{"entry", valid_utf8(thread.entry)}, {"many", thread.many}});
  for (const PotentialPair& pair : result.pairs) {
    json one = {{"variable", valid_utf8(pair.variable)},
                {"use", pair.use},
                {"cross_thread", pair.cross_thread},
                {"shared", pair.shared},
                {"bare", result.bare(pair)}};
    if (pair.def == kInitial)
      one["initial"] = true;
    else
      one["def"] = pair.def;
    pairs.push_back(std::move(one));
  }
  for (const EscortPair& escort : sigma_of(result, options))
    escorts.push_back({{"def", outcome_json(escort.def)}, {"use", outcome_json(escort.use)}});
  for (const Dominated& one : result.dominated)
    dominated.push_back({{"branch", outcome_json(one.outcome)}, {"sites", one.sites}});
  return {{"stem_static", 1},       {"sigma", options.sigma},
          {"sites", sites},         {"threads", threads},
          {"pairs", pairs},         {"escorts", escorts},
          {"dominated", dominated}, {"dead_definitions", result.dead_definitions},
          {"unlisted", unlisted},   {"escorts_cut", result.escorts_cut}};
}

// Runs of this very build: what they show must be allowed.
void check_traces(const trace::Program& program, const Result& result, const Options& options) {
  size_t violations = 0;
  for (const std::string& file : options.traces) {
    trace::Reader reader(file);
    if (reader.meta().build_id != program.build_id())
      user_error("{} was recorded from another build of {}; record it again", file, options.program);
    explorer::StaticCheck check(result.facts);
    explorer::observed_flows(reader, &check);
    for (const std::string& one : check.violations()) fmt::print("{}\n", one);
    fmt::print("{}: {} distinct accesses, flows and branches, {} of them outside what static analysis allows\n", file,
               check.checked(), check.violations().size());
    violations += check.violations().size();
  }
  if (violations) throw InternalError("static analysis of this program is wrong: a run shows more than it allows");
}

void analyze_static(const Options& options) {
  const trace::Program program = trace::Program::open(options.program);
  const Result result = analyze_program(program);
  // Later runs of this build are held against it (explorer/static_check.h).
  const explorer::State state = explorer::find_state();
  std::error_code error;
  if (std::filesystem::is_directory(state.folder, error)) explorer::keep_facts(state, program.build_id(), result.facts);
  if (!options.traces.empty()) return check_traces(program, result, options);
  if (options.as_json) {
    fmt::print("{}\n", to_json(result, options).dump(1));
    return;
  }
  print_summary(result, options);
  print_threads(result);
  print_pairs(result, options);
  print_escorts(result, options);
  print_dead(result, options);
}

}  // namespace

void add_static(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("static", "Say which def-use pairs the source allows, without running anything");
  command->footer(kExamples);
  command->add_option("program", options->program, "An executable built with stem-cc or stem-c++")->required();
  command->add_flag("--json", options->as_json, "Print everything as JSON");
  command->add_flag("--all", options->all, "List locals and heap memory that only one thread uses too");
  command->add_flag("--full", options->full, "List everything, however long");
  command->add_option("--file", options->files,
                      "Only pairs with a site in a file whose name contains this (several: any)");
  command->add_option("--variable", options->variables,
                      "Only pairs of variables whose name contains this (several: any)");
  command->add_option("--check", options->traces, "Instead: hold recorded runs against what static analysis allows");
  command->add_option("--sigma", options->sigma, "ours: initial definitions escort branches too; paper: they do not")
      ->check(CLI::IsMember({"ours", "paper"}))
      ->capture_default_str();
  command->callback([options] { analyze_static(*options); });
}

}  // namespace stem::cli
