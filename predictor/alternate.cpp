#include "predictor/alternate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "predictor/analysis.h"
#include "predictor/checker.h"
#include "trace/text.h"
#include "util/error.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

namespace {

constexpr size_t kMinimising = 2'000'000;  // steps of the checker that a simpler input may cost

bool decides(const Event& e) { return e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert; }

bool fits(const Event& branch, uint64_t value, const Wish& wish) {
  if (std::find(wish.avoid.begin(), wish.avoid.end(), value) != wish.avoid.end()) return false;
  return wish.value ? value == *wish.value : value != branch.value;
}

}  // namespace

struct Alternates::Impl {
  Impl(const trace::Trace& trace, AlternateOptions options)
      : trace(trace), options(std::move(options)), index(trace), checker(trace) {}

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
    if (branch >= options.largest) {
      out.why = Why::Budget;
      out.detail = fmt::format("{} events come before it, too many for the solver", branch);
      return out;
    }
    encoder::Options encoding;
    encoding.timeout_ms = options.query_ms;
    encoding.dump = options.dump;
    encoding.incremental = false;
    encoder::Encoder encoder(index, encoding, {{}, branch});
    encoder::Answer answer = encoder.negate(wish);
    out.seconds += answer.seconds;
    switch (answer.kind) {
      case encoder::Answer::Kind::Feasible:
        return feasible(out, wish, Layer::Solver, std::move(answer));
      case encoder::Answer::Kind::Infeasible: return infeasible(out, Layer::Solver);
      case encoder::Answer::Kind::Unknown:
        out.why = answer.reason.find("timeout") != std::string::npos || answer.reason.find("cancel") != std::string::npos
                      ? Why::Budget : Why::SolverGaveUp;
        out.detail = "solver: " + answer.reason;
    }
    return out;
  }

  bool part_of_rmw(uint32_t pin) const {
    if (trace.events[pin].kind != Kind::Pin) return false;
    for (uint32_t e = pin; e-- > 0;)
      if (trace.events[e].thread == trace.events[pin].thread && trace.events[e].kind != Kind::Pin)
        return trace.events[e].kind == Kind::Rmw;
    return false;
  }

  Alternate& infeasible(Alternate& out, Layer layer) const {
    out.kind = Alternate::Kind::Infeasible;
    out.layer = layer;
    out.limit = what_is_fixed(out.branch);
    out.bounded = !out.limit.empty();
    return out;
  }

  Alternate& feasible(Alternate& out, const Wish& wish, Layer layer, encoder::Answer answer) const {
    out.witness = {{kInitial, out.branch}, std::move(answer.inputs), std::move(answer.schedule), {}};
    assign_wakeups(trace, out.witness);
    if (const auto rejection = checker.check_alternate(out.witness, out.value))
      throw InternalError(fmt::format("alternate of event {} by {} rejected at step {}: {}", out.branch, layer_name(layer),
                                      rejection->step, rejection->reason));
    keep_inputs(out, wish);
    out.kind = Alternate::Kind::Feasible;
    out.layer = layer;
    return out;
  }

  // Inputs keep their recorded values where that does as well: all of them, or one by one, or byte by byte.
  void keep_inputs(Alternate& out, const Wish& wish) const {
    size_t bytes = 0;
    for (const trace::Input& input : trace.inputs) bytes += input.bytes.size();
    const auto accepted = [&](const std::vector<trace::Input>& inputs) {
      if (inputs == out.witness.inputs) return true;
      Witness other = out.witness;
      other.inputs = inputs;
      uint64_t value = 0;
      if (checker.check_alternate(other, value) || !fits(trace.events[out.branch], value, wish)) return false;
      out.witness.inputs = inputs;
      out.value = value;
      return true;
    };
    if (accepted(trace.inputs)) return;
    const bool all_bytes = bytes * out.witness.schedule.size() <= kMinimising;
    for (size_t i = 0; i < trace.inputs.size(); ++i) {
      if (trace.inputs.size() * out.witness.schedule.size() > kMinimising) break;
      std::vector<trace::Input> inputs = out.witness.inputs;
      inputs[i] = trace.inputs[i];
      if (accepted(inputs)) continue;
      for (size_t k = trace.inputs[i].bytes.size(); all_bytes && k-- > 0;) {
        inputs = out.witness.inputs;
        inputs[i].bytes[k] = trace.inputs[i].bytes[k];
        accepted(inputs);
      }
    }
  }

  // What an execution that leads to the branch may meet that is held fixed without need; empty: nothing.
  std::string what_is_fixed(uint32_t branch) const {
    if (options.cut) return "the trace was cut";
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      if (event.thread == trace.events[branch].thread && e >= branch) continue;
      const char* what = nullptr;
      if (event.kind == Kind::Pin && event.expr) what = "a value is pinned";
      if (event.kind == Kind::Nondet) what = "the outside world answered";
      if (event.kind == Kind::External || event.flags & trace::kTainted) what = "unseen code writes memory";
      if ((event.kind == Kind::Read || event.kind == Kind::Rmw) && event.flags & trace::kPinned) what = "a read is pinned";
      if (what) return fmt::format("{} at {}", what, trace::describe(trace.threads[event.thread], trace.sites[event.site]));
    }
    return index.opaque ? "an operation is not modelled" : "";
  }

  const trace::Trace& trace;
  const AlternateOptions options;
  encoder::Index index;
  Checker checker;
};

Alternates::Alternates(const trace::Trace& trace, AlternateOptions options)
    : impl_(std::make_unique<Impl>(trace, std::move(options))) {}
Alternates::~Alternates() = default;

Alternate Alternates::negate(uint32_t branch, const Wish& wish) { return impl_->negate(branch, wish); }

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
