#include "cli/analysis_output.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include "trace/test_file.h"
#include "tracer/launch/message.h"
#include "util/text.h"

namespace stem::cli {

using nlohmann::json;
using predictor::PairResult;
using predictor::State;

namespace {

std::string place(const trace::Trace& trace, const predictor::AccessInfo& access) {
  if (access.initial) return "initial value";
  const trace::Site& site = trace.sites[access.site];
  const std::string line = launch::source_line(site);
  return printable(site.function.empty() ? line : fmt::format("{} ({})", line, site.function));
}

std::string verdict(const PairResult& p) {
  std::string text = predictor::state_name(p.state);
  if (p.state == State::Unknown) text += fmt::format(" ({})", predictor::why_text(p.why));
  if (p.state == State::Infeasible && !p.bound.whole) text += " within a bound";
  return text;
}

std::string notes(const PairResult& p) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (p.state != State::Infeasible && !p.def.initial) add(predictor::relation_name(p.relation));
  if (p.state == State::Explicit) add(fmt::format("seen {} time{}", p.observed, p.observed == 1 ? "" : "s"));
  const bool bounded = p.state == State::Infeasible && !p.bound.whole;
  if ((p.state == State::Unknown || p.state == State::Diverged || bounded) && !p.detail.empty()) add(printable(p.detail));
  return text;
}

bool shown(const PairResult& p, bool all) { return all || (p.state != State::Explicit && p.state != State::Infeasible); }

std::string statistics(const predictor::AnalysisResult& result) {
  const predictor::Statistics& s = result.statistics;
  std::string out = fmt::format("  {} events, {} accesses, {} pieces of memory\n  {} static candidates, {} event pairs\n",
                                s.events, s.accesses, s.atoms, s.candidates, s.instances);
  for (const auto& [layer, n] : s.decided) out += fmt::format("  decided by {:<11} {}\n", predictor::layer_name(layer), n);
  out += fmt::format("  {} windows, {} questions to the engine, {} states enumerated, {} questions to the solver\n", s.windows, s.queries,
                     s.states, s.solver_queries);
  out += fmt::format("  {:.3f} s in all, {:.3f} s in the solver, {:.0f} candidates/s\n", s.seconds, s.solver_seconds,
                     s.seconds > 0 ? static_cast<double>(s.candidates) / s.seconds : 0.0);
  if (s.rejected) out += fmt::format("  {} witnesses refused by the checker: please report this\n", s.rejected);
  return out;
}

json site_json(const trace::Trace& trace, const predictor::AnalysisResult& result, const predictor::AccessInfo& access) {
  if (access.initial) return {{"initial", true}};
  json event;  // none: no instance was near enough to be looked at
  if (access.event != trace::kNone) event = result.numbers.empty() ? access.event : result.numbers[access.event];
  const trace::Site& site = trace.sites[access.site];
  return {{"file", valid_utf8(site.file)}, {"line", site.line}, {"column", site.column}, {"function", valid_utf8(site.function)},
          {"text", valid_utf8(site.text)}, {"key", fmt::format("{:016x}", site.key)}, {"thread", access.thread},
          {"locks", access.locks}, {"event", event}};
}

}  // namespace

// As a recorder of binaries says it (tracer/binary/guided.c): such a pair is no mistake of the prediction, only nothing that can be forced.
constexpr const char* kOneInstruction = "one instruction makes several accesses";

std::string render(const trace::Trace& trace, const predictor::AnalysisResult& result, const PrintOptions& options) {
  std::map<State, size_t> counts;
  size_t within = 0, torn = 0;
  std::string out;
  const std::string* variable = nullptr;
  for (const PairResult& p : result.pairs) {
    ++counts[p.state];
    within += p.state == State::Infeasible && !p.bound.whole;
    torn += p.state == State::Diverged && p.detail.find(kOneInstruction) != std::string::npos;
    if (!shown(p, options.all)) continue;
    if (!variable || *variable != p.variable) out += printable(p.variable) + "\n", variable = &p.variable;
    out += fmt::format("  {:<21} {} -> {}", verdict(p), place(trace, p.def), place(trace, p.use));
    if (const std::string more = notes(p); !more.empty()) out += "   " + more;
    out += "\n";
  }
  const size_t implicit = counts[State::Implicit] + counts[State::Confirmed] + counts[State::Diverged];
  out += fmt::format("{} explicit, {} implicit", counts[State::Explicit], implicit);
  if (counts[State::Confirmed] + counts[State::Diverged])
    out += fmt::format(" ({} confirmed by replay, {} diverged{})", counts[State::Confirmed], counts[State::Diverged] - torn,
                       torn ? fmt::format(", {} inside one instruction", torn) : "");
  out += fmt::format(", {} unknown, {} infeasible", counts[State::Unknown], counts[State::Infeasible] - within);
  if (within) out += fmt::format(", {} infeasible within a bound", within);
  out += "\n";
  for (const std::string& note : result.notes) out += "note: " + printable(note) + "\n";
  if (result.interrupted) out += "interrupted: what was decided until then stands\n";
  if (options.stats) out += statistics(result);
  return out;
}

json to_json(const trace::Trace& trace, const predictor::AnalysisResult& result) {
  json pairs = json::array();
  for (const PairResult& p : result.pairs) {
    json o = {{"variable", valid_utf8(p.variable)}, {"def", site_json(trace, result, p.def)}, {"use", site_json(trace, result, p.use)},
              {"state", predictor::state_name(p.state)}, {"layer", predictor::layer_name(p.layer)},
              {"relation", p.def.initial ? "initial" : p.use.event == trace::kNone ? "unknown" : predictor::relation_name(p.relation)}, {"instances", p.instances},
              {"observed", p.observed}, {"tried", p.tried}};
    if (p.state == State::Unknown) o["reason"] = predictor::why_text(p.why);
    if (!p.detail.empty()) o["detail"] = valid_utf8(p.detail);
    if (p.state == State::Infeasible) o["bound"] = p.bound.whole ? json("trace") : json({{"window", p.bound.last - p.bound.first}});
    if (p.witness) {
      const trace::Test test = predictor::test_of(trace, *p.witness);
      o["witness"] = json::parse(trace::to_json(test));
    }
    pairs.push_back(std::move(o));
  }
  const predictor::Statistics& s = result.statistics;
  json decided = json::object();
  for (const auto& [layer, n] : s.decided) decided[predictor::layer_name(layer)] = n;
  return {{"program", valid_utf8(trace.meta.program)}, {"pairs", std::move(pairs)}, {"notes", result.notes},
          {"interrupted", result.interrupted},
          {"statistics", {{"events", s.events}, {"accesses", s.accesses}, {"candidates", s.candidates}, {"instances", s.instances},
                          {"decided", decided}, {"windows", s.windows}, {"queries", s.queries}, {"states", s.states},
                          {"solver_queries", s.solver_queries}, {"seconds", s.seconds}, {"solver_seconds", s.solver_seconds},
                          {"rejected", s.rejected}}}};
}

}  // namespace stem::cli
