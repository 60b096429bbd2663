#include "oracle/harness.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <map>

#include "oracle/shrink.h"
#include "trace/text.h"
#include "util/error.h"

namespace stem::oracle {

using trace::Event;
using trace::Kind;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool reads(const Event& e) { return e.kind == Kind::Read || e.kind == Kind::Rmw; }
bool writes(const Event& e) { return e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External; }

std::string text(const EventPair& pair) {
  return pair.write == predictor::kInitial ? fmt::format("(initial, @{})", pair.read)
                                           : fmt::format("(@{}, @{})", pair.write, pair.read);
}

std::string difference(const trace::Trace& trace, const std::set<EventPair>& expected, const std::set<EventPair>& found) {
  std::string out;
  for (const EventPair& pair : expected)
    if (!found.count(pair) && !on_tainted_object(trace, pair)) out += " missing " + text(pair);
  for (const EventPair& pair : found)
    if (!expected.count(pair) && !on_tainted_object(trace, pair)) out += " extra " + text(pair);
  return out;
}

// What is wrong with the subject's answers, or nothing.
std::string disagreement(const Subject& subject, const trace::Trace& trace, const Truth& truth) {
  std::string out;
  try {
    if (subject.prefix) {
      const std::string wrong = difference(trace, truth.prefix, subject.predict(trace, Meaning::Prefix));
      if (!wrong.empty()) out += " PREFIX:" + wrong;
    }
    if (subject.full) {
      const std::string wrong = difference(trace, truth.full, subject.predict(trace, Meaning::Full));
      if (!wrong.empty()) out += " FULL:" + wrong;
    }
    if (subject.alternates) {
      const std::set<uint32_t> found = subject.alternates(trace);
      std::string wrong;
      for (uint32_t e : truth.alternates)
        if (!found.count(e)) wrong += fmt::format(" missing @{}", e);
      for (uint32_t e : found)
        if (!truth.alternates.count(e)) wrong += fmt::format(" extra @{}", e);
      if (!wrong.empty()) out += " BRANCHES:" + wrong;
    }
  } catch (const std::exception& error) {
    out += fmt::format(" threw: {}", error.what());
  }
  return out;
}

void save(const Plan& plan, const Subject& subject, uint64_t seed, const Program& program, const std::string& wrong) {
  const trace::Trace trace = interpret(program, seed);
  const std::string path = fmt::format("{}/oracle-{}-{}.trace.txt", plan.save, subject.name, seed);
  std::ofstream file(path);
  std::string comment = "; " + wrong + "\n" + print(program);
  for (size_t at = comment.find('\n'); at != std::string::npos && at + 1 < comment.size(); at = comment.find('\n', at + 1))
    comment.replace(at, 1, "\n; ");
  file << trace::print(trace) << comment;
  fmt::print(stderr, "{}: seed {}:{}\n{}saved as {}\n", subject.name, seed, wrong, print(program), path);
}

}  // namespace

bool on_tainted_object(const trace::Trace& trace, const EventPair& pair) {
  const Event& read = trace.events.at(pair.read);
  for (const Event& e : trace.events)
    if (e.object == read.object && (e.kind == Kind::External || e.flags & trace::kTainted)) return true;
  return false;
}

std::set<EventPair> observed_pairs(const trace::Trace& trace) {
  std::set<EventPair> pairs;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> writer;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (!reads(e) && !writes(e)) continue;
    for (unsigned k = 0; k < e.size; ++k) {
      auto [last, fresh] = writer.try_emplace({e.object, e.addr + k}, predictor::kInitial);
      if (reads(e)) pairs.insert({last->second, i});
      if (writes(e)) last->second = i;
    }
  }
  return pairs;
}

std::set<EventPair> candidates(const trace::Trace& trace) {
  std::set<EventPair> pairs;
  for (uint32_t r = 0; r < trace.events.size(); ++r) {
    const Event& read = trace.events[r];
    if (!reads(read)) continue;
    pairs.insert({predictor::kInitial, r});
    for (uint32_t w = 0; w < trace.events.size(); ++w) {
      const Event& write = trace.events[w];
      if (writes(write) && w != r && write.object == read.object && write.addr < read.addr + read.size &&
          read.addr < write.addr + write.size)
        pairs.insert({w, r});
    }
  }
  return pairs;
}

Tally compare(const Plan& plan, const Subject& subject) {
  Tally tally;
  for (uint64_t seed = plan.first_seed; tally.programs < plan.programs; ++seed) {
    const Program program = generate(seed);
    const trace::Trace trace = interpret(program, seed);
    auto start = Clock::now();
    const std::optional<Truth> truth = enumerate(trace, all_inputs(program), plan.limit);
    tally.oracle_seconds += since(start);
    if (!truth) {
      ++tally.skipped;
      continue;
    }
    ++tally.programs;
    tally.events += trace.events.size(), tally.states += truth->states;
    tally.prefix_pairs += truth->prefix.size(), tally.full_pairs += truth->full.size();
    tally.alternates += truth->alternates.size();
    tally.deadlocks += trace.outcome == trace::Outcome::Deadlock;
    const auto observed = observed_pairs(trace);
    tally.observed += observed.size();

    std::string wrong;
    for (const EventPair& pair : observed)
      if (!truth->prefix.count(pair) || !truth->full.count(pair)) wrong += " the oracle misses the observed " + text(pair);
    if (auto unseen = sample(program, trace, *truth, seed, 20, tally)) wrong += *unseen;
    start = Clock::now();
    if (wrong.empty()) wrong = disagreement(subject, trace, *truth);
    tally.subject_seconds += since(start);
    if (wrong.empty()) continue;
    ++tally.failures;
    const Program small = shrink(program, [&](const Program& smaller) {
      const trace::Trace t = interpret(smaller, seed);
      const auto small_truth = enumerate(t, all_inputs(smaller), plan.limit);
      if (!small_truth) return false;
      for (const EventPair& pair : observed_pairs(t))
        if (!small_truth->prefix.count(pair) || !small_truth->full.count(pair)) return true;
      Tally ignored;
      if (sample(smaller, t, *small_truth, seed, 20, ignored)) return true;
      return !disagreement(subject, t, *small_truth).empty();
    });
    save(plan, subject, seed, small, wrong);
  }
  return tally;
}

std::optional<std::string> sample(const Program& program, const trace::Trace& trace, const Truth& truth, uint64_t seed,
                                  size_t runs, Tally& tally) {
  // Where the trace says less than the program does, a run may go where the trace cannot follow.
  for (const trace::Expr& e : trace.exprs)
    if (e.op == trace::Op::Opaque) return std::nullopt;
  for (const Event& e : trace.events)
    if (e.kind == Kind::External || ((reads(e) || writes(e)) && !trace.objects[e.object].zeroed)) return std::nullopt;

  std::vector<std::vector<uint32_t>> recorded(trace.threads.size());
  for (uint32_t i = 0; i < trace.events.size(); ++i) recorded[trace.events[i].thread].push_back(i);
  for (size_t run = 0; run < runs; ++run) {
    const trace::Trace other = interpret(program, seed * 1000 + run);
    ++tally.sampled_runs;
    std::vector<size_t> at(trace.threads.size());
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> writer;
    for (const Event& e : other.events) {
      if (e.thread >= at.size() || at[e.thread] == recorded[e.thread].size()) break;
      const uint32_t same = recorded[e.thread][at[e.thread]++];
      const Event& r = trace.events[same];
      if (e.kind != r.kind || e.site != r.site || e.addr != r.addr || e.flags != r.flags) break;
      const bool access = reads(e) || writes(e);
      for (unsigned k = 0; access && k < e.size; ++k) {
        auto [last, fresh] = writer.try_emplace({e.object, e.addr + k}, predictor::kInitial);
        const EventPair pair{last->second, same};
        if (reads(e)) ++tally.sampled_pairs;
        if (reads(e) && !truth.prefix.count(pair)) return " the oracle misses " + text(pair) + ", which a run shows";
        if (writes(e)) last->second = same;
      }
      const bool told = e.kind == Kind::Signal || e.kind == Kind::Broadcast || e.kind == Kind::Wake || e.kind == Kind::Write ||
                        (access && !(e.flags & trace::kPinned));
      if (!told && e.value != r.value) {
        const bool decides = e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert;
        tally.sampled_alternates += decides;
        if (decides && !truth.alternates.count(same)) return fmt::format(" the oracle misses that @{} goes the other way, which a run shows", same);
        break;
      }
    }
  }
  return std::nullopt;
}

}  // namespace stem::oracle
