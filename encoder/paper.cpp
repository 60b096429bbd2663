// The paper's formula, literally, as the baseline to compare with (`--encoding=paper`): FULL, the whole trace, every event
// with a position, every read matched against every write of its variable, nothing pruned, a fresh solver for every pair.
//
//   (2) program order: neighbours in a thread; creation, join, barriers, once likewise
//   (3) two sections of one mutex: o(u_i) < o(l_k) or o(u_k) < o(l_i)
//   (4)(5) a wait maps to at least one signal between it and the thread's next event; a signal to at most one wait
//   (6) program semantics: every branch keeps its outcome
//   (7) each read takes the value of some write of the variable, with no write between
//   (9) def-use
//
// The initial value of a variable is a write W_0 with a position of its own, before everything. Accesses of mixed sizes,
// which the paper does not treat, are matched byte by byte with the same equation. Read-write locks and semaphores
// ("modeled similarly") are those of our own encoding.
#include "encoder/paper.h"

namespace stem::encoder {

namespace {

z3::expr start(Formula& f) { return f.z3.int_const("o_start"); }

z3::expr position(Formula& f, uint32_t write) { return write == kInitial ? start(f) : f.position(write); }

// (4) and (5), with the m as integers that are 0 or 1. A broadcast maps to any number of waits.
void add_waits(Formula& f) {
  const auto signals = f.by_place({Kind::Signal});
  const auto broadcasts = f.by_place({Kind::Broadcast});
  std::map<uint32_t, z3::expr> given;  // by signal: sum of its m
  for (const auto& thread : f.threads)
    for (size_t i = 1; i < thread.size(); ++i) {
      const uint32_t wait = thread[i - 1], next = thread[i];
      if (f.event(next).kind != Kind::Wake || f.event(next).flags & (trace::kTimeout | trace::kSpurious)) continue;
      const auto between = [&](uint32_t s) { return f.position(wait) < f.position(s) && f.position(s) < f.position(next); };
      z3::expr taken = f.z3.int_val(0);
      std::vector<z3::expr> options;
      if (auto it = signals.find(place(f.event(wait))); it != signals.end())
        for (uint32_t s : it->second) {
          const z3::expr m = f.z3.int_const(("m_" + std::to_string(s) + "_" + std::to_string(next)).c_str());
          f.require(m >= 0 && m <= 1);
          options.push_back(between(s) && m == 1);
          taken = taken + m;
          auto [sum, fresh] = given.try_emplace(s, m);
          if (!fresh) sum->second = sum->second + m;
        }
      const bool signalled = !options.empty();
      z3::expr enough = signalled ? f.any(options) && taken >= 1 : f.z3.bool_val(false);
      if (auto it = broadcasts.find(place(f.event(wait))); it != broadcasts.end())
        for (uint32_t b : it->second) enough = enough || between(b);
      f.require(enough);
    }
  for (const auto& [signal, sum] : given) f.require(sum <= 1);
}

}  // namespace

void add_paper(Formula& f, Values& values) {
  for (const auto& thread : f.threads)
    if (!thread.empty()) f.require(start(f) < f.position(thread.front()));
  add_mutexes(f);  // (3) is what it says when nothing is relaxed
  add_rwlocks(f);
  add_waits(f);
  add_semaphores(f);
  values.add_semantics();
  values.add_matching();
}

// The parentheses of (7), and (9): o_w < o_r and, for every other write x, o_x < o_w or o_r < o_x.
z3::expr paper_takes(Formula& f, uint32_t read, const Chunk& chunk, uint32_t write) {
  std::vector<uint32_t> others = chunk.writers;
  others.push_back(kInitial);
  z3::expr_vector parts(f.z3);
  parts.push_back(position(f, write) < f.position(read));
  for (uint32_t x : others)
    if (x != write && x != read)
      parts.push_back(position(f, x) < position(f, write) || f.position(read) < position(f, x));
  return z3::mk_and(parts);
}

}  // namespace stem::encoder
