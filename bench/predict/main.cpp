// bench-predict: how fast predictions are, and whether they stay what they should be.
//
//   (a) all candidate event pairs of a trace, FULL: at least 1000 times faster than the paper's formula with a fresh solver for
//       each, at the largest size that the latter finishes in --limit seconds; the same verdicts. PREFIX is printed beside it.
//   (b) static pairs of long traces (locked, phased): 10^6 shared events within 60 s and 2 GB, growth no worse than n^1.2, at
//       most 1 % unknown, and no pair that is feasible at 10^4 is lost at 10^6.
//
//   (c) the same for the queue and the random shape, whose branches depend on what is read: no more than 1 % unknown.
//
// Exit code 1 when a bar is missed. Smaller --limit and --largest give a quick run.
#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <set>

#include "encoder/encoder.h"
#include "predictor/all_pairs.h"
#include "predictor/analysis.h"
#include "shapes.h"

using namespace stem;
using predictor::Layer;
using predictor::Meaning;
using predictor::State;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Bars {
  bool ok = true;
  void check(bool held, const std::string& what) {
    fmt::print("  {} {}\n", held ? "ok  " : "FAIL", what);
    ok &= held;
  }
};

std::string layers(const std::map<Layer, uint64_t>& decided, uint64_t all) {
  std::string out;
  for (const auto& [layer, n] : decided)
    out += fmt::format("{}{} {:.1f}%", out.empty() ? "" : ", ", predictor::layer_name(layer), 100.0 * static_cast<double>(n) / static_cast<double>(std::max<uint64_t>(all, 1)));
  return out;
}

using Verdicts = std::map<predictor::EventPair, bool>;

// The paper's method on every candidate that the recording does not show; nothing if it takes longer than `limit`.
std::optional<double> by_paper(const trace::Trace& trace, const std::map<predictor::EventPair, predictor::Verdict>& candidates,
                               double limit, Verdicts& out) {
  encoder::Options options;
  options.meaning = Meaning::Full;
  options.paper = true;
  options.timeout_ms = static_cast<unsigned>(limit * 1000);
  const double start = now();
  encoder::Encoder encoder(trace, options);
  for (const auto& [pair, unused] : candidates) {
    const encoder::Answer answer = encoder.decide(pair.write, pair.read);
    if (now() - start > limit || answer.kind == encoder::Answer::Kind::Unknown) return std::nullopt;
    out[pair] = answer.kind == encoder::Answer::Kind::Feasible;
  }
  return now() - start;
}

// Best of some runs: what is measured is short, and the machine is not quiet.
double by_engine(const trace::Trace& trace, Meaning meaning, std::map<predictor::EventPair, predictor::Verdict>& out,
                 predictor::LayerCounts& counts) {
  predictor::AllPairsOptions options;
  options.meaning = meaning;
  double best = 1e9, spent = 0;
  for (int i = 0; i < 5 && (i == 0 || spent < 2); ++i) {
    const double start = now();
    out = predictor::decide_all(trace, options, &counts);
    best = std::min(best, now() - start);
    spent += now() - start;
  }
  return best;
}

void bar_a(const bench::Shape& shape, double limit, uint64_t seed, Bars& bars) {
  fmt::print("(a) {}\n", shape.name);
  double size = 16;
  uint32_t best_size = 0;
  double paper_seconds = 0;
  Verdicts paper;
  trace::Trace trace;
  std::map<predictor::EventPair, predictor::Verdict> engine;
  predictor::LayerCounts counts;
  for (;;) {
    trace::Trace next = shape.generate(static_cast<uint32_t>(size), seed);
    Verdicts verdicts;
    by_engine(next, Meaning::Full, engine, counts);
    const auto seconds = by_paper(next, engine, limit, verdicts);
    if (!seconds) break;
    trace = std::move(next), paper = std::move(verdicts), paper_seconds = *seconds, best_size = static_cast<uint32_t>(size);
    // Aim at the limit: the cost grows about with the fourth power.
    const double factor = std::pow(limit / std::max(*seconds, 1e-4), 0.25);
    if (factor < 1.08) break;
    size *= std::min(2.0, std::max(1.08, factor * 0.97));
  }
  const double full = by_engine(trace, Meaning::Full, engine, counts);
  size_t differ = 0, feasible = 0;
  for (const auto& [pair, answer] : paper) {
    const auto it = engine.find(pair);
    differ += it == engine.end() || it->second.is_unknown() || it->second.is_feasible() != answer;
    feasible += answer;
  }
  std::map<predictor::EventPair, predictor::Verdict> prefix;
  predictor::LayerCounts prefix_counts;
  const double prefix_seconds = by_engine(trace, Meaning::Prefix, prefix, prefix_counts);
  size_t prefix_feasible = 0, lost = 0;
  for (const auto& [pair, verdict] : prefix) {
    prefix_feasible += verdict.is_feasible();
    lost += paper[pair] && !verdict.is_feasible();
  }
  fmt::print("  {} shared events, {} candidate event pairs, {} feasible\n", best_size, paper.size(), feasible);
  fmt::print("  paper  {:9.3f} s  {:10.0f} candidates/s\n", paper_seconds, static_cast<double>(paper.size()) / paper_seconds);
  fmt::print("  full   {:9.6f} s  {:10.0f} candidates/s   {}; unknown {}\n", full, static_cast<double>(paper.size()) / full,
             layers(counts.decided, counts.candidates), counts.unknown);
  fmt::print("  prefix {:9.6f} s  {:10.0f} candidates/s   {}; unknown {}; {} feasible\n", prefix_seconds,
             static_cast<double>(paper.size()) / prefix_seconds, layers(prefix_counts.decided, prefix_counts.candidates),
             prefix_counts.unknown, prefix_feasible);
  bars.check(differ == 0, fmt::format("identical verdicts ({} differ)", differ));
  bars.check(lost == 0, fmt::format("PREFIX has all of FULL ({} lost)", lost));
  bars.check(paper_seconds / full >= 1000, fmt::format("{:.0f} times faster (1000)", paper_seconds / full));
}

// For tuning: ours alone, at one size.
void only_ours(const bench::Shape& shape, uint32_t size, uint64_t seed) {
  const trace::Trace trace = shape.generate(size, seed);
  for (const Meaning meaning : {Meaning::Full, Meaning::Prefix}) {
    std::map<predictor::EventPair, predictor::Verdict> verdicts;
    predictor::LayerCounts counts;
    const double seconds = by_engine(trace, meaning, verdicts, counts);
    fmt::print("{} {} {:6} {:9.6f} s, {} candidates: {}; unknown {}\n", shape.name, size, meaning == Meaning::Full ? "full" : "prefix", seconds,
               counts.candidates, layers(counts.decided, counts.candidates), counts.unknown);
  }
}

using Names = std::set<std::string>;

struct Long {
  double seconds = 0;
  uint64_t candidates = 0, unknown = 0, within = 0, infeasible = 0;
  Names feasible;
};

Long analyze_long(const bench::Shape& shape, uint32_t n, uint64_t seed) {
  const trace::Trace trace = shape.generate(n, seed);
  const double start = now();
  const predictor::AnalysisResult result = predictor::analyze(trace);
  Long out;
  out.seconds = now() - start;
  uint64_t implicit = 0;
  for (const auto& p : result.pairs) {
    ++out.candidates;
    out.unknown += p.state == State::Unknown;
    out.within += p.state == State::Infeasible && !p.bound.whole;
    out.infeasible += p.state == State::Infeasible && p.bound.whole;
    implicit += p.state == State::Implicit;
    if (p.state == State::Explicit || p.state == State::Implicit)
      out.feasible.insert(fmt::format("{} {} {}", p.variable, p.def.initial ? 0 : trace.sites[p.def.site].line, trace.sites[p.use.site].line));
  }
  const auto& s = result.statistics;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("  {:>8} shared events ({} in all): {:.2f} s, {} static candidates ({:.0f}/s), {} event pairs\n", n, s.events, out.seconds,
             out.candidates, static_cast<double>(out.candidates) / out.seconds, s.instances);
  fmt::print("           {} feasible ({} implicit), {} infeasible, {} infeasible within windows, {} unknown; {}; {} windows, {} questions, "
             "{} states, {} to the solver ({:.1f} s); peak {} MB\n",
             out.feasible.size(), implicit, out.infeasible, out.within, out.unknown, layers(s.decided, s.candidates), s.windows, s.queries, s.states,
             s.solver_queries, s.solver_seconds, usage.ru_maxrss / 1024);
  for (const auto& note : result.notes)
    if (note.find("bug") != std::string::npos) fmt::print("           {}\n", note);
  return out;
}

void bar_b(const bench::Shape& shape, uint32_t largest, uint64_t seed, Bars& bars) {
  fmt::print("(b) {}\n", shape.name);
  const uint32_t smallest = std::min(10000u, std::max(1000u, largest / 100));
  const Long small = analyze_long(shape, smallest, seed);
  for (uint64_t n = uint64_t{smallest} * 10; n < largest; n *= 10) analyze_long(shape, static_cast<uint32_t>(n), seed);
  const Long large = analyze_long(shape, largest, seed);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  size_t lost = 0;
  for (const std::string& name : small.feasible) lost += !large.feasible.count(name);
  const double growth = std::log(large.seconds / small.seconds) / std::log(static_cast<double>(largest) / smallest);
  bars.check(large.seconds <= 60, fmt::format("{:.1f} s (60)", large.seconds));
  bars.check(usage.ru_maxrss / 1024 <= 2048, fmt::format("{} MB (2048), the trace included", usage.ru_maxrss / 1024));
  bars.check(growth <= 1.2, fmt::format("growth n^{:.2f} (1.2)", growth));
  bars.check(static_cast<double>(large.unknown) <= 0.01 * static_cast<double>(large.candidates),
             fmt::format("{} of {} static candidates unknown (1 %)", large.unknown, large.candidates));
  bars.check(lost == 0, fmt::format("{} pairs feasible at {} lost at {}", lost, smallest, largest));
}

void bar_c(const bench::Shape& shape, uint32_t largest, uint64_t seed, Bars& bars) {
  fmt::print("(c) {}\n", shape.name);
  for (uint64_t n = 100; n <= largest; n *= 10) {
    const Long one = analyze_long(shape, static_cast<uint32_t>(n), seed);
    bars.check(static_cast<double>(one.unknown) <= 0.01 * static_cast<double>(one.candidates),
               fmt::format("{} of {} static candidates unknown (1 %)", one.unknown, one.candidates));
  }
}

}  // namespace

int main(int argc, char** argv) {
  double limit = 60;
  uint32_t largest = 1000000, size = 0;
  uint64_t seed = 1;
  std::string only = "abc", name;
  CLI::App app("How fast predictions are");
  app.add_option("--limit", limit, "Seconds that the paper's method may take at its largest size")->capture_default_str();
  app.add_option("--largest", largest, "Shared events of the longest trace")->capture_default_str();
  app.add_option("--bars", only, "Some of a, b, c")->capture_default_str();
  app.add_option("--size", size, "Only all event pairs of traces of this size, without the paper's method");
  app.add_option("--shape", name, "Only this shape");
  app.add_option("--seed", seed, "Another run of the same programs")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Bars bars;
  for (const bench::Shape& shape : bench::shapes()) {
    if (!name.empty() && name != shape.name) continue;
    if (size) {
      only_ours(shape, size, seed);
      continue;
    }
    const bool has_b = std::string(shape.name) == "locked" || std::string(shape.name) == "phased";
    if (only.find('b') != std::string::npos && has_b) bar_b(shape, largest, seed, bars);
    if (only.find('c') != std::string::npos && !has_b) bar_c(shape, largest, seed, bars);
    if (only.find('a') != std::string::npos) bar_a(shape, limit, seed, bars);
  }
  fmt::print("{}\n", bars.ok ? "all bars held" : "some bar was missed");
  return bars.ok ? 0 : 1;
}
