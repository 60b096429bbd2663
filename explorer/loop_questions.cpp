// What is asked of the solver: which pairs a run implies, and what leads its branches another way.
#include <fmt/format.h>

#include <algorithm>

#include "explorer/explain.h"
#include "explorer/import.h"
#include "explorer/loop_state.h"
#include "predictor/rounds.h"

namespace stem::explorer {

using predictor::Alternate;

void Loop::analyse(size_t index) {
  progress("predicting");
  RunPoints& run = runs_[index];
  const auto trace = trace_of(index);
  predictor::AnalysisOptions analysis;
  analysis.threads = jobs_;
  analysis.query_ms = options_.query_ms;
  analysis.timeout = std::chrono::milliseconds(within_time(10 * options_.query_ms));
  analysis.interrupt = options_.interrupt;
  analysis.skip = [&](trace::SiteId def, trace::SiteId use, uint32_t variable) {
    return !known_.wanted(def == trace::kNone ? kInitialKey : trace->sites[def].key, trace->sites[use].key,
                          predictor::variable_name(*trace, variable));
  };
  predictor::AnalysisResult result = predictor::analyze(*trace, analysis);
  solver_seconds_ += result.statistics.solver_seconds;
  run.analysed = true;
  if (options_.interrupt && *options_.interrupt) return;  // it is done again next time
  std::erase_if(result.pairs,
                [](const predictor::PairResult& pair) { return pair.state == predictor::State::Explicit; });
  for (const predictor::PairResult& pair : result.pairs) {
    const PairKey key{pair.def.initial ? kInitialKey : trace->sites[pair.def.site].key, trace->sites[pair.use.site].key,
                      pair.variable};
    if (pair.state == predictor::State::Infeasible && !pair.bound.whole) limit("long runs were looked at in windows");
    if (pair.state == predictor::State::Unknown)
      limit(fmt::format("{}{}{}", predictor::why_text(pair.why), pair.detail.empty() ? "" : ", ", pair.detail));
    if (pair.state != predictor::State::Implicit || !pair.witness) continue;
    const double rating = pair.relation == predictor::Relation::Race && !pair.def.initial ? kRace : kConfirm;
    const std::string detail = pair_text(known_, key);
    if (Pending* test = add_pending(predictor::test_of(*trace, *pair.witness), "witness", detail, rating))
      test->pairs.push_back(key);
    note_implicit(key, known_.predicted(key));
  }
  result.interrupted = false;
  import_analysis(store_, state_, run.hash, *trace, result);
}

void Loop::ask(const std::vector<Question>& batch) {
  if (batch.empty()) return;
  progress("solving");
  for (const Question& question : batch) trace_of(question.run);
  predictor::AlternateOptions alternates;
  alternates.query_ms = within_time(options_.query_ms);
  alternates.limits_ms = within_time(2 * options_.query_ms);
  alternates.interrupt = options_.interrupt;
  std::vector<std::shared_ptr<const trace::Trace>> traces;
  for (const Question& question : batch) traces.push_back(trace_of(question.run));
  predictor::run_rounds<Alternate>(
      batch.size(), jobs_, batch.size(),
      [&](unsigned worker, size_t i) {
        const Point& point = runs_[batch[i].run].points[batch[i].point];
        if (point.patient) {  // with more time, for this one alone
          predictor::AlternateOptions patient = alternates;
          patient.query_ms = within_time(kPatience * options_.query_ms);
          return predictor::Alternates(*traces[i], patient).negate(point.event, batch[i].wish);
        }
        auto& solvers = solvers_[worker];
        auto at = solvers.find(batch[i].run);
        if (at == solvers.end()) {
          if (solvers.size() >= 4) solvers.clear();
          at = solvers
                   .emplace(batch[i].run,
                            Solver{traces[i], std::make_unique<predictor::Alternates>(*traces[i], alternates)})
                   .first;
        }
        const uint32_t event = point.event;
        if (batch[i].order_only) return at->second.alternates->reorder(event, batch[i].wish);
        if (batch[i].order_first && at->second.alternates->mixed(event))
          if (Alternate order = at->second.alternates->reorder(event, batch[i].wish);
              order.kind == Alternate::Kind::Feasible)
            return order;
        return at->second.alternates->negate(event, batch[i].wish);
      },
      [&](size_t i, Alternate answer) {
        take(batch[i], *traces[i], answer);
        return true;
      });
}

void Loop::take(const Question& question, const trace::Trace& trace, const Alternate& answer) {
  RunPoints& run = runs_[question.run];
  Point& point = run.points[question.point];
  solver_seconds_ += answer.seconds;
  tried_[{point.site, point.value}] += 1;
  for (size_t escort : work_of(run, point))
    if (step_ && std::find(step_->work.begin(), step_->work.end(), escort) == step_->work.end())
      step_->work.push_back(escort);
  db::StoredNegation row{run.run, point.event, point.asks, "unknown", false, "", 0};
  switch (answer.kind) {
    case Alternate::Kind::Feasible: {
      row.state = "feasible";
      const bool assertion = point.kind == trace::Kind::Assert;
      const double rating = assertion                       ? kAssertion
                            : options_.goal == Goal::Escort ? question.rating - 1000
                                                            : question.rating;
      Pending* test = add_pending(predictor::test_of(trace, answer), assertion ? "assertion" : "branch",
                                  point_text(trace, point.event, answer.value), rating);
      if (test) {
        test->run = question.run;
        test->point = question.point;
        point.waiting = true;
        point.reordered = question.order_first && answer.witness.inputs == trace.inputs;
        row.test = test->id;
      } else if (point.reordered && point.asks == 1) {
        point.reordered = false;  // inputs lead to the same test; go on with other combinations
      } else {
        point.closed = true;  // that test was run, and did not lead there
        limit("a test that should have led to another branch did not: " + point_text(trace, point.event, answer.value));
      }
      break;
    }
    case Alternate::Kind::Infeasible:
      if (question.order_only) {  // inputs may lead there yet
        point.order_refuted = true;
        return;
      }
      row.state = "infeasible";
      row.bounded = answer.bounded;
      row.detail = answer.limit;
      point.closed = true;
      if (answer.bounded) limit(answer.limit);
      break;
    case Alternate::Kind::Unknown:
      if (options_.interrupt && *options_.interrupt) return;
      if (question.order_only) {
        point.order_refuted = true;
        return;
      }
      if (answer.why == predictor::Why::Budget && !point.patient) {  // again, when nothing else is left
        point.patient = true;
        return;
      }
      row.detail =
          fmt::format("{}{}{}", predictor::why_text(answer.why), answer.detail.empty() ? "" : ", ", answer.detail);
      point.closed = true;
      limit(row.detail);
      break;
  }
  ++point.asks;
  memory_.add_negation(row);
}

}  // namespace stem::explorer
