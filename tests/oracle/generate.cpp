// Random programs. Each draws a theme, so that a small program still has several threads at the same few objects.
#include <map>

#include "oracle/program.h"

namespace stem::oracle {

using trace::Op;
using Kind = Statement::Kind;

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), budget_(5 + random_.below(9)) {}

  Program make() {
    make_variables();
    for (uint32_t n = random_.below(5) / 3; n > 0; --n) program_.inputs.push_back(2 + random_.below(3));
    if (random_.one_in(3)) program_.inputs.push_back(2 + random_.below(2));
    const uint32_t workers = 1 + random_.below(3);
    program_.threads.resize(1 + workers);
    for (uint32_t i = 0; i < 2; ++i) program_.semaphores.push_back(random_.below(2));
    program_.barriers = {2, workers + 1};
    for (uint32_t i = 0; i < 3; ++i) theme_.push_back(kThemes[random_.below(std::size(kThemes))]);

    std::vector<uint32_t> share(1 + workers, 1);
    for (uint32_t left = budget_; left > 0; --left) ++share[random_.below(1 + workers)];
    for (uint32_t t = 1; t <= workers; ++t) program_.threads[t] = block(share[t], 0);
    if (random_.one_in(4)) make_rendezvous(workers, share[0]);
    make_main(workers, share[0]);
    number(program_.threads);
    return std::move(program_);
  }

 private:
  static constexpr Kind kThemes[] = {
      Kind::Locked, Kind::Locked, Kind::Locked, Kind::TryLocked, Kind::ReadLocked, Kind::WriteLocked, Kind::TryWriteLocked,
      Kind::Wait, Kind::Wait, Kind::TimedWait, Kind::Signal, Kind::Signal, Kind::Broadcast, Kind::SemPost, Kind::SemWait,
      Kind::SemTryWait, Kind::Barrier, Kind::Once, Kind::Atomic, Kind::FetchAdd, Kind::Exchange, Kind::Cas, Kind::Cas,
      Kind::Opaque, Kind::Pin, Kind::Yield, Kind::If, Kind::If};

  void make_variables() {
    const uint32_t count = 1 + random_.below(3);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t size = 1u << random_.below(4);
      const uint32_t offset = random_.one_in(3) ? random_.below(4) : random_.below(8) / size * size;  // some unaligned
      program_.variables.push_back({0, offset, size});
    }
    if (random_.one_in(8)) program_.variables.push_back({1, 0, 1u << random_.below(3)});
    if (random_.one_in(12)) program_.variables.push_back({2, 0, 1u << random_.below(3)});
  }

  Atom atom() {
    const uint32_t dice = random_.below(8);
    if (dice < 5) return {Atom::Kind::Local, random_.below(2)};
    if (dice < 6 && !program_.inputs.empty())
      return {Atom::Kind::Input, random_.below(static_cast<uint32_t>(program_.inputs.size()))};
    return {Atom::Kind::Const, random_.below(4)};
  }
  Term value() {
    static constexpr Op kOps[] = {Op::Const, Op::Const, Op::Add, Op::Add, Op::Sub, Op::Mul, Op::Xor,  Op::And,
                                  Op::Or,    Op::Shl,   Op::LShr, Op::AShr, Op::UDiv, Op::URem, Op::SDiv, Op::SRem, Op::Ite};
    Term term{kOps[random_.below(std::size(kOps))], atom(), atom()};
    if (random_.one_in(3)) term = {Op::Const, {Atom::Kind::Const, 1 + random_.below(3)}, {}};
    return term;
  }
  Term condition() {
    static constexpr Op kOps[] = {Op::Eq, Op::Ne, Op::Ult, Op::Ule, Op::Slt, Op::Sle};
    return {kOps[random_.below(std::size(kOps))], {Atom::Kind::Local, random_.below(2)}, atom()};
  }
  uint32_t variable() {
    // A heap variable is used now and then, a global mostly.
    return random_.below(static_cast<uint32_t>(program_.variables.size()));
  }

  Statement access() {
    Statement s;
    s.kind = random_.below(5) < 3 ? Kind::Load : Kind::Store;
    s.variable = variable();
    s.local = random_.below(2);
    s.pinned = random_.one_in(16);
    s.term = value();
    return s;
  }

  Statement special(uint32_t size, uint32_t depth) {
    Statement s;
    s.kind = theme_[random_.below(static_cast<uint32_t>(theme_.size()))];
    s.variable = variable();
    s.local = random_.below(2);
    s.object = random_.one_in(4) ? 1 : 0;
    s.term = s.kind == Kind::If || s.kind == Kind::Pin ? condition() : value();
    s.pinned = random_.one_in(16);
    switch (s.kind) {
      case Kind::Locked: case Kind::TryLocked: case Kind::ReadLocked: case Kind::WriteLocked: case Kind::TryWriteLocked:
      case Kind::Once: case Kind::Atomic:
        s.body = block(1 + random_.below(size), depth + 1);
        break;
      case Kind::If:
        s.body = block(1 + random_.below(2), depth + 1);
        if (random_.one_in(2)) s.otherwise = block(1, depth + 1);
        break;
      case Kind::Load: case Kind::Store: case Kind::FetchAdd: case Kind::Exchange: case Kind::Cas: case Kind::Pin:
      case Kind::Opaque: case Kind::Wait: case Kind::TimedWait: case Kind::Signal: case Kind::Broadcast: case Kind::SemPost:
      case Kind::SemWait: case Kind::SemTryWait: case Kind::Barrier: case Kind::Yield: case Kind::ExternalWrite:
      case Kind::Alloc: case Kind::Free: case Kind::Create: case Kind::Join: break;
    }
    if (s.kind == Kind::Wait || s.kind == Kind::TimedWait) return wait_with_lock(s);
    return s;
  }

  // A wait holds its mutex, and usually asks a variable first.
  Statement wait_with_lock(Statement wait) {
    Statement lock, load = access(), test;
    lock.kind = Kind::Locked, lock.object = wait.object;
    load.kind = Kind::Load;
    if (random_.one_in(3)) {
      lock.body = {wait};
    } else {
      test.kind = Kind::If;
      test.term = {Op::Eq, {Atom::Kind::Local, load.local}, {Atom::Kind::Const, 0}};
      test.body = {wait};
      lock.body = {load, test};
    }
    return lock;
  }

  Block block(uint32_t size, uint32_t depth) {
    Block block;
    for (uint32_t i = 0; i < size; ++i)
      block.push_back(depth < 2 && random_.one_in(3) ? special(size - i, depth) : access());
    return block;
  }

  // Several threads at one condition variable or semaphore, and main (mostly) the one that wakes them: what random
  // statements alone seldom bring about. Each waiter tells of it, and the waker looks.
  void make_rendezvous(uint32_t workers, uint32_t& share) {
    const bool semaphore = random_.one_in(2);
    for (uint32_t t = 1; t <= workers; ++t) {
      Statement wait, tell = access();
      wait.kind = semaphore ? Kind::SemWait : Kind::Wait;
      if (!semaphore) {
        Statement lock;
        lock.kind = Kind::Locked;
        lock.body = {wait};
        wait = lock;
      }
      if (random_.one_in(2)) tell.kind = Kind::Store, tell.term = {Op::Const, {Atom::Kind::Const, t}, {}};
      program_.threads[t] = {wait, tell};
      if (random_.one_in(2)) program_.threads[t].push_back(access());
    }
    Statement wake, look, test;
    wake.kind = semaphore ? Kind::SemPost : random_.one_in(5) ? Kind::Broadcast : Kind::Signal;
    look.kind = Kind::Load, look.variable = variable();
    test.kind = Kind::If, test.term = {Op::Ne, {Atom::Kind::Local, 0}, {Atom::Kind::Const, random_.below(3)}};
    test.body = {access()};
    for (uint32_t t = 0; t < workers; ++t) {
      rendezvous_.push_back(wake);
      if (random_.one_in(2)) rendezvous_.push_back(look);
      if (random_.one_in(2)) rendezvous_.push_back(test);
    }
    program_.semaphores[0] = 0;
    share = random_.below(2);
  }

  void make_main(uint32_t workers, uint32_t share) {
    Block& main = program_.threads[0];
    // Reading each variable first makes the memory at the start known; sometimes it stays unknown, or is written.
    for (uint32_t v = 0; v < program_.variables.size(); ++v) {
      Statement s;
      s.variable = v;
      if (program_.variables[v].region == 1) s.kind = Kind::Alloc, main.push_back(s);
      s.kind = random_.one_in(4) ? Kind::Store : Kind::Load;
      s.local = 3;
      s.term = {Op::Const, {Atom::Kind::Const, random_.below(3)}, {}};
      if (!random_.one_in(5)) main.push_back(s);
    }
    Block rest = block(share, 0);
    Statement s;
    for (uint32_t t = 1; t <= workers; ++t) {
      s.kind = Kind::Create, s.object = t;
      main.push_back(s);
      if (random_.one_in(4) && !rest.empty()) main.push_back(rest.back()), rest.pop_back();
    }
    main.insert(main.end(), rendezvous_.begin(), rendezvous_.end());
    for (const Variable& v : program_.variables)
      if (v.region == 2) s.kind = Kind::ExternalWrite, s.variable = static_cast<uint32_t>(&v - program_.variables.data()), main.push_back(s);
    for (uint32_t t = 1; t <= workers; ++t) {
      if (random_.one_in(2) && !rest.empty()) main.push_back(rest.back()), rest.pop_back();
      s.kind = Kind::Join, s.object = t;
      if (!random_.one_in(4)) main.push_back(s);
    }
    for (Statement& left : rest) main.push_back(left);
    for (uint32_t v = 0; v < program_.variables.size(); ++v)
      if (program_.variables[v].region == 1 && random_.one_in(2)) s.kind = Kind::Free, s.variable = v, main.push_back(s);
  }

  void number(std::vector<Block>& blocks) {
    for (Block& block : blocks)
      for (Statement& s : block) {
        s.site = ++sites_;
        std::vector<Block> inner{std::move(s.body), std::move(s.otherwise)};
        number(inner);
        s.body = std::move(inner[0]), s.otherwise = std::move(inner[1]);
      }
  }

  Random random_;
  uint32_t budget_;
  uint32_t sites_ = 0;
  Program program_;
  std::vector<Kind> theme_;
  Block rendezvous_;
};

}  // namespace

Program generate(uint64_t seed) { return Generator(seed).make(); }

std::vector<InputVector> all_inputs(const Program& program) {
  std::vector<InputVector> all{{}};
  for (uint32_t values : program.inputs) {
    std::vector<InputVector> longer;
    for (const InputVector& prefix : all)
      for (uint32_t v = 0; v < values; ++v) {
        longer.push_back(prefix);
        longer.back().push_back({static_cast<uint8_t>(v)});
      }
    all = std::move(longer);
  }
  return all;
}

}  // namespace stem::oracle
