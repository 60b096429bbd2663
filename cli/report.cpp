// `stem report`: what the database knows, for people and for tools; with gates for continuous integration.
#include <unistd.h>

#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <iostream>

#include "cli/command.h"
#include "cli/state.h"
#include "report/formats.h"
#include "report/suppress.h"
#include "util/error.h"

namespace stem::cli {
namespace {

struct Arguments {
  std::string format = "text", output, database, since, diff, ignore;
  std::vector<std::string> fail_on;
  double fail_under = -1;
};

void check(const Arguments& a) {
  static const std::vector<std::string> formats{"text", "html", "markdown", "json", "sarif", "lcov"};
  if (std::find(formats.begin(), formats.end(), a.format) == formats.end()) {
    user_error("--format {}: choose text, html, markdown, json, sarif or lcov.", a.format);
  }
  if (!a.since.empty() && !a.diff.empty()) user_error("--since and --diff are two answers to one question: give one of them.");
  if (!a.since.empty() && a.since.starts_with('-')) user_error("--since {}: not a git revision.", a.since);
  for (const std::string& gate : a.fail_on) {
    if (gate != "new-uncovered" && gate != "unconfirmed" && gate != "finding") {
      user_error("--fail-on {}: choose new-uncovered, unconfirmed or finding.", gate);
    }
    if (gate == "new-uncovered" && a.since.empty() && a.diff.empty()) {
      user_error("--fail-on new-uncovered needs to know what is new: add --since GITREF or --diff BASE.db.");
    }
  }
  if (a.fail_under > 100) user_error("--fail-under {}: a percentage is at most 100.", a.fail_under);
}

std::string render(const Arguments& a, const report::Model& model, const report::Change* change) {
  if (a.format == "html") return report::html(model, change);
  if (a.format == "markdown") return report::markdown(model, change);
  if (a.format == "json") return report::json(model, change);
  if (a.format == "sarif") return report::sarif(model, change);
  if (a.format == "lcov") return report::lcov(model);
  return report::text(model, change);
}

void write(const Arguments& a, const State& state, const std::string& content) {
  std::string output = a.output;
  // A page is of no use in a terminal.
  if (output.empty() && a.format == "html" && isatty(STDOUT_FILENO)) output = (state.folder / "report.html").string();
  if (output.empty() || output == "-") {
    std::cout << content << std::flush;
    return;
  }
  const std::string partial = output + ".part";
  {
    std::ofstream out(partial, std::ios::binary);
    out << content;
    out.close();
    if (!out) user_error("cannot write {}: is there space, and may the folder be written?", output);
  }
  std::error_code error;
  std::filesystem::rename(partial, output, error);
  if (error) user_error("cannot write {}: {}", output, error.message());
  fmt::print(stderr, "wrote {}\n", output);
}

// What a gate found, as sentences; none: all pass.
std::vector<std::string> failures(const Arguments& a, const report::Model& model, const report::Change* change) {
  std::vector<std::string> found;
  for (const std::string& gate : a.fail_on) {
    if (gate == "new-uncovered" && !change->untested.empty()) {
      found.push_back(fmt::format("{} pairs that this change adds or touches are not covered", change->untested.size()));
    }
    if (gate == "finding" && !model.findings.empty()) found.push_back(fmt::format("{} findings", model.findings.size()));
    if (gate == "unconfirmed") {
      const auto count = std::count_if(model.pairs.begin(), model.pairs.end(), [](const report::Pair& p) {
        return p.suppressed == report::Suppressed::No && (p.state == db::State::Implicit || p.state == db::State::Diverged);
      });
      if (count) found.push_back(fmt::format("{} predicted pairs were not confirmed by replay", count));
    }
  }
  const auto percent = model.coverage().percent();
  if (a.fail_under >= 0 && percent && *percent < a.fail_under) {
    found.push_back(fmt::format("coverage is {:.1f} %, less than {} %", *percent, a.fail_under));
  }
  if (a.fail_under > 0 && !percent) found.push_back("there is nothing to cover: no pair was recorded");
  return found;
}

void run(const Arguments& a) {
  check(a);
  const State state = find_state(a.database);
  db::Database database(state.database, db::Mode::Read);
  report::Model model = report::load(database, state.project);
  report::suppress(model, report::read_rules(a.ignore.empty() ? state.ignore : std::filesystem::path(a.ignore)));
  std::optional<report::Change> change;
  if (!a.since.empty()) change = report::since(model, database, state.project, a.since);
  if (!a.diff.empty()) change = report::compare(model, a.diff, state.project);
  write(a, state, render(a, model, change ? &*change : nullptr));
  const auto failed = failures(a, model, change ? &*change : nullptr);
  for (const std::string& reason : failed) fmt::print(stderr, "stem report: {}\n", reason);
  if (!failed.empty()) throw CLI::RuntimeError(1);
}

}  // namespace

void add_report(CLI::App& app) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("report", "Show what is covered, what can happen and was never seen, and what looks wrong");
  command->footer(
      "Coverage is of all def-use pairs that are known, but those that are impossible in the whole program.\n"
      "Suppress with a reason: `// stem:ignore why` on the line of the write or the read, or in .stem/ignore:\n"
      "  variable stats.*   only statistics\n"
      "Examples:\n"
      "  stem report\n"
      "  stem report --format html -o report.html\n"
      "  stem report --format markdown --since origin/main --fail-on new-uncovered\n"
      "  stem report --format lcov -o defuse.info && genhtml --branch-coverage defuse.info -o html");
  command->add_option("--format", a->format, "text, html, markdown, json, sarif or lcov")->capture_default_str();
  command->add_option("-o,--output", a->output, "Write to this file")->type_name("FILE");
  add_database_option(*command, a->database);
  command->add_option("--since", a->since, "What changed since this git revision: added, lost, left untested")->type_name("GITREF");
  command->add_option("--diff", a->diff, "The same against another database")->type_name("BASE.db");
  command->add_option("--fail-on", a->fail_on, "Exit with 1 on: new-uncovered, unconfirmed, finding")->delimiter(',')->expected(1)->take_all();
  command->add_option("--fail-under", a->fail_under, "Exit with 1 if coverage is less than N percent")->type_name("N");
  command->add_option("--ignore", a->ignore, "The file with suppressions (default: .stem/ignore)")->type_name("FILE");
  command->callback([a] { run(*a); });
}

}  // namespace stem::cli
