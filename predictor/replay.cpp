// From a witness to a test of the real program, and from the run of that test back to the pair.
#include <algorithm>
#include <map>

#include "predictor/analysis.h"

namespace stem::predictor {

using trace::Kind;

void RecordedRun::add(const trace::Event& e, size_t threads) {
  if (turns.empty() || turns.back().thread != e.thread || turns.back().wakes || turns.back().count == UINT32_MAX) turns.push_back({e.thread});
  Turn& turn = turns.back();
  ++turn.count;
  turn.site = e.site, turn.kind = e.kind;
  if (e.kind == Kind::Signal && e.value && e.value <= threads) turn.wakes = static_cast<uint32_t>(e.value);
}

trace::Test test_of(const trace::Trace& trace, const Witness& witness) {
  trace::Test test = trace::test_of(trace);  // program, arguments, what the outside world answered
  test.inputs = witness.inputs;
  test.schedule.clear();
  if (witness.run) {
    test.feed = witness.run->feed;
    uint64_t left = witness.after;
    for (const RecordedRun::Turn& turn : witness.run->turns) {
      if (left == 0) break;
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(turn.count, left));
      trace::Step step{trace.threads[turn.thread].path, count, 0, std::nullopt, ""};
      if (count == turn.count) {
        step.site = turn.site ? trace.sites[turn.site].key : 0, step.kind = turn.kind;
        if (turn.wakes) step.wakes = trace.threads[turn.wakes - 1].path;
      }
      test.schedule.push_back(std::move(step));
      left -= count;
    }
  }
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

bool shows(trace::Reader& run, const trace::Trace& trace, const PairResult& pair) {
  const uint64_t use = trace.sites[pair.use.site].key;
  const uint64_t def = pair.def.initial ? 0 : trace.sites[pair.def.site].key;
  std::map<std::pair<uint32_t, uint64_t>, trace::SiteId> writers;  // of bytes, where somebody wrote them
  for (trace::Reader::Item item; (item = run.next()) != trace::Reader::Item::End;) {
    if (item != trace::Reader::Item::Event) continue;
    const trace::Event& e = run.event();
    const bool reads = e.kind == Kind::Read || e.kind == Kind::Rmw;
    const bool writes = e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External;
    if (reads && run.sites()[e.site].key == use && !(e.variable < run.variables().size() && run.variables()[e.variable] != pair.variable))
      for (unsigned k = 0; k < e.size; ++k) {
        const auto writer = writers.find({e.object, e.addr + k});
        if (writer == writers.end() ? pair.def.initial : !pair.def.initial && run.sites()[writer->second].key == def) return true;
      }
    for (unsigned k = 0; k < e.size && writes; ++k) writers[{e.object, e.addr + k}] = e.site;
  }
  return false;
}

}  // namespace stem::predictor
