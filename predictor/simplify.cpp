#include "predictor/simplify.h"

#include <algorithm>
#include <cstddef>

namespace stem::predictor {

namespace {

constexpr size_t kBudget = 1'000'000;  // events that the tries may execute, for one witness

class Simplifier {
 public:
  Simplifier(const trace::Trace& trace, Witness& witness, const Good& good) : trace_(trace), witness_(witness), good_(good) {}

  void drop_suffixes() {
    const trace::ThreadId own = thread(witness_.schedule.back());
    std::vector<trace::ThreadId> others;
    for (uint32_t e : witness_.schedule)
      if (thread(e) != own && std::find(others.begin(), others.end(), thread(e)) == others.end()) others.push_back(thread(e));
    std::reverse(others.begin(), others.end());  // who came last is needed least
    for (trace::ThreadId t : others) {
      size_t low = 0, high = static_cast<size_t>(std::count_if(witness_.schedule.begin(), witness_.schedule.end(), [&](uint32_t e) { return thread(e) == t; }));
      while (low < high) {
        const size_t middle = low == 0 ? 0 : (low + high) / 2;  // nothing at all is the best guess
        if (try_schedule(without(t, middle))) high = middle;
        else low = middle + 1;
      }
    }
  }

  void join_blocks() {
    for (bool again = true; again;) {
      again = false;
      const std::vector<Block> blocks = split();
      for (size_t i = 2; i < blocks.size() && !again; ++i) {
        size_t j = i - 1;
        while (j > 0 && blocks[j].thread != blocks[i].thread) --j;
        if (blocks[j].thread != blocks[i].thread) continue;
        if (spent_ > kBudget) return;
        const auto begin = witness_.schedule.begin();
        std::vector<uint32_t> earlier = witness_.schedule;  // block i right after block j
        std::rotate(earlier.begin() + at(blocks[j].end), earlier.begin() + at(blocks[i].begin), earlier.begin() + at(blocks[i].end));
        std::vector<uint32_t> later(begin, witness_.schedule.end());  // block j right before block i
        std::rotate(later.begin() + at(blocks[j].begin), later.begin() + at(blocks[j].end), later.begin() + at(blocks[i].begin));
        again = (i + 1 < blocks.size() && try_schedule(std::move(earlier))) || try_schedule(std::move(later));
      }
    }
  }

  void keep_inputs() {
    if (try_inputs(trace_.inputs)) return;
    for (size_t i = 0; i < trace_.inputs.size(); ++i) {
      std::vector<trace::Input> inputs = witness_.inputs;
      inputs[i] = trace_.inputs[i];
      if (try_inputs(inputs)) continue;
      for (size_t k = trace_.inputs[i].bytes.size(); k-- > 0;) {
        inputs = witness_.inputs;
        inputs[i].bytes[k] = trace_.inputs[i].bytes[k];
        try_inputs(inputs);
      }
    }
  }

 private:
  struct Block {
    size_t begin, end;
    trace::ThreadId thread;
  };
  trace::ThreadId thread(uint32_t e) const { return trace_.events[e].thread; }
  static ptrdiff_t at(size_t i) { return static_cast<ptrdiff_t>(i); }

  std::vector<Block> split() const {
    std::vector<Block> blocks;
    for (size_t i = 0; i < witness_.schedule.size(); ++i) {
      if (blocks.empty() || blocks.back().thread != thread(witness_.schedule[i])) blocks.push_back({i, i, thread(witness_.schedule[i])});
      blocks.back().end = i + 1;
    }
    return blocks;
  }

  std::vector<uint32_t> without(trace::ThreadId t, size_t keep) const {
    std::vector<uint32_t> schedule;
    for (uint32_t e : witness_.schedule)
      if (thread(e) != t || keep > 0) schedule.push_back(e), keep -= thread(e) == t;
    return schedule;
  }

  bool try_schedule(std::vector<uint32_t> schedule) {
    Witness other{witness_.pair, witness_.inputs, std::move(schedule), {}};
    assign_wakeups(trace_, other);
    return accept(std::move(other));
  }
  bool try_inputs(const std::vector<trace::Input>& inputs) {
    if (inputs == witness_.inputs) return true;
    Witness other = witness_;
    other.inputs = inputs;
    return accept(std::move(other));
  }
  bool accept(Witness other) {
    spent_ += other.schedule.size();
    if (spent_ > kBudget || !good_(other)) return false;
    witness_ = std::move(other);
    return true;
  }

  const trace::Trace& trace_;
  Witness& witness_;
  const Good& good_;
  size_t spent_ = 0;
};

}  // namespace

void simplify_schedule(const trace::Trace& trace, Witness& witness, const Good& good) {
  Simplifier simplifier(trace, witness, good);
  simplifier.drop_suffixes();
  simplifier.join_blocks();
}

void simplify_inputs(const trace::Trace& trace, Witness& witness, const Good& good) {
  Simplifier(trace, witness, good).keep_inputs();
}

}  // namespace stem::predictor
