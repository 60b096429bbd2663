// stem-oracle --subject NAME [--seed N] [--programs N] [--save DIR]: compares a predictor with brute force.
// stem-oracle --show | --emit | --follow TRACE --seed N: one program and its trace; the program as C; is TRACE a recording of it?
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "oracle/subjects.h"
#include "trace/reader.h"
#include "trace/text.h"

using namespace stem;

int main(int argc, char** argv) {
  oracle::Plan plan;
  std::string name = "none";
  std::string recording;
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
    const std::string wrong = oracle::follow(oracle::generate(plan.first_seed), trace::load(recording));
    if (!wrong.empty()) fmt::print("seed {}: {}\n", plan.first_seed, wrong);
    return wrong.empty() ? 0 : 1;
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
