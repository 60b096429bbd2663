// stem-oracle --subject NAME [--seed N] [--programs N] [--save DIR]: compares a predictor with brute force.
// stem-oracle --show | --emit | --follow TRACE | --rule TRACE --seed N: one program and its trace; the program as C; is TRACE a
// recording of it; is what a recording without semantics allows predicted exactly?
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "oracle/rule.h"
#include "oracle/subjects.h"
#include "trace/reader.h"
#include "trace/text.h"

using namespace stem;

int main(int argc, char** argv) {
  oracle::Plan plan;
  std::string name = "none";
  std::string recording, blunt;
  bool show = false, emit = false;
  CLI::App app("Compares a predictor with the brute force on random programs");
  app.add_option("--subject", name, "Which predictor");
  app.add_option("--seed", plan.first_seed, "First seed");
  app.add_option("--programs", plan.programs, "How many programs");
  app.add_option("--limit", plan.limit, "Skip a program with more states than this");
  app.add_option("--save", plan.save, "Folder for shrunk failures");
  app.add_flag("--show", show, "Print the program and trace of the first seed, and stop");
  app.add_flag("--emit", emit, "Print the program of the first seed as C, and stop");
  app.add_option("--follow", recording, "A recording of the program of the first seed: does it show what the program does?");
  app.add_option("--rule", blunt, "A recording without semantics of the program of the first seed: is what is predicted from it exactly what its pins allow, and nothing that the program excludes?");
  CLI11_PARSE(app, argc, argv);

  if (show) {
    const oracle::Program program = oracle::generate(plan.first_seed);
    fmt::print("{}\n{}", oracle::print(program), trace::print(oracle::interpret(program, plan.first_seed)));
    return 0;
  }
  if (emit) {
    fmt::print("{}", oracle::emit_c(oracle::generate(plan.first_seed)));
    return 0;
  }
  if (!recording.empty()) {
    const std::string wrong = oracle::follow(oracle::generate(plan.first_seed), trace::load(recording)).wrong;
    if (!wrong.empty()) fmt::print("seed {}: {}\n", plan.first_seed, wrong);
    return wrong.empty() ? 0 : 1;
  }
  if (!blunt.empty()) {
    const oracle::Rule rule = oracle::check_rule(oracle::generate(plan.first_seed), trace::load(blunt), plan.limit);
    if (!rule.wrong.empty()) fmt::print("seed {}: {}\n", plan.first_seed, rule.wrong);
    else if (rule.skipped) fmt::print("skipped: more than {} states\n", plan.limit);
    else fmt::print("pairs: {} observed, {} by the rule, {} by what the program means\n", rule.observed, rule.allowed, rule.meant);
    return rule.wrong.empty() ? 0 : 1;
  }
  for (const oracle::Subject& subject : oracle::subjects()) {
    if (subject.name != name) continue;
    const oracle::Tally t = oracle::compare(plan, subject);
    fmt::print("{}: {} programs ({} larger than {} states skipped), {} events, {} states, {} deadlocks\n", name, t.programs,
               t.skipped, plan.limit, t.events, t.states, t.deadlocks);
    fmt::print("pairs: {} observed, {} PREFIX, {} FULL; {} runs of the programs showed {} flows the oracle has\n", t.observed,
               t.prefix_pairs, t.full_pairs, t.sampled_runs, t.sampled_pairs);
    fmt::print("branches: {} can go the other way; the runs showed {} of them\n", t.alternates, t.sampled_alternates);
    fmt::print("seconds: oracle {:.1f}, {} {:.1f}\ndisagreements: {}\n", t.oracle_seconds, name, t.subject_seconds, t.failures);
    return t.failures ? 1 : 0;
  }
  fmt::print(stderr, "oracle: no subject {}\n", name);
  return 2;
}
