// The analysis of one trace: which layer is asked when.
//
//   1. what the recording shows, and what unseen code has written, is settled;
//   2. order and locks refute what they can for all instances at once (candidates.h);
//   3. harvest: executions with one thread standing still show most of what is feasible;
//   4. windows that have few executions are enumerated: that decides all that is in them (FULL: the whole trace only);
//   5. the engine sweeps the reads of the others that still matter: kept instances first, then all of them;
//   6. Z3 is asked about the instances that the engine left undecided.
//
// A trace of up to some thousand events is one window, and a refutation holds for all of it. A longer one is cut into
// windows that overlap by half; a witness found in a window is a witness, a refutation holds within windows only and is
// reported as such.
#include "predictor/analysis.h"

#include <algorithm>
#include <set>
#include <thread>
#include <unordered_map>

#include "predictor/evidence.h"
#include "predictor/rounds.h"
#include "predictor/solve.h"
#include "predictor/worker.h"
#include "util/error.h"

namespace stem::predictor {

namespace {

constexpr uint32_t kWholeTrace = 4000;    // events: up to here a trace is one window
constexpr uint32_t kWidest = 2 * kWholeTrace;
constexpr size_t kRound = 16;             // tasks
constexpr size_t kOpenInstances = 64;     // per static pair, for the solver
constexpr size_t kWideInstances = 4;      // the same, of wider windows
constexpr uint8_t kSkipped = 2;           // in decided_: nobody wants to know

using Clock = std::chrono::steady_clock;

class Analysis {
 public:
  Analysis(const trace::Trace& trace, const AnalysisOptions& options)
      : trace_(trace),
        options_(options),
        start_(Clock::now()),
        model_(trace),
        order_(model_),
        candidates_(model_, options.kept),
        checker_(trace),
        independence_(model_, order_),
        shared_{model_, candidates_, checker_, independence_, options_,
                options.timeout.count() ? start_ + options.timeout : Clock::time_point::max()},
        decided_(candidates_.pairs.size(), 0),
        results_(candidates_.pairs.size()),
        open_(candidates_.pairs.size()),
        overfull_(candidates_.pairs.size(), 0),
        searched_(candidates_.pairs.size(), 0),
        excluded_(candidates_.pairs.size(), 0) {
    workers_ = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    window_ = options.window ? std::min(options.window, length()) : length() <= kWholeTrace ? length() : kDefaultWindow;
    whole_ = window_ >= length() && !options.part;
    narrow_ = window_;
  }

  AnalysisResult run() {
    describe();
    settle_observed();
    if (options_.paper) {
      solve_as_paper();
    } else if (options_.show_only) {
      harvest();
      sweep_kept();
      conclude(false);
    } else {
      refute_by_order();
      harvest();
      enumerate();
      if (!whole_) sweep_kept();
      bool finished = sweep_all();
      // What is left then is worth wider windows around the instances that were kept.
      for (uint32_t wider : {kWholeTrace, kWidest})
        if (!whole_ && !options_.window && finished && left() > 0) widen(wider);
      solve();
      conclude(finished);
    }
    return finish();
  }

 private:
  uint32_t left() const { return static_cast<uint32_t>(std::count(decided_.begin(), decided_.end(), 0)); }

  void describe() {
    for (size_t i = 0; i < results_.size(); ++i) {
      results_[i].instances = candidates_.pairs[i].instances;
      results_[i].observed = candidates_.pairs[i].observed;
    }
  }

  void settle_observed() {
    for (uint32_t i = 0; i < results_.size(); ++i) {
      const StaticPair& p = candidates_.pairs[i];
      if (p.observed) decide(i, State::Explicit, Layer::Observed);
      else if (skipped(p)) decided_[i] = kSkipped;
      else if (p.tainted) decide(i, State::Unknown, Layer::None), results_[i].why = Why::External;
    }
  }

  bool skipped(const StaticPair& p) const {
    return options_.skip && options_.skip(p.def, p.use, p.variable);
  }

  void decide(uint32_t pair, State state, Layer layer) {
    decided_[pair] = 1;
    results_[pair].state = state;
    results_[pair].layer = layer;
  }

  void refute_by_order() {
    candidates_.summarise(order_);
    constexpr size_t kChunk = 16;
    const size_t tasks = (results_.size() + kChunk - 1) / kChunk;
    run_rounds<std::vector<uint32_t>>(
        tasks, workers_, tasks + 1,
        [&](unsigned, size_t task) {
          std::vector<uint32_t> refuted;
          for (size_t i = task * kChunk; i < std::min(results_.size(), (task + 1) * kChunk) && !shared_.stop(); ++i)
            if (!decided_[i] && candidates_.refuted(static_cast<uint32_t>(i), order_)) refuted.push_back(static_cast<uint32_t>(i));
          return refuted;
        },
        [&](size_t, std::vector<uint32_t> refuted) {
          for (uint32_t i : refuted) decide(i, State::Infeasible, Layer::MustOrder);
          return true;
        });
  }

  // --- windows and tasks
  uint32_t length() const { return static_cast<uint32_t>(trace_.events.size()) - options_.from; }
  uint32_t step() const { return whole_ ? window_ : std::max(1u, window_ / 2); }
  uint32_t window_count() const {
    return length() <= window_ ? 1 : (length() - window_ + step() - 1) / step() + 1;
  }
  Task window_task(uint32_t index) const {
    Task task;
    task.first = options_.from + index * step();
    task.last = std::min<uint32_t>(task.first + window_, trace_.events.size());
    return task;
  }
  bool interesting(uint32_t event) const {
    if (!model_.atom_count[event] || !model_.is_read(event)) return false;
    for (uint32_t pair : candidates_.pairs_of_use(candidates_.use_class(event)))
      if (!decided_[pair]) return true;
    return false;
  }

  // Of the events [from, to), the reads that may show an undecided pair within the window: its definition writes one of their
  // atoms in it, or was the last to do so before it. In a long trace most windows have none soon.
  std::vector<uint32_t> interesting(const Task& window, uint32_t from, uint32_t to) {
    std::vector<uint32_t> reads;
    for (uint32_t e = from; e < to; ++e)
      if (interesting(e)) reads.push_back(e);
    if (whole_ || reads.empty()) return reads;
    std::unordered_map<uint32_t, std::set<uint32_t>> defs;  // by atom
    for (uint32_t r : reads)
      for (unsigned k = 0; k < model_.atom_count[r]; ++k) defs[model_.first_atom[r] + k];
    for (auto& [atom, classes] : defs) {
      classes.insert(candidates_.def_class(window.first == 0 ? kFromStart : model_.last_write_before(atom, window.first)));
      const auto writes = model_.writes_of(atom);
      for (auto w = std::lower_bound(writes.begin(), writes.end(), window.first); w != writes.end() && *w < window.last; ++w)
        classes.insert(candidates_.def_class(*w));
    }
    std::erase_if(reads, [&](uint32_t r) {
      for (uint32_t pair : candidates_.pairs_of_use(candidates_.use_class(r)))
        for (unsigned k = 0; k < model_.atom_count[r] && !decided_[pair]; ++k)
          if (defs[model_.first_atom[r] + k].count(candidates_.def_class(candidates_.pairs[pair].example.write))) return false;
      return true;
    });
    return reads;
  }

  Worker& worker(unsigned index) {
    if (!pool_[index]) pool_[index] = std::make_unique<Worker>(shared_);
    return *pool_[index];
  }

  // Runs tasks that are made when their round begins, so that they know what was decided before.
  template <typename Make, typename GoOn>
  bool run_tasks(size_t count, size_t round, Make make, GoOn go_on) {
    pool_.resize(workers_);
    std::vector<Task> tasks(count);
    bool finished = true;
    size_t made = 0;
    auto make_round = [&](size_t begin) {
      for (; made < std::min(count, begin + round); ++made) tasks[made] = make(made);
    };
    make_round(0);
    run_rounds<Findings>(
        count, workers_, round,
        [&](unsigned w, size_t i) { return worker(w).run(tasks[i], decided_); },
        [&](size_t i, Findings findings) {
          const bool fresh = !findings.found.empty();
          finished &= findings.finished;
          if (findings.enumerated) enumerated_.insert({tasks[i].first, tasks[i].last});
          merge(std::move(findings));
          tasks[i] = {};
          const bool last_of_round = i + 1 == made;
          const bool more = go_on(fresh) && !shared_.stop();
          if (last_of_round && more) make_round(i + 1);
          if (options_.progress) options_.progress(results_.size() - left(), results_.size());
          return more || !last_of_round;
        });
    return finished && !shared_.stop();
  }

  void merge(Findings findings) {
    statistics_.queries += findings.queries;
    statistics_.rejected += findings.rejected;
    for (const std::string& message : findings.rejections) {
      if (options_.strict) throw InternalError(message);
      result_.notes.push_back("bug in STEM: " + message);
    }
    for (auto& f : findings.found) {
      if (decided_[f.pair]) continue;
      decide(f.pair, State::Implicit, f.layer);
      results_[f.pair].witness = std::move(f.witness);
    }
    statistics_.states += findings.states;
    for (uint32_t pair : findings.tried) ++results_[pair].tried;
    for (const auto& [pair, instances] : findings.excluded) results_[pair].tried += instances, excluded_[pair] = 1;
    for (uint32_t pair : findings.searched) searched_[pair] = 1;
    for (const auto& o : findings.open) {
      // A wider window was only meant to show more: what it leaves open was refuted, or left open, in the narrow ones.
      const bool wide = o.instance.last - o.instance.first > narrow_;
      auto& some = wide ? wide_[o.pair] : open_[o.pair];
      if (some.size() < (wide ? kWideInstances : kOpenInstances)) some.insert(o.instance);
      else if (!wide) overfull_[o.pair] |= !some.count(o.instance);
    }
  }

  // Freeze threads in the first windows, and in others spread over the trace, as long as that shows something new.
  void harvest() {
    if (options_.meaning == Meaning::Full) return;  // whole executions come from the engine
    const uint32_t windows = window_count();
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < std::min(windows, 16u); ++i) order.push_back(i);
    for (uint32_t i = 1; i < 16 && windows > 32; ++i) order.push_back(static_cast<uint32_t>(uint64_t{windows} * i / 16));
    constexpr uint32_t kReads = 64;  // a task: some of a window's reads
    std::vector<std::pair<uint32_t, uint32_t>> parts;  // window, part
    for (uint32_t w : order)
      for (uint32_t part = 0; part <= (window_ / kReads); ++part) parts.emplace_back(w, part);
    run_tasks(
        parts.size(), kRound,
        [&](size_t i) {
          Task task = window_task(parts[i].first);
          task.freeze = true;
          const uint32_t from = task.first + parts[i].second * kReads;
          task.reads = interesting(task, from, std::min(task.last, from + kReads));
          ++statistics_.windows;
          return task;
        },
        [&](bool) { return left() > 0; });
  }

  // Whether all of the window has been enumerated, as part of one that may be wider.
  bool enumerated(const Task& task) const {
    for (auto it = enumerated_.upper_bound({task.first, UINT32_MAX}); it != enumerated_.begin();) {
      --it;
      if (it->second >= task.last) return true;
      if (it->first + kWidest <= task.first) break;
    }
    return false;
  }

  // Where nothing comes of it, it is given up soon: threads that are free to interleave have too many executions.
  void enumerate() {
    if ((options_.meaning == Meaning::Full && !whole_) || left() == 0 || !options_.states) return;
    const uint32_t narrow = window_;
    if (!whole_ && !options_.window) window_ = kWholeTrace;
    constexpr size_t kFew = 4;
    size_t tasks = 0, done = 0, asked = 0;
    bool in_vain = false;
    run_tasks(
        window_count(), kFew,
        [&](size_t i) {
          Task task = window_task(static_cast<uint32_t>(i));
          task.states = uint64_t{options_.states} * (task.last - task.first);
          task.reads = interesting(task, task.first, task.last);
          asked += !task.reads.empty();
          return task;
        },
        [&](bool) {
          if (++tasks % kFew == 0) in_vain = enumerated_.size() == done && asked > 0, done = enumerated_.size(), asked = 0;
          return left() > 0 && !in_vain;
        });
    window_ = narrow;
  }

  uint32_t window_of(const EventPair& pair) const {
    const uint32_t w = pair.write == kFromStart || pair.write < options_.from ? pair.read : pair.write;
    const uint32_t low = std::min(w, pair.read), high = std::max(w, pair.read);
    uint32_t index = std::min((low - options_.from) / step(), window_count() - 1);
    // A little of what came before, if both still fit.
    if (index > 0 && high < window_task(index - 1).last) --index;
    return index;
  }

  // Long traces: the instances that were kept, window by window.
  void sweep_kept() {
    std::map<uint32_t, std::vector<uint32_t>> reads;
    for (uint32_t i = 0; i < results_.size(); ++i)
      if (!decided_[i])
        for (const EventPair& p : candidates_.pairs[i].kept)
          if (p.read >= options_.from) reads[window_of(p)].push_back(p.read);
    std::vector<uint32_t> windows;
    for (auto& [w, list] : reads) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      windows.push_back(w);
    }
    run_tasks(
        windows.size(), kRound,
        [&](size_t i) {
          Task task = window_task(windows[i]);
          task.freeze = task.sweep = true;
          if (enumerated(task)) return task;
          if (window_ > kWholeTrace && options_.meaning == Meaning::Prefix) task.states = uint64_t{options_.states} * (task.last - task.first);
          for (uint32_t r : reads[windows[i]])
            if (r >= task.first && r < task.last && interesting(r)) task.reads.push_back(r);
          ++statistics_.windows;
          return task;
        },
        [&](bool) { return left() > 0; });
  }

  void widen(uint32_t window) {
    const uint32_t narrow = window_;
    window_ = std::min(window, length());
    sweep_kept();
    window_ = narrow;
  }

  // Every read that an undecided pair still needs. True: all were looked at.
  bool sweep_all() {
    if (left() == 0) return true;
    if (whole_ && enumerated(window_task(0))) return true;
    if (whole_) {
      std::vector<uint32_t> reads;
      for (uint32_t e = 0; e < trace_.events.size(); ++e)
        if (interesting(e)) reads.push_back(e);
      constexpr size_t kReads = 8;
      return run_tasks(
          (reads.size() + kReads - 1) / kReads, kRound,
          [&](size_t i) {
            Task task = window_task(0);
            task.sweep = true;
            for (size_t k = i * kReads; k < std::min(reads.size(), (i + 1) * kReads); ++k)
              if (interesting(reads[k])) task.reads.push_back(reads[k]);
            return task;
          },
          [&](bool) { return left() > 0; });
    }
    return run_tasks(
        window_count(), kRound,
        [&](size_t i) {
          Task task = window_task(static_cast<uint32_t>(i));
          task.sweep = true;
          if (enumerated(task)) return task;
          task.reads = interesting(task, task.first, task.last);
          statistics_.windows += !task.reads.empty();
          return task;
        },
        [&](bool) { return left() > 0; });
  }

  void solve() {
    std::vector<uint32_t> todo;
    for (uint32_t i = 0; i < results_.size(); ++i)
      if (!decided_[i] && !(open_[i].empty() && !wide_.count(i))) todo.push_back(i);
    if (todo.empty() || shared_.stop()) return;
    const Solver solver(shared_, order_);
    run_rounds<Solved>(
        todo.size(), workers_, kRound,
        [&](unsigned, size_t i) {
          Solved solved = solver.solve(open_[todo[i]]);
          if (solved.witness || !wide_.count(todo[i]) || shared_.stop()) return solved;
          Solved wide = solver.solve(wide_[todo[i]]);  // for a witness only
          solved.witness = std::move(wide.witness);
          solved.queries += wide.queries, solved.seconds += wide.seconds;
          return solved;
        },
        [&](size_t i, Solved solved) { return merge(todo[i], std::move(solved)); });
  }

  bool merge(uint32_t pair, Solved solved) {
    count(solved);
    Findings aside;
    if (solved.witness && Worker::confirm(shared_, *solved.witness, aside)) {
      decide(pair, State::Implicit, Layer::Solver);
      results_[pair].witness = std::move(solved.witness);
    } else if (solved.refuted == solved.given && !overfull_[pair]) {
      by_solver_[pair] |= !open_[pair].empty();
      open_[pair].clear();  // nothing is left open
    } else {
      results_[pair].why = aside.rejected ? Why::SolverGaveUp : solved.why;
      results_[pair].detail = aside.rejected ? "internal: " + aside.rejections[0] : solved.detail;
    }
    merge(std::move(aside));
    return !shared_.stop();
  }

  void count(const Solved& solved) {
    statistics_.solver_queries += solved.queries;
    statistics_.solver_seconds += solved.seconds;
  }

  void solve_as_paper() {
    const Solver solver(shared_, order_);
    std::vector<uint32_t> todo;
    for (uint32_t i = 0; i < results_.size(); ++i)
      if (!decided_[i]) todo.push_back(i);
    run_rounds<Solved>(
        todo.size(), workers_, kRound,
        [&](unsigned, size_t i) { return solver.solve_as_paper(all_instances(model_, candidates_, todo[i])); },
        [&](size_t i, Solved solved) {
          const uint32_t pair = todo[i];
          count(solved);
          Findings aside;
          if (solved.witness && Worker::confirm(shared_, *solved.witness, aside)) {
            decide(pair, State::Implicit, Layer::Paper);
            results_[pair].witness = std::move(solved.witness);
          } else if (solved.refuted == solved.given) {
            decide(pair, State::Infeasible, Layer::Paper);
          } else {
            results_[pair].why = solved.why;
            results_[pair].detail = solved.detail;
          }
          merge(std::move(aside));
          return !shared_.stop();
        });
  }

  // What is neither found nor open is refuted, within what was looked at.
  void conclude(bool finished) {
    for (uint32_t i = 0; i < results_.size(); ++i) {
      if (decided_[i]) continue;
      PairResult& p = results_[i];
      if (!open_[i].empty()) {
        p.state = State::Unknown;
        if (p.why == Why::NotTried) p.why = Why::Budget;
        const std::string k = fmt::format("{}{} of {} instances left open", overfull_[i] ? "more than " : "", open_[i].size(), p.instances);
        p.detail = p.detail.empty() ? k : p.detail + "; " + k;
      } else if (!finished) {
        p.state = State::Unknown;
        p.why = options_.interrupt && *options_.interrupt ? Why::Interrupted : p.tried ? Why::Instances : Why::Budget;
        p.detail = fmt::format("{} of {} instances tried", p.tried, p.instances);
      } else {
        decide(i, State::Infeasible, by_solver_.count(i) ? Layer::Solver
                                     : excluded_[i]      ? Layer::Enumeration
                                     : searched_[i]      ? Layer::Search
                                                         : Layer::Saturation);
        if (!whole_) {
          p.bound = {false, 0, window_};
          p.detail = fmt::format("within windows of {} events", window_);
        }
      }
    }
  }

  AnalysisResult finish() {
    const Evidence evidence(model_, order_);
    for (uint32_t i = 0; i < results_.size(); ++i) {
      PairResult& p = results_[i];
      if (options_.cut && p.state == State::Infeasible && p.bound.whole) {
        p.bound = {false, 0, static_cast<uint32_t>(trace_.events.size())};
        p.detail = fmt::format("within the first {} events", trace_.events.size());
      }
      p.tried = std::min(p.tried, p.instances);  // windows overlap
      const EventPair instance = p.witness ? p.witness->pair : candidates_.pairs[i].example;
      p.def = evidence.access(instance.write);
      p.use = evidence.access(instance.read);
      p.relation = evidence.relation(instance.write, instance.read);
      p.variable = variable_name(trace_, candidates_.pairs[i].variable);
      if (p.state != State::Unknown && decided_[i] != kSkipped) ++statistics_.decided[p.layer];
      statistics_.instances += p.instances;
    }
    if (options_.cut)
      result_.notes.push_back(fmt::format("only the first {} events of the trace were analysed; \"infeasible\" holds for them only",
                                          trace_.events.size()));
    const bool bounded = std::any_of(results_.begin(), results_.end(), [](const PairResult& p) { return p.state == State::Infeasible && !p.bound.whole; });
    if (!whole_ && bounded)
      result_.notes.push_back(fmt::format("the trace has {} events and was reordered in windows of {}: what is infeasible within them "
                                          "may be feasible further apart",
                                          trace_.events.size(), window_));
    statistics_.events = trace_.events.size();
    for (uint32_t i = 0; i < trace_.events.size(); ++i) statistics_.accesses += model_.atom_count[i] > 0;
    statistics_.atoms = model_.atoms.size();
    statistics_.candidates = results_.size();
    statistics_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    result_.statistics = statistics_;
    result_.interrupted = options_.interrupt && *options_.interrupt;
    std::vector<PairResult> wanted;
    for (uint32_t i = 0; i < results_.size(); ++i)
      if (decided_[i] != kSkipped) wanted.push_back(std::move(results_[i]));
    results_ = std::move(wanted);
    std::sort(results_.begin(), results_.end(), [&](const PairResult& a, const PairResult& b) { return before(trace_, a, b); });
    result_.pairs = std::move(results_);
    return std::move(result_);
  }

  const trace::Trace& trace_;
  const AnalysisOptions options_;
  const Clock::time_point start_;
  Model model_;
  MustOrder order_;
  Candidates candidates_;
  Checker checker_;
  Independence independence_;
  Shared shared_;
  std::vector<uint8_t> decided_;
  std::vector<PairResult> results_;
  std::vector<std::set<OpenInstance>> open_;      // instances that the engine left, some of them
  std::vector<uint8_t> overfull_;                 // there are more
  std::map<uint32_t, std::set<OpenInstance>> wide_;
  std::map<uint32_t, bool> by_solver_;
  std::vector<uint8_t> searched_, excluded_;      // by search, by enumeration
  std::set<std::pair<uint32_t, uint32_t>> enumerated_;  // windows
  std::vector<std::unique_ptr<Worker>> pool_;
  Statistics statistics_;
  AnalysisResult result_;
  unsigned workers_ = 1;
  uint32_t window_ = 0, narrow_ = 0;
  bool whole_ = true;
};

}  // namespace

bool before(const trace::Trace& trace, const PairResult& a, const PairResult& b) {
  auto key = [&](const PairResult& p) {
    const trace::Site &d = trace.sites[p.def.site], &u = trace.sites[p.use.site];
    return std::tuple<const std::string&, bool, const std::string&, uint32_t, uint32_t, uint32_t, const std::string&, uint32_t, uint32_t, uint32_t>(
        p.variable, !p.def.initial, d.file, d.line, d.column, p.def.site, u.file, u.line, u.column, p.use.site);
  };
  return key(a) < key(b);
}

const std::string& variable_name(const trace::Trace& trace, uint32_t variable) {
  static const std::string none = "(unnamed)";
  return variable < trace.variables.size() ? trace.variables[variable] : none;
}

AnalysisResult analyze(const trace::Trace& trace, const AnalysisOptions& options) { return Analysis(trace, options).run(); }

}  // namespace stem::predictor
