#include "oracle/subjects.h"

#include "predictor/checker.h"
#include "util/error.h"

namespace stem::oracle {

namespace {

// Every candidate pair asked of Z3 over the whole trace, every witness checked.
std::set<EventPair> ask_encoder(const trace::Trace& trace, const encoder::Options& options) {
  std::set<EventPair> found;
  encoder::Encoder encoder(trace, options);
  const predictor::Checker checker(trace);
  for (const EventPair& pair : candidates(trace)) {
    const encoder::Answer answer = encoder.decide(pair.write, pair.read);
    if (answer.kind == encoder::Answer::Kind::Unknown) user_error("{}: unknown: {}", answer.name, answer.reason);
    if (answer.kind != encoder::Answer::Kind::Feasible) continue;
    found.insert(pair);
    predictor::Witness witness{pair, answer.inputs, answer.schedule, {}};
    predictor::assign_wakeups(trace, witness);
    if (auto rejection = checker.check(witness, options.meaning))
      user_error("{}: the checker refuses step {}: {}", answer.name, rejection->step, rejection->reason);
  }
  return found;
}

}  // namespace

std::vector<Subject> subjects() {
  return {
      {"encoder",
       [](const trace::Trace& trace, Meaning meaning) {
         encoder::Options options;
         options.meaning = meaning;
         options.timeout_ms = 0;
         return ask_encoder(trace, options);
       }},
      // The paper's formula means FULL; it is asked nothing else.
      {"paper",
       [](const trace::Trace& trace, Meaning) {
         encoder::Options options;
         options.meaning = Meaning::Full;
         options.paper = true;
         options.timeout_ms = 0;
         return ask_encoder(trace, options);
       },
       false},
      // The oracle alone: against the recording and against runs of the programs.
      {"none", [](const trace::Trace&, Meaning) { return std::set<EventPair>{}; }, false, false},
  };
}

}  // namespace stem::oracle
