// What the loop stores of the whole program, counts, and tells of its steps.
#include <fmt/format.h>

#include <algorithm>

#include "explorer/explain.h"
#include "explorer/loop_state.h"
#include "explorer/minimise.h"
#include "explorer/orders.h"
#include "util/error.h"

namespace stem::explorer {

// ---- steps
// ----------------------------------------------------------------------------------------------------------------

void Loop::begin_step(const Pending& pending, const Execution& execution, int64_t number) {
  step_.emplace();
  step_->execution = number;
  step_->origin = pending.origin;
  if (!options_.step) return;
  step_->inputs = inputs_text(execution.trace.inputs);
  step_->schedule = schedule_text(pending.test.schedule);
  step_->path = path_text(known_, execution.trace);
  step_->failure = execution.failure;
}

void Loop::note_explicit(const PairKey& pair, const std::vector<size_t>& covered) {
  if (!step_ || !known_.shared(pair.use)) return;
  step_->explicit_pairs.push_back(pair);
  step_->covered_explicit.insert(step_->covered_explicit.end(), covered.begin(), covered.end());
  if (fresh_.insert(pair).second) step_->fresh.push_back(pair);
}

void Loop::note_implicit(const PairKey& pair, const std::vector<size_t>& covered) {
  if (!step_ || !known_.shared(pair.use)) return;
  step_->implicit_pairs.push_back(pair);
  step_->covered_implicit.insert(step_->covered_implicit.end(), covered.begin(), covered.end());
  if (fresh_.insert(pair).second) step_->fresh.push_back(pair);
}

void Loop::flush_step() {
  if (!step_) return;
  if (options_.step) {
    for (size_t i = 0; i < known_.escorts().size(); ++i)
      if (known_.escorts()[i].open()) step_->open.push_back(i);
    for (const Pending& pending : pending_) {
      if (pending.origin == "witness" && options_.goal == Goal::Escort) continue;  // Gamma, not Omega
      step_->omega.push_back(pending.detail.empty() ? pending.origin : pending.detail);
    }
    options_.step(known_, *step_);
  }
  step_.reset();
}

// ---- findings
// -------------------------------------------------------------------------------------------------------------

void Loop::load_findings() {
  for (const db::Row& row :
       store_.database().rows("SELECT f.id, f.kind, f.message, f.fingerprint, f.execution, f.switches, a.file, a.line, "
                              "a.function, a.text, t.path FROM finding f "
                              "JOIN version v ON v.id = f.version_id JOIN program g ON g.id = v.program_id LEFT JOIN "
                              "site_at a ON a.site_id = f.site_id AND "
                              "a.version_id = f.version_id LEFT JOIN thread t ON t.id = f.thread_id WHERE g.path = "
                              ":program AND v.build_id = :build ORDER BY f.id",
                              {{"program", version_.program}, {"build", version_.build_id}})) {
    const auto text = [&](size_t i) {
      return std::holds_alternative<std::monostate>(row[i]) ? std::string() : db::to_text(row[i]);
    };
    const auto number = [&](size_t i) {
      return std::holds_alternative<int64_t>(row[i]) ? std::get<int64_t>(row[i]) : -1;
    };
    FoundFailure f;
    f.id = number(0);
    f.kind = text(1);
    f.message = text(2);
    f.fingerprint = text(3);
    f.execution = number(4);
    f.switches = number(5);
    f.file = text(6);
    f.line = static_cast<uint32_t>(std::max<int64_t>(0, number(7)));
    f.function = text(8);
    f.text = text(9);
    f.thread = text(10);
    findings_.push_back(std::move(f));
  }
}

// Kept with its test, which is made as simple as possible.
void Loop::take_finding(const ImportedFinding& finding, trace::Test test, int64_t number) {
  const bool known = std::any_of(findings_.begin(), findings_.end(),
                                 [&](const FoundFailure& f) { return f.fingerprint == finding.fingerprint; });
  if (known) return;
  FoundFailure f;
  f.kind = finding.kind;
  f.message = finding.message;
  f.fingerprint = finding.fingerprint;
  f.execution = number;
  findings_.push_back(std::move(f));
  progress("minimising");
  MinimiseOptions minimising;
  minimising.folder = (state_.traces / fmt::format("running-{}-small", getpid())).string();
  minimising.timeout = options_.run_timeout;
  minimising.most = !options_.minimise ? 1 : finding.kind == "hang" ? 3 : 60;  // each hang takes the whole time-out
  minimising.interrupt = options_.interrupt;
  test.options.emplace(kSwitchOption, std::to_string(kNoSwitches));  // however it is replayed
  const Minimised small = minimise(test, finding, minimising);
  minimising_ += small.executions;
  memory_.set_finding_test(finding.fingerprint, {trace::to_json(small.test), "finding", 0, finding.message},
                           static_cast<int64_t>(switches_of(small.test.schedule)));
}

void Loop::add_orders(const trace::Trace& trace) {
  for (const OrderTest& order : lock_orders(trace)) {
    if (!orders_.insert(order.name).second) continue;
    add_pending(order.test, "order", order.what, kOrder);
  }
  // What threads divide among themselves, one of them takes alone if nobody interrupts it.
  std::string inputs;
  for (const trace::Input& input : trace.inputs) inputs += input_text(input) + " ";
  if (trace.threads.size() > 2 && options_.goal == Goal::Pairs && shuffled_.insert(inputs).second) {
    trace::Test shuffled = trace::test_of(trace, 0);
    shuffled.schedule.clear();
    shuffled.options[kSwitchOption] = "4";
    add_pending(shuffled, "shuffle", "threads take turns all the time", kShuffle);
  }
  for (const OrderTest& order : waiting_.add(trace))
    if (orders_.insert(order.name).second) add_pending(order.test, "order", order.what, kWaiting);
}

// ---- the program as a whole
// -------------------------------------------------------------------------------------------------

void Loop::store_program(bool complete) {
  db::ProgramData data;
  data.names.version = version_;
  data.static_done = known_.program().unlisted.empty();  // else there are potential pairs that no list has
  std::map<uint32_t, uint32_t> sites;
  const auto site = [&](uint32_t index) {
    const auto [at, fresh] = sites.try_emplace(index, static_cast<uint32_t>(data.names.sites.size()));
    if (fresh) {
      const analysis::StaticSite& s = known_.program().sites[index];
      data.names.sites.push_back({s.key, project_path(state_, s.file), s.line, s.column, s.function, s.text});
    }
    return at->second;
  };
  std::map<std::string, uint32_t> variables;
  const auto variable = [&](const std::string& name) {
    const auto [at, fresh] = variables.try_emplace(name, static_cast<uint32_t>(data.names.variables.size()));
    if (fresh) data.names.variables.push_back(name);
    return at->second;
  };
  // A variable is called as the runs call it, where they do.
  std::map<uint64_t, std::set<std::string>> names;
  for (const auto& [pair, found] : known_.found()) names[pair.use].insert(pair.variable);
  for (const Knowledge::Potential& potential : known_.potential()) {
    std::set<std::string> called{potential.variable};
    if (const auto at = names.find(known_.program().sites[potential.use].key);
        at != names.end() && !at->second.contains(potential.variable))
      called = at->second;
    for (const std::string& name : called) {
      const db::Pair pair{variable(name),
                          potential.def == analysis::kInitial ? db::DefKind::Initial : db::DefKind::Write,
                          potential.def == analysis::kInitial ? db::kNone : site(potential.def), site(potential.use)};
      data.potential.push_back(pair);
      if (potential.found) continue;
      db::Verdict verdict;
      verdict.pair = pair;
      verdict.layer = "exploration";
      verdict.state = complete ? db::State::Infeasible : db::State::Unknown;
      verdict.bound = complete ? db::Bound::Program : db::Bound::None;
      if (!complete) verdict.reason = "not found: " + potential.bound;
      data.verdicts.push_back(std::move(verdict));
    }
  }
  for (const Knowledge::Escort& escort : known_.escorts()) {
    db::Escort row;
    if (escort.pair.def.site != analysis::kInitial) row.def_site = site(escort.pair.def.site);
    row.def_outcome = escort.pair.def.is_default ? -1 : escort.pair.def.outcome;
    row.use_site = site(escort.pair.use.site);
    row.use_outcome = escort.pair.use.is_default ? -1 : escort.pair.use.outcome;
    row.state = escort.by ? "covered" : escort.infeasible ? "infeasible" : "not found";
    if (!escort.by && !escort.infeasible) row.detail = limits_.empty() ? ended_ : limits_[0];
    data.escorts.push_back(std::move(row));
  }
  store_.import_program(data);
}

LoopResult Loop::result() {
  LoopResult out;
  findings_.clear();
  load_findings();
  out.figures = figures_;
  out.executions = executed_;
  out.findings = findings_;
  out.divergences = divergences_;
  out.limits = limits_;
  out.omega = pending_.size();
  for (const auto& [pair, found] : known_.found()) {
    if (!known_.shared(pair.use)) continue;
    ++out.found;
    out.explicit_pairs += !found.predicted;
    out.implicit_pairs += found.predicted;
    out.confirmed += found.predicted && found.seen;
    out.not_confirmed += found.predicted && !found.seen;
  }
  out.potential = known_.potential().size();
  for (const Knowledge::Potential& pair : known_.potential()) {
    out.infeasible += pair.refuted;
    out.unknown += !pair.found && !pair.refuted;
  }
  out.escorts = known_.escorts().size();
  for (const Knowledge::Escort& escort : known_.escorts()) {
    out.escorts_covered += escort.by.has_value();
    out.escorts_infeasible += escort.infeasible;
  }
  out.seconds = seconds();
  out.solver_seconds = solver_seconds_;
  return out;
}

}  // namespace stem::explorer
