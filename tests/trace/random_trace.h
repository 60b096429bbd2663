// Random well-formed traces: a scheduler over an abstract multithreaded program with every kind of synchronisation, memory
// of mixed sizes, allocations, expressions, pins and branches. Every value is what memory held, every branch what its
// condition says. Used by the tests of the file format, the checker and the comparison.
#pragma once

#include <deque>
#include <map>
#include <random>
#include <set>

#include "trace/builder.h"
#include "trace/eval.h"

namespace stem::trace {

class RandomTrace {
 public:
  RandomTrace(uint64_t seed, size_t events, unsigned workers = 3) : rng_(seed) {
    Trace& t = b_.trace();
    t.meta.program = "./random";
    t.meta.argv = {"./random", std::to_string(seed)};
    t.meta.seed = seed;
    for (int i = 0; i < 4; ++i) vars_.push_back(b_.global("g" + std::to_string(i), i % 2 ? 4 : 8, i == 3 ? 77 : 0));
    uint32_t array = b_.object(ObjectKind::Global, "array", 4096);
    b_.object(array).zeroed = true;
    for (int i = 0; i < 64; ++i) vars_.push_back(b_.part(array, i * 8, 8, "[]"));
    for (int i = 0; i < 16; ++i) vars_.push_back(b_.part(array, 1024 + i * 3, 1 + i % 4, "[].odd"));
    for (int i = 0; i < 3; ++i) mutexes_.push_back(b_.sync("m" + std::to_string(i)));
    cond_ = b_.sync("cond"), rw_ = b_.sync("rw"), sem_ = b_.sync("sem"), barrier_ = b_.sync("barrier"), once_ = b_.sync("once");
    input_ = b_.input("in", rng_() & 0xffffffffu, 4);
    t.nondets.push_back({"time", {1, 2, 3}});
    b_.event(0, Kind::Input, site(1), input_);
    b_.event(0, Kind::Nondet, site(2), 0);
    b_.event(0, Kind::SemInit, site(3), 2, sem_);
    sem_count_ = 2;
    threads_.resize(1);
    while (b_.size() < events) {
      ThreadId thread = live_[rng_() % live_.size()];
      for (unsigned burst = rng_() % 20 + 1; burst && b_.size() < events; --burst) {
        if (!step(thread, workers)) break;
      }
    }
  }

  Trace take() {
    // Wind down: everybody gives back what it holds, then ends and is joined.
    for (ThreadId t : live_) {
      while (!threads_[t].held.empty()) unlock_last(t);
      if (threads_[t].reads_rw || threads_[t].writes_rw) rw_unlock(t);
      if (t) b_.end(t);
    }
    for (ThreadId t : live_) {
      if (t) b_.join(0, t, site(90));
    }
    return b_.take();
  }

 private:
  struct State {
    std::vector<int> held;           // mutexes, in order
    bool reads_rw = false, writes_rw = false;
    std::deque<ExprId> values;       // recent expressions of 32 bits
  };

  SiteId site(uint32_t line) { return b_.site("random.c", line, "v" + std::to_string(line), "run", line % 7 + 1); }

  uint64_t load(const Var& v) {
    uint64_t value = 0;
    for (unsigned i = 0; i < v.size; ++i) value |= static_cast<uint64_t>(byte(v, i)) << (8 * i);
    return value;
  }
  uint8_t byte(const Var& v, unsigned i) {
    auto found = memory_.find(v.addr + i);
    if (found != memory_.end()) return found->second;
    const Object& o = b_.object(v.object);
    if (!o.initial.empty()) return o.initial[v.addr + i - o.base];
    if (o.zeroed) return 0;
    return memory_[v.addr + i] = static_cast<uint8_t>(rng_());  // unknown until first read
  }
  void store(const Var& v, uint64_t value) {
    for (unsigned i = 0; i < v.size; ++i) memory_[v.addr + i] = static_cast<uint8_t>(value >> (8 * i));
  }
  const Var& some_var() {
    if (!heap_.empty() && rng_() % 3 == 0) return heap_vars_[rng_() % heap_vars_.size()];
    return vars_[rng_() % vars_.size()];
  }

  uint64_t value_of(ExprId id) {
    const Trace& t = b_.trace();
    for (ExprId next = static_cast<ExprId>(values_.size()); next <= id; ++next) {
      const Expr& e = t.exprs[next];
      uint64_t v = e.op == Op::Read    ? t.events[e.value].value
                   : e.op == Op::Input ? *input_value(t.inputs, e.value, e.width)
                   : e.op == Op::Opaque ? e.value
                                        : apply(e.op, e.width, values_[e.a], values_[e.b], values_[e.c], t.exprs[e.a].width, t.exprs[e.b].width, e.value);
      values_.push_back(v & width_mask(e.width));
    }
    return values_[id];
  }

  // A 32-bit expression over what the thread has read.
  ExprId some_expr(ThreadId t) {
    auto& values = threads_[t].values;
    if (values.empty()) values.push_back(b_.input_leaf(input_, 32));
    ExprId a = values[rng_() % values.size()], b = values[rng_() % values.size()];
    ExprId result = 0;
    switch (rng_() % 7) {
      case 0: result = b_.op(Op::Add, 32, a, b); break;
      case 1: result = b_.op(Op::Xor, 32, a, b_.constant(32, rng_() % 100)); break;
      case 2: result = b_.op(Op::Mul, 32, a, b_.constant(32, 3)); break;
      case 3: result = b_.op(Op::Ite, 32, b_.op(Op::Slt, 1, a, b), a, b); break;
      case 4: result = b_.op(Op::Trunc, 32, b_.op(Op::SExt, 64, a)); break;
      case 5: result = b_.expr(Op::Extract, 32, b_.op(Op::Concat, 64, a, b), 0, 0, 16); break;
      case 6: result = b_.expr(Op::Opaque, 32, a, rng_() % 2 ? b : 0, 0, rng_() & 0xffff); break;
    }
    keep(t, result);
    return result;
  }
  void keep(ThreadId t, ExprId e) {
    threads_[t].values.push_back(e);
    if (threads_[t].values.size() > 6) threads_[t].values.pop_front();
  }

  void unlock_last(ThreadId t) {
    int m = threads_[t].held.back();
    threads_[t].held.pop_back();
    owner_[m] = kNone;
    b_.unlock(t, mutexes_[m], site(11));
  }
  void rw_unlock(ThreadId t) {
    if (threads_[t].writes_rw) writer_ = false;
    else --readers_;
    threads_[t].writes_rw = threads_[t].reads_rw = false;
    b_.event(t, Kind::RwUnlock, site(12), 0, rw_);
  }

  bool step(ThreadId t, unsigned workers) {
    State& s = threads_[t];
    switch (rng_() % 24) {
      case 0:  // a new thread
        if (t == 0 && live_.size() <= workers) {
          threads_.resize(threads_.size() + 1);
          live_.push_back(b_.spawn("worker", 0, site(20)));
          return false;
        }
        return true;
      case 1:
        if (t && s.held.empty() && !s.reads_rw && !s.writes_rw && rng_() % 8 == 0) {
          b_.end(t);
          b_.join(0, t, site(21));
          live_.erase(std::find(live_.begin(), live_.end(), t));
          return false;
        }
        return true;
      case 2: {
        int m = static_cast<int>(rng_() % mutexes_.size());
        auto owner = owner_.find(m);
        bool free = owner == owner_.end() || owner->second == kNone;
        if (free && s.held.size() < 2) {
          owner_[m] = t;
          s.held.push_back(m);
          b_.lock(t, mutexes_[m], site(10));
        } else if (!free && owner->second != t) {
          b_.event(t, Kind::LockFail, site(13), 16, mutexes_[m], kTry);
        }
        return true;
      }
      case 3:
        if (!s.held.empty()) unlock_last(t);
        return true;
      case 4:
        if (s.writes_rw || s.reads_rw) rw_unlock(t);
        else if (!writer_ && rng_() % 2) s.reads_rw = true, ++readers_, b_.event(t, Kind::RdLock, site(14), 0, rw_);
        else if (!writer_ && !readers_) s.writes_rw = writer_ = true, b_.event(t, Kind::WrLock, site(15), 0, rw_);
        return true;
      case 5:
        if (sem_count_ && rng_() % 2) --sem_count_, b_.event(t, Kind::SemWait, site(16), 0, sem_);
        else ++sem_count_, b_.event(t, Kind::SemPost, site(17), 0, sem_);
        return true;
      case 6: {  // a wait, whole: somebody else signals in between
        if (s.held.size() != 1 || live_.size() < 2) return true;
        ThreadId other = live_[0] == t ? live_[1] : live_[0];
        int m = s.held[0];
        b_.wait(t, cond_, mutexes_[m], site(18));
        if (rng_() % 4 == 0) {
          b_.event(t, Kind::Wake, site(18), 0, cond_, rng_() % 2 ? kTimeout : kSpurious);
        } else {
          if (rng_() % 2) b_.signal(other, cond_, t + 1ull, site(19));
          else b_.broadcast(other, cond_, 1, site(22));
          b_.wake(t, cond_, other, site(18));
        }
        b_.lock(t, mutexes_[m], site(18));
        return true;
      }
      case 7: {  // allocation and release
        if (heap_.size() < 4 && rng_() % 2) {
          uint64_t size = 8 * (1 + rng_() % 8);
          Var h = b_.alloc(t, "heap(run:23)", size, site(23), rng_() % 2 ? kZeroed : 0);
          b_.object(h.object).identity = "heap(run:23)@" + b_.trace().threads[t].path + "#" + std::to_string(ordinal_++);
          heap_.push_back(h);
          for (uint64_t i = 0; i < size; i += 8) heap_vars_.push_back(b_.part(h.object, i, 8, ".field"));
        } else if (!heap_.empty()) {
          Var h = heap_.front();
          heap_.pop_front();
          while (!heap_vars_.empty() && heap_vars_.front().object == h.object) heap_vars_.pop_front();
          b_.free(t, h, site(24));
        }
        return true;
      }
      case 8: {  // a branch on what was read
        ExprId e = some_expr(t);
        ExprId condition = b_.op(Op::Ult, 1, e, b_.constant(32, 1000));
        b_.branch(t, condition, value_of(condition), site(30 + t % 4));
        return true;
      }
      case 9: {
        ExprId e = some_expr(t);
        b_.pin(t, e, value_of(e), site(34));
        return true;
      }
      case 10: {
        const Var& v = some_var();
        uint64_t old = load(v), now = (old + 1) & width_mask(8u * v.size);
        uint64_t index = b_.rmw(t, v, old, now, site(40));
        if (rng_() % 2) {
          ExprId leaf = b_.leaf(index);
          b_.at(index).expr = b_.op(Op::Add, 8u * v.size, leaf, b_.constant(8u * v.size, 1));
        }
        store(v, now);
        return true;
      }
      case 11: {
        const Var& v = some_var();
        uint64_t now = rng_() & width_mask(8u * v.size);
        if (now == load(v)) return true;
        Var at = v;
        b_.event(t, Kind::External, 0, now, at);
        store(v, now);
        return true;
      }
      case 12:
        b_.event(t, Kind::Yield, site(41));
        return true;
      case 13:
        if (!s.held.empty()) return true;
        b_.event(t, Kind::AtomicBegin, site(42));
        b_.event(t, Kind::AtomicEnd, site(43));
        return true;
      case 14:
        if (once_done_) b_.event(t, Kind::OncePass, site(44), 0, once_);
        else once_done_ = true, b_.event(t, Kind::OnceBegin, site(44), 0, once_), b_.event(t, Kind::OnceEnd, site(44), 0, once_);
        return true;
      default: {
        const Var& v = some_var();
        SiteId where = site(50 + static_cast<uint32_t>(rng_() % 20));
        if (rng_() % 5 < 3) {
          uint64_t index = b_.read(t, v, load(v), where);
          store(v, load(v));
          if (rng_() % 8 == 0) b_.at(index).flags |= kPinned;
          else if (v.size == 4 && rng_() % 2) keep(t, b_.leaf(index));
        } else if (v.size == 4 && rng_() % 2) {
          ExprId e = some_expr(t);
          b_.write(t, v, value_of(e), where, e);
          store(v, value_of(e));
        } else {
          uint64_t value = rng_() % 3 ? rng_() % 10 : rng_() & width_mask(8u * v.size);
          value &= width_mask(8u * v.size);
          b_.write(t, v, value, where);
          store(v, value);
        }
        return true;
      }
    }
  }

  std::mt19937_64 rng_;
  Builder b_;
  std::vector<Var> vars_, mutexes_;
  std::deque<Var> heap_, heap_vars_;
  Var cond_, rw_, sem_, barrier_, once_;
  uint32_t input_ = 0;
  uint64_t sem_count_ = 0, ordinal_ = 0, readers_ = 0;
  bool writer_ = false, once_done_ = false;
  std::map<uint64_t, uint8_t> memory_;
  std::map<int, ThreadId> owner_;
  std::vector<State> threads_;
  std::vector<ThreadId> live_{0};
  std::vector<uint64_t> values_{0};
};

inline Trace random_trace(uint64_t seed, size_t events, unsigned workers = 3) { return RandomTrace(seed, events, workers).take(); }

}  // namespace stem::trace
