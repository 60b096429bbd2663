#include "predictor/alternate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "encoder/inputs.h"
#include "predictor/analysis.h"
#include "predictor/checker.h"
#include "predictor/cone.h"
#include "predictor/limits.h"
#include "predictor/model.h"
#include "predictor/must_order.h"
#include "predictor/simplify.h"
#include "util/error.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

namespace {

constexpr unsigned kLimitQuestions = 200;  // to the solver, about what bounds the refutations on one trace

bool decides(const Event& e) { return e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert; }

bool fits(const Event& branch, uint64_t value, const Wish& wish) {
  if (std::find(wish.avoid.begin(), wish.avoid.end(), value) != wish.avoid.end()) return false;
  return wish.value ? value == *wish.value : value != branch.value;
}

// Does the schedule hold one event of each group that must execute?
bool meets(const std::vector<uint32_t>& schedule, const Wish& wish) {
  return std::all_of(wish.some_before.begin(), wish.some_before.end(), [&](const std::vector<uint32_t>& group) {
    return std::any_of(schedule.begin(), schedule.end(), [&](uint32_t e) { return std::find(group.begin(), group.end(), e) != group.end(); });
  });
}

}  // namespace

struct Alternates::Impl {
  Impl(const trace::Trace& trace, AlternateOptions options)
      : trace(trace), options(std::move(options)), index(trace), checker(trace), model(trace), order(model), cones(model),
        inputs(index, solver_options()), limits(model, order, [this](uint32_t e) { return can_change(e); }) {}

  encoder::Options solver_options() const {
    encoder::Options encoding;
    encoding.timeout_ms = options.query_ms;
    encoding.dump = options.dump;
    encoding.incremental = false;
    return encoding;
  }

  Alternate negate(uint32_t branch, const Wish& wish) {
    STEM_CHECK(branch < trace.events.size() && decides(trace.events[branch]));
    Alternate out;
    out.branch = branch;
    if (options.interrupt && *options.interrupt) {
      out.why = Why::Interrupted;
      return out;
    }
    if (!trace.events[branch].expr) return infeasible(out, Layer::MustOrder);
    if (part_of_rmw(branch)) {
      out.detail = "it is part of a read-modify-write; ask for the pair of its read instead";
      return out;
    }
    if (inputs.depends(branch)) {
      std::vector<uint32_t> all(model.threads, 0);  // everything recorded before it
      for (uint32_t t = 0; t < model.threads; ++t) all[t] = first_after(t, branch);
      if (solve_inputs(out, wish, all)) return out;
      if (only_inputs(branch) && impossible_inputs(out, wish)) return out;
      const std::vector<uint32_t> needed = cones.of({branch});
      if (needed != all && solve_inputs(out, wish, needed)) return out;
    }
    if (options.reorder) solve_order(out, wish, solver_options());
    else if (out.why == Why::NotTried) out.detail = "only the recorded order was tried";
    return out;
  }

  Alternate reorder(uint32_t branch, const Wish& wish) {
    STEM_CHECK(branch < trace.events.size() && decides(trace.events[branch]));
    Alternate out;
    out.branch = branch;
    if (!trace.events[branch].expr) return infeasible(out, Layer::MustOrder);
    if (part_of_rmw(branch)) return out;
    encoder::Options encoding = solver_options();
    encoding.free_inputs = false;
    solve_order(out, wish, encoding);
    if (out.kind == Alternate::Kind::Infeasible) {
      out.bounded = true;
      if (out.limit.empty()) out.limit = "inputs keep their values";
    }
    return out;
  }

  // How many of a thread's events come before one in the recording (the event itself included).
  uint32_t first_after(trace::ThreadId t, uint32_t event) const {
    const auto& events = model.events_of[t];
    return static_cast<uint32_t>(std::upper_bound(events.begin(), events.end(), event) - events.begin());
  }

  void note_unknown(Alternate& out, const encoder::Answer& answer) const {
    const bool time = answer.reason.find("timeout") != std::string::npos || answer.reason.find("cancel") != std::string::npos;
    out.why = options.interrupt && *options.interrupt ? Why::Interrupted : time ? Why::Budget : Why::SolverGaveUp;
    out.detail = "solver: " + answer.reason;
  }

  // The recorded order, of each thread the first `count` events; other inputs. True: solved.
  bool solve_inputs(Alternate& out, const Wish& wish, const std::vector<uint32_t>& count) {
    const auto executes = [&](uint32_t e) { return model.position[e] < count[trace.events[e].thread]; };
    encoder::Answer answer = inputs.solve(out.branch, wish, executes);
    out.seconds += answer.seconds;
    if (answer.kind == encoder::Answer::Kind::Unknown) note_unknown(out, answer);
    if (answer.kind != encoder::Answer::Kind::Feasible) return false;
    for (uint32_t e = 0; e <= out.branch; ++e)
      if (executes(e)) answer.schedule.push_back(e);
    if (!meets(answer.schedule, wish)) return false;
    out.same_order = true;
    feasible(out, wish, Layer::Inputs, std::move(answer));
    return true;
  }

  bool only_inputs(uint32_t event) const {
    std::vector<trace::ExprId> todo{trace.events[event].expr};
    std::set<trace::ExprId> seen;
    while (!todo.empty()) {
      const trace::ExprId next = todo.back();
      todo.pop_back();
      if (!next || !seen.insert(next).second) continue;
      const trace::Expr& e = trace.exprs[next];
      if (e.op == trace::Op::Read) return false;
      todo.insert(todo.end(), {e.a, e.b, e.c});
    }
    return true;
  }

  // A condition on inputs alone is refuted by the conditions on inputs alone that must come before it, in whatever order.
  bool impossible_inputs(Alternate& out, const Wish& wish) {
    const encoder::Answer answer =
        inputs.solve(out.branch, wish, [&](uint32_t e) { return order.before(e, out.branch) && decides(trace.events[e]) && only_inputs(e); });
    out.seconds += answer.seconds;
    if (answer.kind != encoder::Answer::Kind::Infeasible) return false;
    infeasible(out, Layer::Inputs);
    return true;
  }

  encoder::Scope reorderable(uint32_t target) const {
    encoder::Scope scope;
    scope.target = target;
    for (uint32_t e = 0; e < trace.events.size(); ++e)
      if (e == target || !order.before(target, e)) scope.events.push_back(e);
    return scope;
  }

  // Order and inputs free, over all events that need not come after the branch.
  void solve_order(Alternate& out, const Wish& wish, const encoder::Options& encoding) {
    encoder::Scope scope = reorderable(out.branch);
    if (scope.events.size() > options.largest) {
      out.why = Why::Budget;
      out.detail = fmt::format("{} events are too many for the solver", scope.events.size());
      return;
    }
    encoder::Encoder encoder(index, encoding, std::move(scope));
    encoder::Answer answer = encoder.negate(wish);
    out.seconds += answer.seconds;
    switch (answer.kind) {
      case encoder::Answer::Kind::Feasible: feasible(out, wish, Layer::Solver, std::move(answer)); return;
      case encoder::Answer::Kind::Infeasible: infeasible(out, Layer::Solver); return;
      case encoder::Answer::Kind::Unknown: note_unknown(out, answer); return;
    }
  }

  bool part_of_rmw(uint32_t pin) const {
    if (trace.events[pin].kind != Kind::Pin) return false;
    for (uint32_t e = pin; e-- > 0;)
      if (trace.events[e].thread == trace.events[pin].thread && trace.events[e].kind != Kind::Pin)
        return trace.events[e].kind == Kind::Rmw;
    return false;
  }

  Alternate& infeasible(Alternate& out, Layer layer) {
    out.kind = Alternate::Kind::Infeasible;
    out.layer = layer;
    out.limit = options.cut ? "the trace was cut" : limits.before(out.branch);
    out.bounded = !out.limit.empty();
    return out;
  }

  // Whether a pin or a pinned read can have another value, as far as anybody can tell.
  bool can_change(uint32_t e) {
    if (asked_limits++ >= kLimitQuestions || limits_spent.count() >= options.limits_ms || (options.interrupt && *options.interrupt)) return true;
    const auto began = std::chrono::steady_clock::now();
    const bool answer = ask_change(e);
    limits_spent += std::chrono::steady_clock::now() - began;
    return answer;
  }

  bool ask_change(uint32_t e) {
    if (inputs.depends(e) && !part_of_rmw(e)) {
      if (inputs.solve(e, {}, [](uint32_t) { return true; }).kind != encoder::Answer::Kind::Infeasible) return true;
      Alternate refuted;
      refuted.branch = e;
      if (only_inputs(e) && impossible_inputs(refuted, {})) return false;
    }
    encoder::Scope scope = reorderable(e);
    if (!options.reorder || scope.events.size() > options.largest) return true;
    return encoder::Encoder(index, solver_options(), std::move(scope)).negate({}).kind != encoder::Answer::Kind::Infeasible;
  }

  Alternate& feasible(Alternate& out, const Wish& wish, Layer layer, encoder::Answer answer) const {
    out.witness = {{kInitial, out.branch}, std::move(answer.inputs), std::move(answer.schedule), {}};
    assign_wakeups(trace, out.witness);
    if (const auto rejection = checker.check_alternate(out.witness, out.value))
      throw InternalError(fmt::format("alternate of event {} by {} rejected at step {}: {}", out.branch, layer_name(layer),
                                      rejection->step, rejection->reason));
    const Good good = [&](const Witness& witness) {
      uint64_t value = 0;
      if (!meets(witness.schedule, wish) || checker.check_alternate(witness, value) || !fits(trace.events[out.branch], value, wish)) return false;
      out.value = value;
      return true;
    };
    STEM_CHECK(good(out.witness));
    if (!out.same_order) simplify_schedule(trace, out.witness, good);
    simplify_inputs(trace, out.witness, good);
    out.kind = Alternate::Kind::Feasible;
    out.layer = layer;
    return out;
  }

  const trace::Trace& trace;
  const AlternateOptions options;
  encoder::Index index;
  Checker checker;
  Model model;
  MustOrder order;
  Cones cones;
  encoder::InputSolver inputs;
  Limits limits;
  unsigned asked_limits = 0;
  std::chrono::duration<double, std::milli> limits_spent{0};
};

Alternates::Alternates(const trace::Trace& trace, AlternateOptions options)
    : impl_(std::make_unique<Impl>(trace, std::move(options))) {}
Alternates::~Alternates() = default;

Alternate Alternates::negate(uint32_t branch, const Wish& wish) { return impl_->negate(branch, wish); }
Alternate Alternates::reorder(uint32_t branch, const Wish& wish) { return impl_->reorder(branch, wish); }
bool Alternates::mixed(uint32_t branch) const {
  return impl_->trace.events.at(branch).expr && impl_->inputs.depends(branch) && !impl_->only_inputs(branch);
}

std::vector<uint32_t> branches_of(const trace::Trace& trace, uint32_t per_site) {
  std::map<std::tuple<trace::SiteId, trace::ThreadId, uint64_t>, std::vector<uint32_t>> alike;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (event.kind == Kind::Branch) alike[{event.site, event.thread, event.value}].push_back(e);
  }
  std::vector<uint32_t> out;
  for (const auto& [key, events] : alike) {
    const size_t first = std::min<size_t>(events.size(), (per_site + 1) / 2);
    const size_t last = std::min<size_t>(events.size() - first, per_site / 2);
    out.insert(out.end(), events.begin(), events.begin() + static_cast<ptrdiff_t>(first));
    out.insert(out.end(), events.end() - static_cast<ptrdiff_t>(last), events.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

trace::Test test_of(const trace::Trace& trace, const Alternate& alternate) { return test_of(trace, alternate.witness); }

Taken took(const trace::Trace& run, const trace::Trace& trace, uint32_t branch, const Wish& wish) {
  const Event& wanted = trace.events.at(branch);
  const uint64_t site = trace.sites[wanted.site].key;
  const std::string& thread = trace.threads[wanted.thread].path;
  uint32_t occurrence = 0;
  for (uint32_t e = 0; e < branch; ++e)
    occurrence += trace.events[e].kind == wanted.kind && trace.events[e].thread == wanted.thread && trace.events[e].site == wanted.site;
  for (const Event& e : run.events) {
    if (e.kind != wanted.kind || run.sites[e.site].key != site || run.threads[e.thread].path != thread || occurrence-- > 0) continue;
    return fits(wanted, e.value, wish) ? Taken::Yes : Taken::Same;
  }
  return Taken::NotReached;
}

}  // namespace stem::predictor
