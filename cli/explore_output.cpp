#include "cli/explore_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "explorer/explain.h"
#include "util/text.h"

namespace stem::cli {

using namespace explorer;
using nlohmann::json;

ExploreProgress::ExploreProgress() : terminal_(isatty(STDERR_FILENO)) {}

ExploreProgress::~ExploreProgress() {
  if (printed_) fmt::print(stderr, "\r\x1b[K");
}

void ExploreProgress::operator()(const LiveFigures& live) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  printed_ = true;
  fmt::print(stderr, "\r\x1b[K{}: {} pairs found, Sigma {}, Omega {}, {} runs ({:.1f}/s){}", live.doing, live.pairs, live.open_escorts, live.omega,
             live.executions, live.seconds > 0 ? static_cast<double>(live.executions) / live.seconds : 0.0,
             live.findings ? fmt::format(", {} findings", live.findings) : "");
  std::fflush(stderr);
}

namespace {

std::string escorts_text(const Knowledge& known, const std::vector<size_t>& escorts) {
  std::string out;
  for (size_t i : escorts) out += (out.empty() ? "" : ", ") + escort_text(known, known.escorts()[i].pair, true);
  return "{" + out + "}";
}

std::string pairs_text(const Knowledge& known, const std::vector<PairKey>& pairs) {
  std::string out;
  for (const PairKey& pair : pairs) out += (out.empty() ? "" : ", ") + pair_text(known, pair, true);
  return printable("{" + out + "}");
}

std::string failure_place(const FoundFailure& f) {
  return f.line ? fmt::format(" at {}{}", place_text(f.file, f.line), f.function.empty() ? "" : " (" + printable(f.function) + ")") : "";
}

std::string failure_text(const FoundFailure& f) {
  if (f.kind == "assertion failed") return fmt::format("assertion failed{}{}", failure_place(f), f.text.empty() ? "" : ": " + printable(f.text));
  // A deadlock says in a line of its own what each thread waits for.
  const size_t first = std::min(f.message.find('\n'), f.message.size());
  std::string out = printable(f.message.substr(0, first)) + failure_place(f);
  for (size_t at = first; at < f.message.size();) {
    const size_t end = std::min(f.message.find('\n', at + 1), f.message.size());
    out += "\n    " + printable(f.message.substr(at + 1, end - at - 1));
    at = end;
  }
  return out;
}

std::string ended_text(const LoopResult& result) {
  const std::string& ended = result.figures.ended;
  if (ended == "goal") return "everything that can be covered is covered";
  if (ended == "complete") return "nothing is left to try";
  if (ended == "runs") return "the number of runs was reached (--runs); the same command goes on";
  if (ended == "time") return "the time was up (--time); the same command goes on";
  return "interrupted; the same command goes on";
}

PairKey key_of(const Knowledge& known, const Knowledge::Potential& pair) {
  return {pair.def == analysis::kInitial ? kInitialKey : known.program().sites[pair.def].key, known.program().sites[pair.use].key, pair.variable};
}

std::string state_text(const Knowledge::Found& found) {
  if (!found.predicted) return "explicit";
  return found.seen ? "implicit, confirmed" : found.diverged ? "implicit, diverged" : "implicit";
}

}  // namespace

std::string render(const Knowledge& known, const Step& step) {
  std::string out = fmt::format("Step {} ({})\n", step.execution, step.origin);
  out += fmt::format("  guided execution      <{}>, <{}> -> {{{}}} ({})\n", printable(step.inputs), printable(step.schedule), printable(step.path),
                     step.tested ? "tested" : "new");
  if (!step.divergence.empty()) out += fmt::format("                        diverged: {}\n", printable(step.divergence));
  if (!step.failure.empty()) out += fmt::format("                        the run failed: {}\n", printable(step.failure));
  if (!step.explicit_pairs.empty()) {
    out += fmt::format("                        explicit {}\n", pairs_text(known, step.explicit_pairs));
    out += fmt::format("                        covers   {}\n", escorts_text(known, step.covered_explicit));
  }
  if (!step.tested) {
    out += fmt::format("  predictive analysis   implicit {}\n", pairs_text(known, step.implicit_pairs));
    out += fmt::format("                        covers   {}\n", escorts_text(known, step.covered_implicit));
    out += fmt::format("                        new      {}\n", pairs_text(known, step.fresh));
    out += fmt::format("  alternate branches    may cover {}\n", escorts_text(known, step.work));
  }
  out += fmt::format("                        Sigma    {}\n", escorts_text(known, step.open));
  std::string omega;
  for (const std::string& test : step.omega) omega += (omega.empty() ? "" : "; ") + printable(test);
  return out + fmt::format("                        Omega    {{{}}}\n", omega);
}

std::string render(const Knowledge& known, const LoopResult& result, bool all) {
  std::string out;
  if (!result.findings.empty()) out += fmt::format("Findings ({})\n", result.findings.size());
  for (const FoundFailure& f : result.findings) {
    out += fmt::format("  f{}  {}\n", f.id, failure_text(f));
    std::string more;
    if (f.execution >= 0) more += fmt::format("found by run {}", f.execution);
    if (f.switches >= 0) more += fmt::format("{}its test has {} switch{} of threads", more.empty() ? "" : "; ", f.switches, f.switches == 1 ? "" : "es");
    out += fmt::format("      {}{}stem replay f{}\n", more, more.empty() ? "" : "; ", f.id);
  }
  if (all) {
    out += fmt::format("Pairs found ({})\n", result.found);
    for (const auto& [pair, found] : known.found())
      if (known.shared(pair.use)) out += fmt::format("  {:20}  {}\n", state_text(found), printable(pair_text(known, pair)));
  }
  size_t infeasible = 0, open = 0;
  for (const Knowledge::Potential& pair : known.potential()) infeasible += pair.refuted, open += !pair.found && !pair.refuted;
  const auto list = [&](const char* title, size_t count, bool refuted) {
    if (!count) return;
    out += fmt::format("{} ({})\n", title, count);
    size_t told = 0;
    for (const Knowledge::Potential& pair : known.potential()) {
      if (pair.found || pair.refuted != refuted) continue;
      if (told++ == 10 && !all) {
        out += fmt::format("  and {} more (--all)\n", count - 10);
        break;
      }
      out += fmt::format("  {}\n", printable(pair_text(known, key_of(known, pair))));
    }
  };
  list("Infeasible: no input and no schedule shows them", infeasible, true);
  list("Not found within what was tried", open, false);
  const auto escort_list = [&](const char* title, size_t count, bool refuted) {
    if (!count) return;
    out += fmt::format("{} ({})\n", title, count);
    size_t told = 0;
    for (const Knowledge::Escort& escort : known.escorts()) {
      if (escort.by || escort.infeasible != refuted) continue;
      if (told++ == 10 && !all) {
        out += fmt::format("  and {} more (--all)\n", count - 10);
        break;
      }
      out += fmt::format("  {}\n", escort_text(known, escort.pair));
    }
  };
  escort_list("Infeasible escort branch pairs", result.escorts_infeasible, true);
  escort_list("Escort branch pairs not covered", result.escorts - result.escorts_covered - result.escorts_infeasible, false);
  const auto& dead = known.program().dead_definitions;
  if (!dead.empty()) out += fmt::format("Definitions that no read can use ({})\n", dead.size());
  for (uint32_t site : dead)
    out += fmt::format("  {} at {}\n", printable(known.program().sites[site].text), place_text(known.program().sites[site].file, known.program().sites[site].line));
  if (!result.divergences.empty()) out += fmt::format("Tests that the program did not follow ({})\n", result.divergences.size());
  for (size_t i = 0; i < result.divergences.size() && (all || i < 5); ++i) out += fmt::format("  {}\n", printable(result.divergences[i]));
  if (open && !result.limits.empty()) {
    out += "Why they are not refuted\n";
    for (size_t i = 0; i < result.limits.size() && (all || i < 5); ++i) out += fmt::format("  {}\n", printable(result.limits[i]));
  }
  out += fmt::format("{:>6}{:>10}{:>14}{:>7}{:>10}{:>11}{:>12}{:>9}{:>10}{:>8}{:>6}\n", "runs", "findings", "escort pairs", "pairs", "implicit", "confirmed",
                     "infeasible", "unknown", "solver s", "time s", "MB");
  out += fmt::format("{:>6}{:>10}{:>14}{:>7}{:>10}{:>11}{:>12}{:>9}{:>10.2f}{:>8.1f}{:>6}\n", result.figures.executions, result.findings.size(),
                     fmt::format("{}/{}", result.escorts_covered, result.escorts), result.found, result.implicit_pairs, result.confirmed, result.infeasible,
                     result.unknown, result.figures.solver_seconds, result.figures.seconds, result.figures.memory_kb / 1024);
  return out + ended_text(result) + "\n";
}

json to_json(const Knowledge& known, const LoopResult& result) {
  json findings = json::array(), pairs = json::array(), escorts = json::array(), dead = json::array(), missing = json::array();
  for (const FoundFailure& f : result.findings)
    findings.push_back({{"id", fmt::format("f{}", f.id)}, {"kind", f.kind}, {"message", valid_utf8(failure_text(f))}, {"execution", f.execution},
                        {"switches", f.switches}, {"file", valid_utf8(f.file)}, {"line", f.line}, {"thread", f.thread}});
  const auto end = [&](uint64_t key) -> json {
    if (key == kInitialKey) return {{"initial", true}};
    if (key == kInputKey) return {{"input", true}};
    const uint32_t index = known.site(key);
    if (index == trace::kNone) return {{"key", fmt::format("{:016x}", key)}};
    const analysis::StaticSite& site = known.program().sites[index];
    return {{"key", fmt::format("{:016x}", key)}, {"file", valid_utf8(site.file)}, {"line", site.line}, {"function", valid_utf8(site.function)}};
  };
  for (const auto& [pair, found] : known.found())
    if (known.shared(pair.use))
      pairs.push_back({{"variable", valid_utf8(pair.variable)}, {"def", end(pair.def)}, {"use", end(pair.use)}, {"state", state_text(found)}});
  for (const Knowledge::Potential& pair : known.potential()) {
    if (pair.found) continue;
    const PairKey key = key_of(known, pair);
    missing.push_back({{"variable", valid_utf8(pair.variable)}, {"def", end(key.def)}, {"use", end(key.use)},
                       {"state", pair.refuted ? "infeasible" : "not found"}, {"detail", valid_utf8(pair.bound)}});
  }
  for (const Knowledge::Escort& escort : known.escorts())
    escorts.push_back({{"def", outcome_text(known, escort.pair.def)}, {"use", outcome_text(known, escort.pair.use)},
                       {"state", escort.by ? "covered" : escort.infeasible ? "infeasible" : "not found"}});
  for (uint32_t site : known.program().dead_definitions) dead.push_back(end(known.program().sites[site].key));
  const db::Figures& f = result.figures;
  return {{"stem_exploration", 1},
          {"ended", f.ended},
          {"goal", f.goal},
          {"executions", f.executions},
          {"repeated", f.repeated},
          {"minimising", f.minimising},
          {"diverged", f.diverged},
          {"seconds", f.seconds},
          {"solver_seconds", f.solver_seconds},
          {"memory_kb", f.memory_kb},
          {"session", {{"executions", result.executions}, {"seconds", result.seconds}, {"solver_seconds", result.solver_seconds}}},
          {"omega", result.omega},
          {"escort", {{"total", result.escorts}, {"covered", result.escorts_covered}, {"infeasible", result.escorts_infeasible}, {"list", escorts}}},
          {"pairs", {{"potential", result.potential}, {"found", result.found}, {"explicit", result.explicit_pairs}, {"implicit", result.implicit_pairs},
                     {"confirmed", result.confirmed}, {"infeasible", result.infeasible}, {"unknown", result.unknown}, {"list", pairs}, {"missing", missing}}},
          {"dead_definitions", dead},
          {"divergences", result.divergences},
          {"limits", result.limits},
          {"findings", findings}};
}

}  // namespace stem::cli
