// A small cooperative run: every thread has a list of operations, a scheduler picks an enabled one, and what happens is
// written down as a recorder would.
#include "shapes.h"

#include <deque>
#include <functional>

#include "trace/builder.h"

namespace stem::bench {

using trace::Kind;
using trace::Op;
using trace::SiteId;
using trace::Var;

namespace {

constexpr uint32_t kThreads = 4;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull) {}
  uint32_t below(uint32_t n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<uint32_t>((state_ >> 16) % n);
  }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

struct Operation {
  std::function<bool()> enabled;  // empty: always
  std::function<void()> run;
};

class Run {
 public:
  Run(uint32_t shared_events, uint64_t seed) : random(seed), left_(shared_events) {}

  trace::Builder b;
  Random random;
  trace::ThreadId self = 0;              // whose operation runs
  std::vector<std::deque<Operation>> todo;

  Var variable(const std::string& name) {
    Var v = b.global(name, 4, 0);
    memory_.resize(std::max<size_t>(memory_.size(), v.object + 1));
    return v;
  }
  Var mutex(const std::string& name) {
    Var m = b.sync(name);
    owner_.resize(std::max<size_t>(owner_.size(), m.object + 1), 0);
    return m;
  }
  SiteId site(uint32_t line) { return b.site("bench.c", line); }

  void then(std::function<void()> run, std::function<bool()> enabled = {}) {
    todo[self].push_back({std::move(enabled), std::move(run)});
  }
  void now(std::vector<std::function<void()>> steps) {  // before what is still to do
    for (auto it = steps.rbegin(); it != steps.rend(); ++it) todo[self].push_front({{}, std::move(*it)});
  }

  uint64_t read(Var v, uint32_t line) {
    if (left_) --left_;
    return b.read(self, v, memory_[v.object], site(line));
  }
  uint32_t value(uint64_t event) { return static_cast<uint32_t>(b.at(event).value); }
  void write(Var v, uint32_t value, uint32_t line, trace::ExprId expr = 0) {
    if (left_) --left_;
    b.write(self, v, value, site(line), expr);
    memory_[v.object] = value;
  }
  void lock(Var m) {
    then([this, m] { owner_[m.object] = self + 1, b.lock(self, m); }, [this, m] { return owner_[m.object] == 0; });
  }
  void unlock(Var m) {
    then([this, m] { owner_[m.object] = 0, b.unlock(self, m); });
  }
  bool branch(trace::ExprId condition, bool outcome, uint32_t line) {
    b.branch(self, condition, outcome, site(line));
    return outcome;
  }
  trace::ExprId compare(Op op, uint64_t event, uint32_t constant) {
    return b.op(op, 1, b.leaf(event), b.constant(32, constant));
  }
  trace::ExprId plus(uint64_t event, uint32_t constant) {
    return b.op(Op::Add, 32, b.leaf(event), b.constant(32, constant));
  }

  // next(thread) appends a thread's next piece of work; when the events are used up the threads end.
  trace::Trace go(const std::function<void(uint32_t)>& next) {
    std::vector<trace::ThreadId> ids;
    for (uint32_t t = 0; t < kThreads; ++t) ids.push_back(b.spawn("worker"));
    todo.resize(kThreads + 1);
    std::vector<bool> over(kThreads, false);
    uint32_t current = 0, running = kThreads;
    while (running > 0) {
      if (random.one_in(6)) current = random.below(kThreads);
      bool stepped = false;
      for (uint32_t i = 0; i < kThreads && !stepped; ++i) {
        const uint32_t t = (current + i) % kThreads;
        if (over[t]) continue;
        self = ids[t];
        if (todo[self].empty() && left_ > 0) next(t);
        if (todo[self].empty()) {
          b.end(self);
          over[t] = true, --running, stepped = true;
          break;
        }
        Operation& op = todo[self].front();
        if (op.enabled && !op.enabled()) continue;
        const auto run = std::move(op.run);
        todo[self].pop_front();
        run();
        current = t, stepped = true;
      }
      if (!stepped) break;
    }
    for (uint32_t t = 0; t < kThreads; ++t) b.join(0, ids[t]);
    return b.take();
  }

 private:
  uint32_t left_;
  std::vector<uint32_t> memory_;
  std::vector<uint32_t> owner_;
};

}  // namespace

// 16 counters, a mutex each; 8 places in the code that touch each: increments, a reset that reads what it wrote, a check.
trace::Trace locked(uint32_t n, uint64_t seed) {
  Run run(n, seed);
  std::vector<Var> counters, mutexes;
  for (int v = 0; v < 16; ++v) counters.push_back(run.variable("counter" + std::to_string(v))), mutexes.push_back(run.mutex("m" + std::to_string(v)));
  return run.go([&](uint32_t) {
    const uint32_t v = run.random.below(16), place = run.random.below(8);
    const uint32_t line = 100 + v * 100 + place * 10;
    const Var x = counters[v];
    run.lock(mutexes[v]);
    if (place < 5) {
      run.then([&run, x, line, place] {
        const uint64_t r = run.read(x, line);
        if (place == 0) run.branch(run.compare(Op::Ult, r, 1u << 30), true, line + 1);
        run.now({[&run, x, line, r] { run.write(x, run.value(r) + 1, line + 2, run.plus(r, 1)); }});
      });
    } else if (place == 5) {
      run.then([&run, x, line] { run.write(x, 0, line); });
      run.then([&run, x, line] { run.read(x, line + 1); });
    } else {
      run.then([&run, x, line] { run.read(x, line); });
    }
    run.unlock(mutexes[v]);
  });
}

// A ring of 8 slots: two producers, two consumers, 4 places in the code each; full and empty are branches on the count.
trace::Trace queue(uint32_t n, uint64_t seed) {
  Run run(n, seed);
  const Var m = run.mutex("m"), count = run.variable("count"), head = run.variable("head"), tail = run.variable("tail");
  std::vector<Var> slots, produced;
  for (int i = 0; i < 8; ++i) slots.push_back(run.variable("slot" + std::to_string(i)));
  for (int t = 0; t < 4; ++t) produced.push_back(run.variable("stat" + std::to_string(t)));
  return run.go([&, m](uint32_t t) {
    const bool producer = t < 2;
    const uint32_t line = 100 + (producer ? 0 : 400) + run.random.below(4) * 100;
    run.lock(m);
    run.then([&run, &slots, &produced, t, line, producer, count, head, tail] {
      const uint64_t c = run.read(count, line);
      const bool go = producer ? run.value(c) < 8 : run.value(c) > 0;
      run.branch(producer ? run.compare(Op::Ult, c, 8) : run.compare(Op::Ne, c, 0), go, line + 1);
      if (!go) return;
      const Var end = producer ? tail : head;
      run.now({[&run, &slots, t, line, producer, end] {
                 const uint64_t i = run.read(end, line + 2);
                 const uint32_t slot = run.value(i) % 8;
                 // Which slot it is decides an address.
                 run.b.pin(run.self, run.b.op(Op::And, 32, run.b.leaf(i), run.b.constant(32, 7)), slot, run.site(line + 3));
                 const Var s = slots[slot];
                 run.now({[&run, s, t, line, producer] {
                            if (producer) run.write(s, t + 1, line + 10 + static_cast<uint32_t>(s.object % 8));
                            else run.read(s, line + 20 + static_cast<uint32_t>(s.object % 8));
                          },
                          [&run, end, i, line] { run.write(end, run.value(i) + 1, line + 4, run.plus(i, 1)); }});
               },
               [&run, count, c, line, producer] {
                 const uint32_t by = producer ? 1u : ~0u;
                 run.write(count, run.value(c) + by, line + 5, run.plus(c, by));
               }});
    });
    run.unlock(m);
    run.then([&run, &produced, t, line] {
      const uint64_t r = run.read(produced[t], line + 50);
      run.now({[&run, &produced, t, line, r] { run.write(produced[t], run.value(r) + 1, line + 51, run.plus(r, 1)); }});
    });
  });
}

// 32 cells, 8 a thread; 4 kinds of phase in turn. A phase: each thread reads cells of its neighbour that nobody writes then,
// and writes half of its own; then a barrier.
trace::Trace phased(uint32_t n, uint64_t seed) {
  Run run(UINT32_MAX, seed);
  const uint32_t phases = n / (8 * kThreads);
  std::vector<Var> cells;
  for (int i = 0; i < 32; ++i) cells.push_back(run.variable("cell" + std::to_string(i)));
  const Var barrier = run.b.sync("barrier");
  run.b.event(0, Kind::BarrierInit, run.site(1), kThreads, barrier);
  std::vector<uint32_t> phase(kThreads, 0), arrived(phases, 0);
  return run.go([&, barrier](uint32_t t) {
    const uint32_t g = phase[t]++;
    if (g >= phases) return;
    const uint32_t odd = g & 1, kind = (g / 2) % 4;  // cells of this parity are written, the others read
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t mine = t * 8 + i * 2 + odd, theirs = (t * 8 + i * 2 + 8 + (1 - odd)) % 32;
      run.then([&run, &cells, theirs, mine, kind] {
        const uint64_t r = run.read(cells[theirs], 1000 + theirs * 10 + kind);
        run.now({[&run, &cells, mine, kind, r] {
          const auto times = run.b.op(Op::Mul, 32, run.b.leaf(r), run.b.constant(32, 3));
          run.write(cells[mine], run.value(r) * 3 + 1, 2000 + mine * 10 + kind, run.b.op(Op::Add, 32, times, run.b.constant(32, 1)));
        }});
      });
    }
    run.then([&run, barrier, g, &arrived] {
      ++arrived[g];
      run.b.event(run.self, Kind::BarrierArrive, run.site(2), g, barrier);
    });
    run.then([&run, barrier, g] { run.b.event(run.self, Kind::BarrierLeave, run.site(2), g, barrier); },
             [&arrived, g] { return arrived[g] == kThreads; });
  });
}

// 8 variables, 24 places each: plain reads and writes of small values; one read in three is branched on.
trace::Trace random(uint32_t n, uint64_t seed) {
  Run run(n, seed);
  std::vector<Var> variables;
  for (int v = 0; v < 8; ++v) variables.push_back(run.variable("v" + std::to_string(v)));
  return run.go([&](uint32_t t) {
    const uint32_t v = run.random.below(8), place = run.random.below(6);
    const uint32_t line = 100 + v * 100 + t * 20 + place * 3;
    const Var x = variables[v];
    const uint32_t value = run.random.below(3);
    if (place < 3)
      run.then([&run, x, line, place] {
        const uint64_t r = run.read(x, line);
        if (place == 0) run.branch(run.compare(Op::Eq, r, 1), run.value(r) == 1, line + 1);
      });
    else
      run.then([&run, x, line, value] { run.write(x, value, line); });
  });
}

}  // namespace stem::bench
