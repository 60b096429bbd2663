#include "explorer/minimise.h"

#include <filesystem>

#include "explorer/execute.h"
#include "explorer/explain.h"

namespace stem::explorer {

namespace {

class Minimiser {
 public:
  Minimiser(const ImportedFinding& finding, const MinimiseOptions& options) : finding_(finding), options_(options) {}

  Minimised run(const trace::Test& test) {
    result_.test = test;
    // Nothing to follow at all?
    if (!test.schedule.empty() && !accept({})) {
      shorten();
      unswitch();
      shorten();
    }
    std::error_code ignored;
    std::filesystem::remove_all(options_.folder, ignored);
    return std::move(result_);
  }

 private:
  using Schedule = std::vector<trace::Step>;

  bool spent() const { return result_.executions >= options_.most || (options_.interrupt && *options_.interrupt); }

  bool accept(const Schedule& schedule) {
    if (spent()) return false;
    trace::Test candidate = result_.test;
    candidate.schedule = schedule;
    ExecuteOptions execution;
    execution.folder = options_.folder;
    execution.timeout = options_.timeout;
    execution.expressions = false;
    ++result_.executions;
    const Execution seen = execute(candidate, execution);
    std::error_code ignored;
    std::filesystem::remove_all(options_.folder, ignored);
    if (seen.failure.empty() || !seen.divergence.empty() || !same(seen)) return false;
    result_.test = std::move(candidate);
    return true;
  }

  // The same kind of failure at the same place.
  bool same(const Execution& seen) const {
    if (seen.run.timed_out) return finding_.kind == "hang";
    if (trace::outcome_name(seen.run.outcome) != finding_.kind) return false;
    if (!finding_.site.key) return true;
    for (size_t i = seen.trace.events.size(); i-- > 0;) {
      const trace::Event& e = seen.trace.events[i];
      if (e.kind == trace::Kind::Fault || (e.kind == trace::Kind::Assert && e.value == 0))
        return seen.trace.sites[e.site].key == finding_.site.key;
    }
    return false;
  }

  // The shortest beginning that fails: by halves, then step by step.
  void shorten() {
    size_t low = 0;  // known not to fail, or not known to
    while (!spent() && result_.test.schedule.size() > low + 1) {
      const Schedule& all = result_.test.schedule;
      const size_t middle = (low + all.size()) / 2;
      if (!accept(Schedule(all.begin(), all.begin() + static_cast<ptrdiff_t>(middle)))) low = middle;
    }
  }

  // Joins a thread's turn with its next one, where the failure stays.
  void unswitch() {
    for (bool better = true; better && !spent();) {
      better = false;
      for (size_t i = result_.test.schedule.size(); i-- > 1 && !spent();) {
        const Schedule& all = result_.test.schedule;
        if (i >= all.size() || all[i].thread == all[i - 1].thread) continue;
        size_t later = i + 1;
        while (later < all.size() && all[later].thread != all[i - 1].thread) ++later;
        if (later == all.size()) continue;
        size_t end = later;
        while (end < all.size() && all[end].thread == all[i - 1].thread) ++end;
        Schedule moved(all.begin(), all.begin() + static_cast<ptrdiff_t>(i));
        moved.insert(moved.end(), all.begin() + static_cast<ptrdiff_t>(later),
                     all.begin() + static_cast<ptrdiff_t>(end));
        moved.insert(moved.end(), all.begin() + static_cast<ptrdiff_t>(i), all.begin() + static_cast<ptrdiff_t>(later));
        moved.insert(moved.end(), all.begin() + static_cast<ptrdiff_t>(end), all.end());
        if (switches_of(moved) < switches_of(all)) better |= accept(moved);
      }
    }
  }

  const ImportedFinding& finding_;
  const MinimiseOptions& options_;
  Minimised result_;
};

}  // namespace

Minimised minimise(const trace::Test& test, const ImportedFinding& finding, const MinimiseOptions& options) {
  return Minimiser(finding, options).run(test);
}

}  // namespace stem::explorer
