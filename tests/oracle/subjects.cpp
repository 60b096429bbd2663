#include "oracle/subjects.h"

#include "util/error.h"

namespace stem::oracle {

namespace {

// Every candidate pair asked of Z3 over the whole trace.
std::set<EventPair> ask_encoder(const trace::Trace& trace, const encoder::Options& options) {
  std::set<EventPair> found;
  encoder::Encoder encoder(trace, options);
  for (const EventPair& pair : candidates(trace)) {
    const encoder::Answer answer = encoder.decide(pair.write, pair.read);
    if (answer.kind == encoder::Answer::Kind::Unknown) user_error("{}: unknown: {}", answer.name, answer.reason);
    if (answer.kind == encoder::Answer::Kind::Feasible) found.insert(pair);
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
