// Runs tasks on all cores in rounds of fixed size: within a round nobody sees what others decide, and results are merged in
// the order of the tasks, so the outcome does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace stem::predictor {

template <typename Result, typename Run, typename Merge>
void run_rounds(size_t tasks, unsigned workers, size_t round, Run run, Merge merge) {
  std::vector<Result> results;
  for (size_t begin = 0; begin < tasks; begin += round) {
    const size_t end = std::min(tasks, begin + round);
    results.clear();
    results.resize(end - begin);
    std::atomic<size_t> next{begin};
    std::vector<std::exception_ptr> errors(workers);
    auto work = [&](unsigned worker) {
      try {
        for (size_t i; (i = next++) < end;) results[i - begin] = run(worker, i);
      } catch (...) {
        errors[worker] = std::current_exception();
      }
    };
    if (workers == 1 || end - begin == 1) {
      work(0);
    } else {
      std::vector<std::jthread> pool;
      for (unsigned w = 0; w < workers; ++w) pool.emplace_back(work, w);
    }
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
    bool go_on = true;
    for (size_t i = begin; i < end; ++i) go_on &= merge(i, std::move(results[i - begin]));
    if (!go_on) return;
  }
}

}  // namespace stem::predictor
