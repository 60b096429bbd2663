// `stem static`: what the source alone says. Potential pairs, escort branch pairs, threads and definitions that nobody
// can use.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "static/analysis.h"
#include "util/error.h"
#include "util/text.h"

namespace stem::cli {

namespace {

using namespace analysis;
using nlohmann::json;

constexpr const char* kExamples = R"(Examples:
  stem static ./prog                   potential pairs, escort branch pairs, definitions nobody can use
  stem static ./prog --sigma=paper     escort branch pairs without initial definitions
  stem static ./prog --all             also locals and heap that only one thread uses
  stem static ./prog --json            everything, for tools

Nothing is run: the bitcode that stem-cc left in the program is analysed. A potential pair is a definition that may reach a read as
far as the source tells; runs (stem record) and predictions (stem analyze) say which of them do. An escort branch pair
p T => q F says: taking p's true way leads to a write, q's false way to a read of the same variable. A bare pair needs no
branch to be taken.)";

struct Options {
  std::string program, sigma = "ours";
  bool as_json = false, all = false;
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

void print_threads(const Result& result) {
  fmt::print("Threads\n");
  for (const ThreadInfo& thread : result.threads)
    fmt::print("  {}{}\n", printable(thread.entry), thread.many ? ", any number" : "");
}

void print_pairs(const Result& result, const Options& options) {
  const auto shown = [&](const PotentialPair& pair) { return pair.shared || options.all; };
  const auto count = std::count_if(result.pairs.begin(), result.pairs.end(), shown);
  fmt::print("\nPotential pairs ({})\n", count);
  std::string variable;
  for (const PotentialPair& pair : result.pairs) {
    if (!shown(pair)) continue;
    if (pair.variable != variable) fmt::print("  {}\n", printable(variable = pair.variable));
    fmt::print("    {} -> {}{}{}\n", definition(result, pair.def), place(result.sites[pair.use]),
               pair.def != kInitial && !pair.cross_thread ? ", in one thread" : "", result.bare(pair) ? ", bare" : "");
  }
  const size_t hidden = result.pairs.size() - static_cast<size_t>(count);
  if (hidden) fmt::print("  and {} on locals and heap memory that only one thread uses (--all)\n", hidden);
}

void print_escorts(const Result& result, const Options& options) {
  const auto escorts = sigma_of(result, options);
  fmt::print("\nEscort branch pairs ({})\n", escorts.size());
  for (const EscortPair& escort : escorts) fmt::print("  {} => {}\n", way(result, escort.def), way(result, escort.use));
}

void print_dead(const Result& result) {
  fmt::print("\nDefinitions that no read can use ({})\n", result.dead_definitions.size());
  for (uint32_t site : result.dead_definitions)
    fmt::print("  {} {}\n", place(result.sites[site]), printable(result.sites[site].text));
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
       dominated = json::array();
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
          {"dominated", dominated}, {"dead_definitions", result.dead_definitions}};
}

void analyze_static(const Options& options) {
  const Result result = analyze_program(trace::Program::open(options.program));
  if (options.as_json) {
    fmt::print("{}\n", to_json(result, options).dump(1));
    return;
  }
  print_threads(result);
  print_pairs(result, options);
  print_escorts(result, options);
  print_dead(result);
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
  command->add_option("--sigma", options->sigma, "ours: initial definitions escort branches too; paper: they do not")
      ->check(CLI::IsMember({"ours", "paper"}))
      ->capture_default_str();
  command->callback([options] { analyze_static(*options); });
}

}  // namespace stem::cli
