// The search of one candidate knows nothing of the others': where saturation and a short search leave candidates open, all
// executions are looked at once (enumerate.h) before anything is searched at length.
//
// The sweep: for each read its required prefix is propagated once; for each thread the writes are then required one after
// the other on top of it, so that the first one that cannot come before the read refutes all later ones.
#include "predictor/all_pairs.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "predictor/checker.h"
#include "predictor/engine.h"
#include "predictor/enumerate.h"
#include "predictor/harvest.h"
#include "util/error.h"

namespace stem::predictor {

namespace {

constexpr uint32_t kFewDecisions = 20;  // before all executions are looked at

class Sweep {
 public:
  Sweep(const trace::Trace& trace, const AllPairsOptions& options)
      : trace_(trace), options_(options), model_(trace), engine_(model_, options.meaning, options.decisions), harvest_(model_), checker_(trace) {}

  std::map<EventPair, Verdict> run(LayerCounts* counts) {
    engine_.open(0, static_cast<uint32_t>(trace_.events.size()));
    for (uint32_t r = 0; r < trace_.events.size(); ++r)
      if (model_.atom_count[r] && model_.is_read(r)) list(r);
    for (uint32_t r = 0; r < trace_.events.size(); ++r)
      if (model_.atom_count[r] && model_.is_read(r)) observed(r);
    if (options_.enumerate) {
      engine_.set_decisions(kFewDecisions);
      read_all(false);
      enumerate();
      engine_.set_decisions(options_.decisions);
    }
    read_all(true);
    if (counts) {
      *counts = counts_;
      counts->candidates = verdicts_.size();
      for (const auto& [pair, verdict] : verdicts_)
        verdict.is_unknown() ? ++counts->unknown : ++counts->decided[verdict.layer()];
    }
    return std::move(verdicts_);
  }

 private:
  void read_all(bool solver) {
    std::vector<uint8_t> left(trace_.events.size(), 0);
    for (const auto& [pair, verdict] : verdicts_) left[pair.read] |= verdict.is_unknown();
    for (uint32_t r = 0; r < trace_.events.size(); ++r) {
      if (!left[r]) continue;
      read(r);
      if (options_.solver && solver) solve(r);
    }
  }

  // What is still open, if there are few executions.
  void enumerate() {
    struct Look : Enumerate::Listener {
      explicit Look(Sweep& s) : sweep(s) {
        for (const auto& [pair, verdict] : s.verdicts_)
          if (verdict.is_unknown()) open.insert(pair), writers.insert(pair.write);
      }
      uint32_t label(uint32_t write) override { return writers.count(write) ? write + 2 : 1; }
      bool stop() override { return open.empty(); }
      void flow(uint32_t write, uint32_t read) override {
        if (!open.count({write, read})) return;
        const std::vector<uint32_t> schedule = run->schedule(read);
        sweep.accept(write, read, schedule, sweep.trace_.inputs, Layer::Enumeration);
        open.erase({write, read});
        if (sweep.options_.meaning == Meaning::Prefix) return;
        sweep.harvest_.collect(schedule, [&](uint32_t w, uint32_t r) {
          if (open.erase({w, r})) sweep.accept(w, r, schedule, sweep.trace_.inputs, Layer::Harvest);
        });
      }
      Sweep& sweep;
      Enumerate* run = nullptr;
      std::set<EventPair> open;
      std::unordered_set<uint32_t> writers;
    } look(*this);
    if (look.open.empty()) return;
    const MustOrder order(model_);
    const Independence independence(model_, order);
    Enumerate run(model_, independence, options_.meaning);
    look.run = &run;
    constexpr uint64_t kStates = 1000;  // for each event
    const auto n = static_cast<uint32_t>(trace_.events.size());
    if (run.run(0, n, kStates * n, look) != Enumerate::Outcome::Complete) return;
    for (const EventPair& pair : look.open) verdicts_[pair] = Verdict::infeasible(Layer::Enumeration);
  }

  void list(uint32_t r) {
    for (unsigned k = 0; k < model_.atom_count[r]; ++k) {
      const uint32_t atom = model_.first_atom[r] + k;
      verdicts_.try_emplace({kFromStart, r});
      for (uint32_t w : model_.writes_of(atom))
        if (w != r) verdicts_.try_emplace({w, r});
    }
  }

  void observed(uint32_t r) {
    for (unsigned k = 0; k < model_.atom_count[r]; ++k)
      verdicts_[{model_.sources[model_.sources_at[r] + k], r}] = Verdict::feasible(Layer::Observed, {});
  }

  bool open(uint32_t w, uint32_t r) {
    const auto it = verdicts_.find({w, r});
    return it != verdicts_.end() && it->second.is_unknown();
  }

  void read(uint32_t r) {
    if (options_.harvest && options_.meaning == Meaning::Prefix)
      harvest_.freeze(0, static_cast<uint32_t>(trace_.events.size()), r, [&](uint32_t w) {
        if (open(w, r)) accept(w, r, harvest_.schedule(), trace_.inputs, Layer::Harvest);
        return true;
      });
    const Engine::Reach reached = engine_.aim(r);
    std::map<uint32_t, State> states;  // by writer, over the atoms
    if (reached == Engine::Reach::Yes)
      for (unsigned k = 0; k < model_.atom_count[r]; ++k) sweep(r, model_.first_atom[r] + k, states);
    else
      for (auto it = verdicts_.lower_bound({0, r}); it != verdicts_.end(); ++it)
        if (it->first.read == r) states[it->first.write] = reached == Engine::Reach::No ? State::Refuted : State::Open;
    engine_.leave();
    for (const auto& [w, state] : states) {
      Verdict& v = verdicts_[{w, r}];
      if (!v.is_unknown()) continue;
      v = state == State::Refuted ? Verdict::infeasible(Layer::Saturation)
          : state == State::Searched ? Verdict::infeasible(Layer::Search)
                                     : Verdict::unknown(Why::Budget, "search");
    }
  }

  enum class State : uint8_t { Refuted, Searched, Open };

  void sweep(uint32_t r, uint32_t atom, std::map<uint32_t, State>& states) {
    ask(kFromStart, r, atom, states);
    for (const Chain& chain : model_.write_chains(atom)) {
      const bool own = chain.thread == trace_.events[r].thread;
      size_t pushed = 0;
      Engine::Reach reached = Engine::Reach::Yes;
      for (uint32_t position : chain.positions) {
        const uint32_t w = model_.events_of[chain.thread][position];
        if (w == r) continue;
        if (own && position > model_.position[r]) reached = Engine::Reach::No;
        if (reached == Engine::Reach::Yes && !own) {
          reached = engine_.reach(w);
          ++pushed;
        }
        if (reached == Engine::Reach::Yes) ask(w, r, atom, states);
        else note(states, w, reached == Engine::Reach::No ? State::Refuted : State::Open);
      }
      while (pushed-- > 0) engine_.retreat();
    }
  }

  static void note(std::map<uint32_t, State>& states, uint32_t w, State state) {
    auto [it, fresh] = states.try_emplace(w, state);
    if (!fresh) it->second = std::max(it->second, state);
  }

  void ask(uint32_t w, uint32_t r, uint32_t atom, std::map<uint32_t, State>& states) {
    Verdict& v = verdicts_[{w, r}];
    if (!v.is_unknown()) return;
    switch (engine_.decide(w, atom)) {
      case Engine::Result::Infeasible: note(states, w, engine_.decisions() ? State::Searched : State::Refuted); break;
      case Engine::Result::Undecided: note(states, w, State::Open); break;
      case Engine::Result::Feasible: {
        const std::vector<uint32_t> schedule = engine_.schedule();
        accept(w, r, schedule, trace_.inputs, engine_.decisions() ? Layer::Search : Layer::Saturation);
        if (options_.harvest && options_.meaning == Meaning::Full)  // a whole execution shows all its flows
          harvest_.collect(schedule, [&](uint32_t w2, uint32_t r2) {
            if (open(w2, r2)) accept(w2, r2, schedule, trace_.inputs, Layer::Harvest);
          });
        break;
      }
    }
  }

  void accept(uint32_t w, uint32_t r, std::vector<uint32_t> schedule, std::vector<trace::Input> inputs, Layer layer) {
    Witness witness{{w, r}, std::move(inputs), std::move(schedule), {}};
    assign_wakeups(trace_, witness);
    if (options_.check)
      if (const auto rejection = checker_.check(witness, options_.meaning))
        throw InternalError(fmt::format("witness of ({}, {}) by {} rejected at step {}: {}", w, r, layer_name(layer),
                                        rejection->step, rejection->reason));
    if (!options_.witnesses) witness = {};
    verdicts_[{w, r}] = Verdict::feasible(layer, std::move(witness));
  }

  void solve(uint32_t r) {
    std::unique_ptr<encoder::Encoder> encoder;
    for (auto& [pair, verdict] : verdicts_) {
      if (pair.read != r || !verdict.is_unknown()) continue;
      if (!encoder) {
        encoder::Options o;
        o.meaning = options_.meaning;
        o.timeout_ms = options_.query_ms;
        encoder = std::make_unique<encoder::Encoder>(trace_, o);
      }
      encoder::Answer answer = encoder->decide(pair.write, pair.read);
      counts_.solver_seconds += answer.seconds;
      switch (answer.kind) {
        case encoder::Answer::Kind::Feasible:
          accept(pair.write, pair.read, std::move(answer.schedule), std::move(answer.inputs), Layer::Solver);
          break;
        case encoder::Answer::Kind::Infeasible: verdict = Verdict::infeasible(Layer::Solver); break;
        case encoder::Answer::Kind::Unknown: verdict = Verdict::unknown(Why::SolverGaveUp, answer.reason); break;
      }
    }
  }

  const trace::Trace& trace_;
  const AllPairsOptions options_;
  Model model_;
  Engine engine_;
  Harvest harvest_;
  Checker checker_;
  std::map<EventPair, Verdict> verdicts_;
  LayerCounts counts_;
};

}  // namespace

std::map<EventPair, Verdict> decide_all(const trace::Trace& trace, const AllPairsOptions& options, LayerCounts* counts) {
  return Sweep(trace, options).run(counts);
}

}  // namespace stem::predictor
