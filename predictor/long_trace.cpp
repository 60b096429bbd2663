#include "predictor/long_trace.h"

#include <algorithm>
#include <unordered_map>

#include "predictor/parts.h"
#include "predictor/survey.h"
#include "trace/checker.h"
#include "trace/reader.h"
#include "util/error.h"

namespace stem::predictor {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kOverlap = 8000;  // events: the widest window
constexpr uint32_t kStory = 64;      // events before the first that is out of order, for people

class Parts {
 public:
  Parts(const std::string& path, const AnalysisOptions& options, uint64_t size)
      : path_(path),
        options_(options),
        start_(Clock::now()),
        survey_(options.kept),
        run_(std::make_shared<RecordedRun>()) {
    cutting_.overlap = options.window ? options.window : kOverlap;
    cutting_.size = std::max(size, 2 * cutting_.overlap) - cutting_.overlap;
  }

  LongAnalysis run() {
    survey();
    settle();
    look(true);
    look(false);
    conclude();
    return std::move(out_);
  }

 private:
  struct Pair {
    PairResult result;
    PairName name;
    const SurveyedPair* surveyed = nullptr;
    bool done = false;
    bool left_open = false;        // by some part
    uint32_t within = UINT32_MAX;  // events: the narrowest window that a part refuted it in
  };

  bool interrupted() const { return options_.interrupt && *options_.interrupt; }
  bool stop() const { return interrupted() || (options_.timeout.count() && Clock::now() > start_ + options_.timeout); }
  size_t left() const { return left_; }

  // --- the first reading
  void survey() {
    trace::Reader::Options reading;
    reading.keep_nondets = false;
    trace::Reader reader(path_, reading);
    const trace::ReaderNames names(reader);
    trace::Checker checker(names, 3);
    for (trace::Reader::Item item; (item = reader.next()) != trace::Reader::Item::End;) {
      if (item == trace::Reader::Item::Expr) {
        checker.expr(reader.expr_id(), reader.expr());
        continue;
      }
      const trace::Event& e = reader.event();
      checker.event(reader.event_index(), e);
      survey_.event(reader.event_index(), e);
      if (trace::is_visible(e.kind)) run_->add(e, reader.threads().size());
      if (e.kind == trace::Kind::Nondet && e.value < reader.nondets().size())
        run_->feed.push_back(
            {reader.threads()[e.thread].path, reader.nondets()[e.value].what, reader.nondets()[e.value].bytes});
      ++events_;
      if (events_ % 4096 == 0 && stop()) break;
    }
    surveyed_ = !stop();
    if (surveyed_) checker.finish(reader.outcome(), reader.exit_code(), reader.recovery().complete);
    trace::require(trace::CheckResult{events_, 0, checker.count(), checker.unchecked(), checker.problems()}, path_);
    if (surveyed_ && !reader.recovery().complete)
      out_.result.notes.push_back(
          fmt::format("the trace is not complete ({}); what it holds up to there was analysed", reader.recovery().why));
    survey_.finish();
    trace::Trace& t = out_.trace;
    t.meta = reader.meta();
    t.sites = reader.sites();
    t.threads = reader.threads();
    t.variables = reader.variables();
    t.inputs = reader.inputs();
    t.exprs.push_back({trace::Op::Const, 1, 0, 0, 0, 0});  // stands for any
    t.outcome = reader.outcome(), t.exit_code = reader.exit_code();
  }

  void settle() {
    for (const auto& [name, surveyed] : survey_.pairs) {
      const bool unwanted = options_.skip && options_.skip(name.def, name.use, name.variable);
      if (unwanted && !surveyed.observed) continue;
      index_[name] = pairs_.size();
      Pair& p = pairs_.emplace_back();
      p.name = name, p.surveyed = &surveyed;
      PairResult& r = p.result;
      r.instances = surveyed.instances, r.observed = surveyed.observed;
      r.variable = variable_name(out_.trace, name.variable);
      r.def.initial = name.def == trace::kNone;
      r.def.site = r.def.initial ? 0 : name.def, r.use.site = name.use;
      if (!r.def.initial) r.def.thread = out_.trace.threads[surveyed.def_thread].path;
      r.use.thread = out_.trace.threads[surveyed.use_thread].path;
      if (surveyed.observed)
        r.state = State::Explicit, r.layer = Layer::Observed, p.done = true;
      else if (surveyed.tainted)
        r.why = Why::External, p.done = true;
      left_ += !p.done;
    }
  }

  // --- parts
  bool promising(uint64_t first, uint64_t end) const {
    return std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& p) {
      return !p.done && std::any_of(p.surveyed->kept.begin(), p.surveyed->kept.end(), [&](const auto& k) {
        return k.first >= first && k.first < end && k.second >= first && k.second < end;
      });
    });
  }

  void look(bool show_only) {
    if (!left() || stop() || !surveyed_) return;
    bool all = true;
    each_part(
        path_, cutting_,
        [&](uint64_t first, uint64_t end) { return left() > 0 && !stop() && (!show_only || promising(first, end)); },
        [&](Part&& part) {
          all &= one(part, show_only);
          return left() > 0 && !stop();
        });
    if (!show_only) looked_at_all_ = all && !stop();
  }

  // False: it was not finished.
  bool one(const Part& part, bool show_only) {
    AnalysisOptions options = options_;
    options.meaning = Meaning::Prefix;  // every FULL pair is one
    options.part = true;
    options.from = part.from;
    options.show_only = show_only;
    options.cut = false;
    if (options.timeout.count()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(start_ + options_.timeout - Clock::now());
      options.timeout = std::max(left, std::chrono::milliseconds(1));
    }
    options.skip = [&](trace::SiteId def, trace::SiteId use, uint32_t variable) {
      const auto it = index_.find({def, use, variable});
      return it == index_.end() || pairs_[it->second].done;
    };
    options.progress = [&](uint64_t, uint64_t) {
      if (options_.progress) options_.progress(pairs_.size() - left(), pairs_.size());
    };
    AnalysisResult result = analyze(part.trace, options);
    parts_ += !show_only;
    Statistics& sum = statistics_;
    const Statistics& s = result.statistics;
    sum.windows += s.windows, sum.states += s.states, sum.queries += s.queries, sum.solver_queries += s.solver_queries;
    sum.rejected += s.rejected, sum.solver_seconds += s.solver_seconds;
    for (std::string& note : result.notes)
      if (note.find("bug in STEM") != std::string::npos) out_.result.notes.push_back(std::move(note));
    for (PairResult& p : result.pairs) merge(part, std::move(p), show_only);
    return !stop();
  }

  void merge(const Part& part, PairResult&& found, bool show_only) {
    const uint32_t variable = part.trace.events[found.use.event].variable;
    const auto it = index_.find({found.def.initial ? trace::kNone : found.def.site, found.use.site, variable});
    if (it == index_.end()) return;
    Pair& p = pairs_[it->second];
    const bool shown = found.state == State::Implicit;
    // An instance to show: of the pair as it was decided.
    if (p.result.use.event == trace::kNone || (shown && !p.done)) {
      p.result.def = found.def, p.result.use = found.use, p.result.relation = found.relation;
      if (!found.def.initial) p.result.def.event = event(part, found.def.event);
      p.result.use.event = event(part, found.use.event);
    }
    if (p.done) return;
    if (!show_only) p.result.tried += found.tried;
    if (shown && options_.meaning == Meaning::Full) {
      p.result.why = Why::Bound;
      p.result.detail =
          fmt::format("its prefix is feasible, but whether all {} events of the run can follow was not asked", events_);
      p.done = true;
      --left_;
    } else if (shown) {
      p.result.state = State::Implicit;
      p.result.layer = found.layer;
      p.result.witness = witness(part, std::move(*found.witness));
      p.done = true;
      --left_;
    } else if (found.state == State::Infeasible) {
      p.within = std::min(p.within, found.bound.whole ? static_cast<uint32_t>(part.trace.events.size() - part.from)
                                                      : found.bound.last - found.bound.first);
      p.result.layer = std::max(p.result.layer, found.layer);
    } else if (!show_only && !p.left_open) {
      p.left_open = true;
      p.result.why = found.why;
      p.result.detail = found.detail;
    }
  }

  // --- what is kept of the parts
  uint32_t event(const Part& part, uint32_t local) {
    const auto [it, fresh] =
        events_of_.try_emplace(part.number(local), static_cast<uint32_t>(out_.trace.events.size()));
    if (!fresh) return it->second;
    trace::Event e = part.trace.events[local];
    e.leaf = 0, e.expr = e.expr ? 1 : 0;
    if (e.object != trace::kNone) {
      const auto [object, unseen] =
          objects_.try_emplace(part.objects[e.object], static_cast<uint32_t>(out_.trace.objects.size()));
      if (unseen) {
        out_.trace.objects.push_back(part.trace.objects[e.object]);
        out_.trace.objects.back().born = trace::kNone;
        out_.trace.objects.back().initial.clear();
      }
      e.object = object->second;
    }
    out_.trace.events.push_back(e);
    out_.result.numbers.push_back(part.number(local));
    return it->second;
  }

  Witness witness(const Part& part, Witness&& found) {
    uint32_t same = 0;
    while (same + 1 < found.schedule.size() && found.schedule[same] == same) ++same;
    STEM_CHECK(same >= part.from);
    const uint32_t begin = std::max(part.from, same > kStory ? same - kStory : 0);
    Witness w;
    w.run = run_;
    w.after = part.operations;
    for (uint32_t e = part.from; e < begin; ++e) w.after += trace::is_visible(part.trace.events[e].kind);
    w.inputs = std::move(found.inputs);
    for (size_t i = w.inputs.size(); i < out_.trace.inputs.size(); ++i) w.inputs.push_back(out_.trace.inputs[i]);
    for (size_t i = begin; i < found.schedule.size(); ++i) w.schedule.push_back(event(part, found.schedule[i]));
    w.pair = {found.pair.write == kInitial ? kInitial : event(part, found.pair.write), event(part, found.pair.read)};
    for (const Wakeup& wakeup : found.wakeups)
      if (wakeup.signal >= begin) w.wakeups.push_back({event(part, wakeup.signal), event(part, wakeup.wake)});
    return w;
  }

  void conclude() {
    AnalysisResult& result = out_.result;
    bool bounded = false;
    uint32_t narrowest = UINT32_MAX;
    for (Pair& p : pairs_) {
      PairResult& r = p.result;
      r.tried = std::min(r.tried, r.instances);  // parts and windows overlap
      if (!p.done && !p.left_open && looked_at_all_) {
        r.state = State::Infeasible;
        if (r.layer == Layer::None) r.layer = Layer::Saturation;
        if (p.within == UINT32_MAX)
          p.within = options_.window ? options_.window : kDefaultWindow;  // never together in any
        r.bound = {false, 0, p.within};
        r.detail = fmt::format("within windows of {} events", p.within);
        bounded = true;
        narrowest = std::min(narrowest, p.within);
      } else if (!p.done && !p.left_open) {
        r.why = interrupted() ? Why::Interrupted : r.tried ? Why::Instances : Why::Budget;
        r.detail = fmt::format("{} of {} instances tried", r.tried, r.instances);
      }
      if (r.state != State::Unknown)
        ++statistics_.decided[r.layer];
      else
        r.layer = Layer::None;
      statistics_.instances += r.instances;
      result.pairs.push_back(std::move(r));
    }
    std::sort(result.pairs.begin(), result.pairs.end(),
              [&](const PairResult& a, const PairResult& b) { return before(out_.trace, a, b); });
    if (!surveyed_)
      result.notes.push_back(
          fmt::format("time was up after {} events of the trace; what comes later was not looked at", events_));
    if (bounded)
      result.notes.push_back(fmt::format(
          "the trace has {} events, was loaded in {} parts of up to {} and reordered in windows of {}: what is "
          "infeasible within them may be feasible further apart",
          events_, parts_, cutting_.size + cutting_.overlap, narrowest));
    statistics_.events = events_;
    statistics_.accesses = survey_.accesses;
    statistics_.atoms = survey_.pieces;
    statistics_.candidates = result.pairs.size();
    statistics_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    result.statistics = statistics_;
    result.interrupted = interrupted();
  }

  const std::string path_;
  const AnalysisOptions options_;
  const Clock::time_point start_;
  PartOptions cutting_;
  Survey survey_;
  std::shared_ptr<RecordedRun> run_;
  LongAnalysis out_;
  Statistics statistics_;
  std::vector<Pair> pairs_;
  std::unordered_map<PairName, size_t, PairName::Hash> index_;
  std::unordered_map<uint64_t, uint32_t> events_of_;
  std::unordered_map<uint32_t, uint32_t> objects_;
  uint64_t events_ = 0;
  size_t left_ = 0, parts_ = 0;
  bool surveyed_ = false, looked_at_all_ = false;
};

}  // namespace

LongAnalysis analyze_parts(const std::string& path, const AnalysisOptions& options, uint64_t part) {
  return Parts(path, options, part).run();
}

}  // namespace stem::predictor
