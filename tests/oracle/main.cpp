// stem-oracle --subject NAME [--seed N] [--programs N] [--save DIR] [--show]: compares a predictor with brute force.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "oracle/subjects.h"
#include "trace/text.h"

using namespace stem;

int main(int argc, char** argv) {
  oracle::Plan plan;
  std::string name = "none";
  bool show = false;
  CLI::App app("Compares a predictor with the brute force on random programs");
  app.add_option("--subject", name, "Which predictor")->required();
  app.add_option("--seed", plan.first_seed, "First seed");
  app.add_option("--programs", plan.programs, "How many programs");
  app.add_option("--limit", plan.limit, "Skip a program with more states than this");
  app.add_option("--save", plan.save, "Folder for shrunk failures");
  app.add_flag("--show", show, "Print the program and trace of the first seed, and stop");
  CLI11_PARSE(app, argc, argv);

  if (show) {
    const oracle::Program program = oracle::generate(plan.first_seed);
    fmt::print("{}\n{}", oracle::print(program), trace::print(oracle::interpret(program, plan.first_seed)));
    return 0;
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
