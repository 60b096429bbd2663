// From a witness to a test of the real program, and from the run of that test back to the pair.
#include <map>

#include "predictor/analysis.h"
#include "predictor/model.h"

namespace stem::predictor {

using trace::Kind;

trace::Test test_of(const trace::Trace& trace, const Witness& witness) {
  trace::Test test = trace::test_of(trace);  // program, arguments, what the outside world answered
  test.inputs = witness.inputs;
  test.schedule.clear();
  std::map<uint32_t, uint32_t> woken;
  for (const Wakeup& w : witness.wakeups) woken[w.signal] = w.wake;
  for (uint32_t index : witness.schedule) {
    const trace::Event& e = trace.events[index];
    if (!trace::is_visible(e.kind)) continue;
    std::string wakes;
    if (const auto it = woken.find(index); it != woken.end()) wakes = trace.threads[trace.events[it->second].thread].path;
    trace::extend(test.schedule, trace.threads[e.thread].path, e.site ? &trace.sites[e.site] : nullptr, e.kind, wakes);
  }
  return test;
}

bool shows(const trace::Trace& run, const trace::Trace& trace, const PairResult& pair) {
  const Model model(run);
  const uint64_t use = trace.sites[pair.use.site].key;
  const uint64_t def = pair.def.initial ? 0 : trace.sites[pair.def.site].key;
  for (uint32_t r = 0; r < run.events.size(); ++r) {
    const trace::Event& e = run.events[r];
    if (!model.atom_count[r] || !model.is_read(r) || run.sites[e.site].key != use) continue;
    if (e.variable < run.variables.size() && run.variables[e.variable] != pair.variable) continue;
    for (unsigned k = 0; k < model.atom_count[r]; ++k) {
      const uint32_t w = model.sources[model.sources_at[r] + k];
      if (pair.def.initial ? w == kFromStart : w != kFromStart && run.sites[run.events[w].site].key == def) return true;
    }
  }
  return false;
}

}  // namespace stem::predictor
