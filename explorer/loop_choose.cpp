// What to do next: every question, test and analysis is rated, and the best of all is done.
#include <algorithm>

#include "explorer/loop_state.h"

namespace stem::explorer {

// Once everything is covered, only what may fail is of interest.
bool Loop::goal_reached() const {
  return options_.goal == Goal::Escort ? known_.open_escorts() == 0 : known_.open_pairs() == 0;
}

std::vector<size_t> Loop::work_of(const RunPoints& run, const Point& point) const {
  if (point.kind != trace::Kind::Branch || !point.binary) return {};
  const auto outcome = known_.outcome(point.site, !point.value);
  if (!outcome) return {};
  std::set<analysis::BranchOutcome> others = run.outcomes;
  if (const auto own = known_.outcome(point.site, point.value)) others.erase(*own);
  return known_.open_with(*outcome, others);
}

double Loop::rate(const RunPoints& run, const Point& point) const {
  if (point.patient) return goal_reached() && point.kind != trace::Kind::Assert ? 0 : kPatient;
  const auto tried = tried_.find({point.site, point.value});
  const double tries = tried == tried_.end() ? 0 : tried->second;
  if (options_.goal == Goal::Escort) {
    const size_t work = point.kind == trace::Kind::Assert ? 0 : work_of(run, point).size();
    if (work == 0 || point.asks) return 0;
    return 2000 + static_cast<double>(work);
  }
  const bool again = point.reordered && point.asks == 1;  // by inputs, now
  const bool deep = !again && !taken_.others(point).empty();
  if (point.kind == trace::Kind::Assert) return deep ? 0 : kAssertion / (1 + tries);
  if (goal_reached()) return 0;
  if (deep && point.shared && !point.order_refuted && point.asks == 0 && point.kind == trace::Kind::Branch)
    return std::max(kDeep, kOrderAgain / (1 + tries));
  if (deep || point.kind == trace::Kind::Pin) return kDeep / (1 + tries / 8);
  double gain = 0;
  if (const auto outcome = known_.outcome(point.site, !point.value); outcome && point.binary)
    gain = static_cast<double>(known_.gain(run.sites, *outcome));
  const bool fresh = point.binary ? !taken_.outcome_seen(point.site, !point.value) : !taken_.other_seen(point);
  return ((fresh                    ? kFreshOutcome
           : point.shared && !again ? kOtherOrder
                                    : kOtherPath) +
          10 * std::min(gain, 30.0)) /
         (1 + tries);
}

double Loop::rate(const Pending& pending) const {
  if (pending.origin == "witness") {
    double best = 0;
    for (const PairKey& pair : pending.pairs) {
      if (const auto* found = known_.find(pair); found && found->seen) continue;
      const auto tried = confirmed_of_.find(pair.variable);
      best = std::max(best, std::max(pending.rating, kDeep) / (1 + (tried == confirmed_of_.end() ? 0 : tried->second)));
    }
    return best;
  }
  return std::max(pending.rating, kDeep);
}

bool Loop::step() {
  // Tests whose pairs other runs have shown by now are not needed any more.
  std::erase_if(pending_, [&](const Pending& pending) {
    const bool needless = pending.origin == "witness" && rate(pending) == 0;
    if (needless) memory_.drop_test(pending.id);
    return needless;
  });
  std::vector<std::pair<double, size_t>> tests;
  for (size_t i = 0; i < pending_.size(); ++i) tests.emplace_back(rate(pending_[i]), i);
  std::stable_sort(tests.begin(), tests.end(), [](const auto& a, const auto& b) { return a.first > b.first; });

  std::vector<Question> questions;
  double analysis = 0;
  size_t unanalysed = 0;
  for (size_t r = 0; r < runs_.size(); ++r) {
    if (!runs_[r].analysed && analysis == 0) {
      analysis = options_.goal == Goal::Escort ? 1e5 : kAnalysis;
      unanalysed = r;
    }
    for (size_t p = 0; p < runs_[r].points.size(); ++p) {
      const Point& point = runs_[r].points[p];
      if (point.closed || point.waiting) continue;
      if (const double rating = rate(runs_[r], point); rating > 0) questions.push_back({r, p, rating, {}});
    }
  }
  std::stable_sort(questions.begin(), questions.end(),
                   [](const Question& a, const Question& b) { return a.rating > b.rating; });

  const double best_test = tests.empty() ? 0 : tests[0].first,
               best_question = questions.empty() ? 0 : questions[0].rating;
  if (best_test == 0 && best_question == 0 && analysis == 0) return false;
  if (best_test >= std::max(best_question, analysis)) {
    std::vector<size_t> batch;
    const size_t left = options_.runs ? static_cast<size_t>(options_.runs - executed_) : SIZE_MAX;
    for (const auto& [rating, index] : tests)
      if (rating > 0 && rating >= std::max(best_question, analysis) && batch.size() < std::min<size_t>(jobs_, left))
        batch.push_back(index);
    run_tests(batch);
  } else if (analysis >= best_question) {
    analyse(unanalysed);
  } else {
    std::vector<Question> batch;
    for (Question& question : questions) {
      if (batch.size() >= jobs_ || question.rating < std::max(best_test, analysis)) break;
      Point& point = runs_[question.run].points[question.point];
      const bool plain = options_.goal == Goal::Escort || (point.reordered && point.asks == 1);
      NextWish next = plain ? NextWish{} : next_wish(runs_, taken_, runs_[question.run], point);
      if (next.deep && !point.binary)
        limit("a switch or a value held fixed was led to new values only, not to every combination with other threads");
      if (next.none || (next.deep && point.asks >= kMostAsks)) {
        point.closed = true;
        if (!next.none) limit("some branches were led another way only a few times");
        continue;
      }
      question.order_first = point.shared && point.asks == 0 && !next.deep && options_.goal == Goal::Pairs &&
                             point.kind == trace::Kind::Branch;
      question.order_only = point.shared && !point.order_refuted && point.asks == 0 && next.deep &&
                            options_.goal == Goal::Pairs && point.kind == trace::Kind::Branch &&
                            question.rating > kDeep;
      question.wish = std::move(next.wish);
      batch.push_back(question);
    }
    ask(batch);
  }
  return true;
}

}  // namespace stem::explorer
