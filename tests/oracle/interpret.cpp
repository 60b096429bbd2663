// Runs a program of the oracle under a random schedule, and writes the trace that a recorder would have written; or runs it
// along a recording of its C, to see whether the recorder wrote that trace.
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "oracle/program.h"
#include "trace/builder.h"
#include "trace/eval.h"
#include "util/error.h"

namespace stem::oracle {

using trace::Kind;
using trace::Op;
using trace::Var;
using Step = Statement::Kind;

namespace {

struct Local {
  uint32_t bits = 0;
  trace::ExprId expr = 0;
};

struct Frame {
  const Block* block;
  size_t at = 0;
  const Statement* closes = nullptr;  // whose bracket ends with this block
};

struct Running {
  bool created = false, started = false, ended = false;
  std::vector<Frame> frames;
  int stage = 0;              // of a statement that takes several events
  uint32_t woken_by = 0;      // 1 + thread
  uint64_t generation = 0;    // of the barrier it waits at
  std::vector<uint64_t> unpinned;  // reads that a recorder without semantics has yet to pin
  Local locals[4];
};

struct Mutex {
  int owner = -1;
  int depth = 0;
};
struct RwLock {
  std::map<uint32_t, int> readers;
  int writer = -1;
};
struct Barrier {
  uint64_t generation = 0;
  uint32_t arrived = 0;
  std::map<uint64_t, uint32_t> serial;  // by generation: who came last
};
struct Once {
  int runner = -1;
  bool over = false;
};

constexpr uint32_t kObjects = 2;  // of each kind

class Interpreter {
 public:
  Interpreter(const Program& program, uint64_t seed)
      : program_(program), random_(seed), threads_(program.threads.size()), blunt_(seed % 8 == 5) {
    make_objects();
    threads_[0].created = threads_[0].started = true;  // the builder wrote main's start
    for (size_t t = 0; t < threads_.size(); ++t) threads_[t].frames.push_back({&program.threads[t]});
  }

  trace::Trace run() {
    take_inputs();
    trace::Outcome outcome = trace::Outcome::Exited;
    uint32_t current = 0;
    while (!exited_) {
      std::vector<uint32_t> enabled;
      for (uint32_t t = 0; t < threads_.size(); ++t)
        if (threads_[t].created && !threads_[t].ended && step(t, true)) enabled.push_back(t);
      if (enabled.empty()) break;
      bool stay = false;
      for (uint32_t t : enabled) stay |= t == current;
      if (!stay || random_.one_in(3)) current = enabled[random_.below(static_cast<uint32_t>(enabled.size()))];
      step(current, false);
    }
    for (const Running& thread : threads_)
      if (thread.created && !thread.ended && !exited_) outcome = trace::Outcome::Deadlock;
    return b_.take(outcome);
  }

  // Along a recording: each of its events that the program has is the next one here.
  Followed follow(const trace::Trace& recorded) {
    Followed followed;
    followed.wrong = walk(recorded, followed.events);
    followed.trace = b_.take(recorded.outcome);
    return followed;
  }

 private:
  // --- following --------------------------------------------------------------------------------------------------------
  std::string walk(const trace::Trace& recorded, std::map<uint32_t, uint32_t>& events) {
    following_ = true;
    b_.object(global_).zeroed = true;
    for (const trace::Object& object : recorded.objects) locked_ |= object.name == "atomics";
    for (uint32_t i = 0; i < program_.inputs.size(); ++i) {
      input_.push_back(i < recorded.inputs.size() ? recorded.inputs[i].bytes.at(0) : 0);
      b_.input(fmt::format("in{}", i), input_[i], 1);
    }
    uint32_t index = trace::kNone;  // of e
    for (const trace::Event& e : recorded.events) {
      ++index;
      if (!program_has(recorded, e)) continue;
      const auto fails = [&](const std::string& why) {
        return fmt::format("{} at line {} of {}: {}", trace::kind_name(e.kind), recorded.sites.at(e.site).line, recorded.threads.at(e.thread).path, why);
      };
      if (e.thread >= threads_.size() || !threads_[e.thread].created) return fails("the program has not created that thread");
      wakes_ = static_cast<uint32_t>(e.value);
      memory_told_ = e.value;
      uint64_t at = b_.size();
      while (true) {
        if (threads_[e.thread].ended) return fails("the thread has ended");
        if (!step(e.thread, true)) return fails("the thread is blocked");
        step(e.thread, false);
        while (at < b_.size() && !compared(b_.at(at).kind)) ++at;
        if (at < b_.size()) break;
      }
      if (const std::string why = differs(recorded, e, b_.at(at)); !why.empty()) return fails(why);
      events[index] = static_cast<uint32_t>(at);
    }
    return "";
  }

  static bool is_access(Kind kind) { return kind == Kind::Read || kind == Kind::Write || kind == Kind::Rmw; }
  static bool compared(Kind kind) {
    return is_access(kind) || (kind >= Kind::Lock && kind <= Kind::AtomicEnd && kind != Kind::SemInit && kind != Kind::BarrierInit) ||
           kind == Kind::Create || kind == Kind::Join || kind == Kind::End;
  }
  static bool writes_unseen(const Block& block, uint32_t line) {
    for (const Statement& s : block)
      if ((s.kind == Step::ExternalWrite && s.site == line) || writes_unseen(s.body, line) || writes_unseen(s.otherwise, line)) return true;
    return false;
  }
  bool program_has(const trace::Trace& recorded, const trace::Event& e) {
    if (e.kind == Kind::End) return true;
    if (!compared(e.kind) || recorded.sites.at(e.site).line >= 1000 || recorded.sites.at(e.site).line == 0) return false;
    if (!is_access(e.kind)) return true;
    for (const Block& block : program_.threads)
      if (writes_unseen(block, recorded.sites.at(e.site).line)) return false;  // a recorder of binaries sees it
    const trace::Object& object = recorded.objects.at(e.object);
    return object.name == "memory" || object.name == "foreign" || (object.kind == trace::ObjectKind::Heap && object.size == 16);
  }
  std::string differs(const trace::Trace& recorded, const trace::Event& e, const trace::Event& mine) {
    const uint32_t line = b_.line(mine.site);
    if (e.kind != mine.kind) return fmt::format("the program does {} at line {}", trace::kind_name(mine.kind), line);
    if (e.kind == Kind::End) return "";
    if (recorded.sites.at(e.site).line != line) return fmt::format("the program does so at line {}", line);
    if (e.kind == Kind::Create || e.kind == Kind::Join || e.kind == Kind::Signal)
      return e.value == mine.value ? "" : fmt::format("of {}, not {}", mine.value, e.value);
    if (!is_access(e.kind)) return "";
    const uint64_t offset = e.addr - recorded.objects.at(e.object).base, own = mine.addr - b_.object(mine.object).base;
    if (offset != own || e.size != mine.size) return fmt::format("bytes {} to {}, not {} to {}", own, own + mine.size - 1, offset, offset + e.size - 1);
    if (e.value != mine.value || e.value2 != mine.value2)
      return fmt::format("the values are {} and {}, not {} and {}", mine.value, mine.value2, e.value, e.value2);
    return "";
  }

  // --- objects ----------------------------------------------------------------------------------------------------------
  void make_objects() {
    const uint32_t memory = b_.object(trace::ObjectKind::Global, "memory", 16);
    const uint32_t heap = b_.object(trace::ObjectKind::Heap, "heap", 16);
    const uint32_t foreign = b_.object(trace::ObjectKind::Global, "foreign", 16);
    heap_ = heap, global_ = memory;
    b_.object(memory).zeroed = !random_.one_in(3);
    const uint32_t region[] = {memory, heap, foreign};
    for (const Variable& v : program_.variables)
      variables_.push_back(b_.part(region[v.region], v.offset, static_cast<uint8_t>(v.size),
                                   fmt::format("[{}:{}]", v.offset, v.size)));
    const auto objects = [&](const char* name, std::vector<Var>& into) {
      for (uint32_t i = 0; i < kObjects; ++i) into.push_back(b_.sync(fmt::format("{}{}", name, i)));
    };
    objects("mutex", mutexes_), objects("rwlock", rwlocks_), objects("cond", conds_);
    section_ = b_.sync("atomics");
    objects("sem", sems_), objects("barrier", barriers_), objects("once", onces_);
    for (uint32_t i = 0; i < kObjects; ++i) {
      count_.push_back(program_.semaphores[i]);
      if (uses(Step::SemPost, i) || uses(Step::SemWait, i) || uses(Step::SemTryWait, i))
        b_.event(0, Kind::SemInit, 0, program_.semaphores[i], sems_[i]);
    }
  }
  static bool contains(const Block& block, Step kind, uint32_t object) {
    for (const Statement& s : block)
      if ((s.kind == kind && s.object == object) || contains(s.body, kind, object) || contains(s.otherwise, kind, object))
        return true;
    return false;
  }
  bool uses(Step kind, uint32_t object) const {
    for (const Block& block : program_.threads)
      if (contains(block, kind, object)) return true;
    return false;
  }

  void take_inputs() {
    for (uint32_t i = 0; i < program_.inputs.size(); ++i) {
      input_.push_back(random_.below(program_.inputs[i]));
      b_.input(fmt::format("in{}", i), input_[i], 1);
      b_.event(0, Kind::Input, 0, i);
      const uint64_t pin = b_.event(0, Kind::Pin, 0, 1);
      b_.at(pin).expr = b_.op(Op::Ult, 1, b_.input_leaf(i, 8), b_.constant(8, program_.inputs[i]));
      if (blunt_) b_.pin(0, b_.input_leaf(i, 8), input_[i]);
    }
  }

  // --- values -------------------------------------------------------------------------------------------------------------
  Local atom(const Running& t, const Atom& a) {
    switch (a.kind) {
      case Atom::Kind::Const: return {a.value, 0};
      case Atom::Kind::Local: return t.locals[a.value];
      case Atom::Kind::Input: return {input_.at(a.value), b_.op(Op::ZExt, 32, b_.input_leaf(a.value, 8))};
    }
    return {};
  }
  trace::ExprId node(const Local& l) { return l.expr ? l.expr : b_.constant(32, l.bits); }

  Local term(const Running& t, const Term& term) {
    const Local x = atom(t, term.a), y = atom(t, term.b);
    if (term.op == Op::Const) return x;
    const bool symbolic = x.expr || y.expr;
    if (blunt_ && symbolic) return opaque(term, x, y);
    if (term.op == Op::Ite) {
      Local result = x.bits ? y : x;
      if (symbolic) {
        const auto condition = b_.op(Op::Ne, 1, node(x), b_.constant(32, 0));
        result.expr = b_.op(Op::Ite, 32, condition, node(y), node(x));
      }
      return result;
    }
    const bool compares = term.op >= Op::Eq && term.op <= Op::Sle;
    const unsigned width = compares ? 1 : 32;
    Local result{static_cast<uint32_t>(trace::apply(term.op, width, x.bits, y.bits, 0, 32, 32, 0)), 0};
    if (symbolic) result.expr = b_.op(term.op, width, node(x), node(y));
    return result;
  }

  // Without semantics: some function of its operands.
  Local opaque(const Term& term, const Local& x, const Local& y) {
    const bool compares = term.op >= Op::Eq && term.op <= Op::Sle;
    Local result = x.bits ? y : x;
    if (term.op != Op::Ite)
      result.bits = static_cast<uint32_t>(trace::apply(term.op, compares ? 1 : 32, x.bits, y.bits, 0, 32, 32, 0));
    result.expr = b_.expr(Op::Opaque, compares ? 1 : 32, x.expr ? x.expr : y.expr, x.expr ? y.expr : 0, 0, result.bits);
    return result;
  }

  // A recorder without semantics pins all earlier reads of the thread before it branches or synchronises.
  void pin_reads(uint32_t t) {
    for (uint64_t read : threads_[t].unpinned) {
      const trace::ExprId leaf = b_.leaf(read);
      b_.pin(t, leaf, b_.at(read).value);
    }
    threads_[t].unpinned.clear();
  }

  // A local as a memory operand of `size` bytes, and back.
  trace::ExprId to_memory(const Local& l, unsigned size) {
    if (!l.expr || size == 4) return l.expr;
    return size == 8 ? b_.op(Op::Concat, 64, l.expr, l.expr) : b_.op(Op::Trunc, 8 * size, l.expr);
  }
  static uint64_t memory_bits(const Local& l, unsigned size) {
    return size == 8 ? static_cast<uint64_t>(l.bits) << 32 | l.bits : l.bits & trace::width_mask(8 * size);
  }
  Local from_memory(uint64_t event, const Var& v) {
    const auto leaf = b_.leaf(event);
    uint64_t bits = b_.at(event).value;
    if (v.size == 4) return {static_cast<uint32_t>(bits), leaf};
    if (v.size == 1) bits = static_cast<uint32_t>(static_cast<int8_t>(bits));
    if (v.size < 4) return {static_cast<uint32_t>(bits), b_.op(v.size == 1 ? Op::SExt : Op::ZExt, 32, leaf)};
    return {static_cast<uint32_t>(bits >> 8), b_.expr(Op::Extract, 32, leaf, 0, 0, 8)};
  }

  uint64_t load(const Var& v) {
    uint64_t bits = 0;
    for (unsigned k = 0; k < v.size; ++k) bits |= static_cast<uint64_t>(memory_[v.addr + k]) << 8 * k;
    return bits;
  }
  void store(const Var& v, uint64_t bits) {
    for (unsigned k = 0; k < v.size; ++k) memory_[v.addr + k] = static_cast<uint8_t>(bits >> 8 * k);
  }

  // --- one step: asks whether thread t can take one, or takes it -------------------------------------------------------------
  bool step(uint32_t t, bool ask) {
    Running& thread = threads_[t];
    if (!thread.started) {
      if (!ask) b_.event(t, Kind::Start), thread.started = true;
      return true;
    }
    Frame& frame = thread.frames.back();
    if (frame.at < frame.block->size()) return statement(t, (*frame.block)[frame.at], ask);
    if (ask) return true;
    if (frame.closes) {
      close(t, *frame.closes);
      thread.frames.pop_back();
      return true;
    }
    if (thread.frames.size() > 1) {
      thread.frames.pop_back();
      return true;
    }
    thread.ended = true;
    if (t == 0 && !following_ && random_.one_in(3)) exited_ = true;  // main returns: the run is over, whatever the others do
    else b_.event(t, Kind::End);
    return true;
  }

  void next(uint32_t t) { ++threads_[t].frames.back().at, threads_[t].stage = 0; }
  void enter(uint32_t t, const Block& block, const Statement* closes) {
    next(t);
    threads_[t].frames.push_back({&block, 0, closes});
  }
  uint64_t emit(uint32_t t, const Statement& s, Kind kind, uint64_t value = 0, Var at = {}, uint16_t flags = 0) {
    const bool memory = kind == Kind::Read || kind == Kind::Write || kind == Kind::Rmw || kind == Kind::External;
    if (blunt_ && !memory) pin_reads(t);
    return b_.event(t, kind, site(s), value, at, flags);
  }
  trace::SiteId site(const Statement& s) { return b_.site("oracle.c", s.site); }

  void close(uint32_t t, const Statement& s) {
    if (s.kind == Step::Locked || s.kind == Step::TryLocked) {
      Mutex& m = mutex_[s.object];
      if (--m.depth == 0) m.owner = -1;
      emit(t, s, Kind::Unlock, static_cast<uint64_t>(m.depth), mutexes_[s.object]);
    } else if (s.kind == Step::ReadLocked) {
      --rwlock_[s.object].readers[t];
      emit(t, s, Kind::RwUnlock, 0, rwlocks_[s.object]);
    } else if (s.kind == Step::WriteLocked || s.kind == Step::TryWriteLocked) {
      rwlock_[s.object].writer = -1;
      emit(t, s, Kind::RwUnlock, 0, rwlocks_[s.object]);
    } else if (s.kind == Step::Once) {
      once_[s.object].over = true;
      emit(t, s, Kind::OnceEnd, 0, onces_[s.object]);
    } else {
      if (--atomic_.depth == 0) atomic_.owner = -1;
      if (locked_) emit(t, s, Kind::Unlock, static_cast<uint64_t>(atomic_.depth), section_);
      else emit(t, s, atomic_.depth ? Kind::Yield : Kind::AtomicEnd);  // the outermost section counts
    }
  }

  bool statement(uint32_t t, const Statement& s, bool ask) {
    switch (s.kind) {
      case Step::Load: case Step::Store: case Step::FetchAdd: case Step::Exchange: case Step::Cas:
      case Step::ExternalWrite:
        if (!ask) access(t, s), next(t);
        return true;
      case Step::Pin: case Step::Opaque: case Step::If:
        if (!ask) compute(t, s);
        return true;
      case Step::Locked: return lock(t, s, ask, mutex_[s.object], false);
      case Step::TryLocked: return lock(t, s, ask, mutex_[s.object], true);
      case Step::ReadLocked: case Step::WriteLocked: case Step::TryWriteLocked: return rwlock(t, s, ask);
      case Step::Wait: case Step::TimedWait: return wait(t, s, ask);
      case Step::Signal: case Step::Broadcast:
        if (!ask) wake_up(t, s), next(t);
        return true;
      case Step::SemPost: case Step::SemWait: case Step::SemTryWait: return semaphore(t, s, ask);
      case Step::Barrier: return barrier(t, s, ask);
      case Step::Once: return once(t, s, ask);
      case Step::Atomic:
        if (atomic_.depth > 0 && atomic_.owner != static_cast<int>(t)) return false;
        if (!ask) {
          if (locked_) emit(t, s, Kind::Lock, static_cast<uint64_t>(atomic_.depth) + 1, section_);
          else emit(t, s, atomic_.depth ? Kind::Yield : Kind::AtomicBegin);
          atomic_.owner = static_cast<int>(t), ++atomic_.depth;
          enter(t, s.body, &s);
        }
        return true;
      case Step::Yield: case Step::Alloc: case Step::Free: case Step::Create:
        if (!ask) plain(t, s), next(t);
        return true;
      case Step::Join:
        if (!threads_[s.object].ended) return false;
        if (!ask) emit(t, s, Kind::Join, s.object), next(t);
        return true;
    }
    return false;
  }

  void plain(uint32_t t, const Statement& s) {
    if (s.kind == Step::Yield) emit(t, s, Kind::Yield);
    Var heap = b_.part(heap_, 0, 0, "");
    if (s.kind == Step::Alloc) {
      b_.object(heap_).born = static_cast<uint32_t>(emit(t, s, Kind::Alloc, 16, heap, s.site % 2 ? trace::kZeroed : 0));
      b_.object(heap_).zeroed = s.site % 2;
    }
    if (s.kind == Step::Free) emit(t, s, Kind::Free, 0, heap);
    if (s.kind == Step::Create) {
      const trace::ThreadId child = b_.create("worker", 0, site(s));
      STEM_CHECK(child == s.object);
      threads_[child].created = true;
    }
  }

  void access(uint32_t t, const Statement& s) {
    Running& thread = threads_[t];
    const Var& v = variables_[s.variable];
    const bool foreign = program_.variables[s.variable].region == 2;
    const bool told = following_ && s.kind != Step::Store && (foreign || (program_.variables[s.variable].region == 1 && !b_.object(heap_).zeroed));
    if (told) store(v, memory_told_);  // nobody knows what it holds
    const uint64_t old = load(v);
    const uint16_t flags = static_cast<uint16_t>((s.pinned && !following_ ? trace::kPinned : 0) | (foreign && tainted_ ? trace::kTainted : 0));
    const Local operand = term(thread, s.term);
    if (s.kind == Step::Load) {
      const uint64_t event = emit(t, s, Kind::Read, old, v, flags);
      take(thread, s, event, v);
    } else if (s.kind == Step::Store) {
      const uint64_t event = emit(t, s, Kind::Write, memory_bits(operand, v.size), v, flags & ~trace::kPinned);
      b_.at(event).expr = to_memory(operand, v.size);
      store(v, b_.at(event).value);
    } else if (s.kind == Step::ExternalWrite) {
      tainted_ = true;
      emit(t, s, Kind::External, old + 1, v);
      store(v, old + 1);
    } else if (s.kind == Step::Cas) {
      compare_and_swap(t, s, v, old, flags);
    } else {
      const bool adds = s.kind == Step::FetchAdd;
      const uint64_t now = (memory_bits(operand, v.size) + (adds ? old : 0)) & trace::width_mask(8 * v.size);
      const uint64_t event = emit(t, s, Kind::Rmw, old, v, flags | trace::kAtomic);
      b_.at(event).value2 = now;
      trace::ExprId expr = to_memory(operand, v.size);
      if (adds) {
        if (!expr) expr = b_.constant(8 * v.size, memory_bits(operand, v.size));
        expr = b_.op(Op::Add, 8 * v.size, b_.leaf(event), expr);
      }
      b_.at(event).expr = expr;
      store(v, now);
      take(thread, s, event, v);
    }
  }
  void take(Running& thread, const Statement& s, uint64_t event, const Var& v) {
    thread.locals[s.local] = from_memory(event, v);
    if (s.pinned && !following_) thread.locals[s.local].expr = 0;
    if (blunt_ && !s.pinned) thread.unpinned.push_back(event);
  }
  void compare_and_swap(uint32_t t, const Statement& s, const Var& v, uint64_t old, uint16_t flags) {
    const Local expected = atom(threads_[t], s.term.a), desired = atom(threads_[t], s.term.b);
    const bool equal = old == memory_bits(expected, v.size);
    const uint64_t event = emit(t, s, equal ? Kind::Rmw : Kind::Read, old, v, flags | trace::kAtomic);
    if (equal) {
      b_.at(event).value2 = memory_bits(desired, v.size);
      b_.at(event).expr = to_memory(desired, v.size);
      store(v, b_.at(event).value2);
    }
    trace::ExprId wanted = to_memory(expected, v.size);
    if (!wanted) wanted = b_.constant(8 * v.size, memory_bits(expected, v.size));
    const trace::ExprId leaf = b_.leaf(event);
    const uint64_t pin = emit(t, s, Kind::Pin, equal);
    b_.at(pin).expr = b_.op(Op::Eq, 1, leaf, wanted);
    take(threads_[t], s, event, v);
  }

  void compute(uint32_t t, const Statement& s) {
    Running& thread = threads_[t];
    if (s.kind == Step::Opaque) {
      Local& l = thread.locals[s.local];
      const Local other = thread.locals[1 - s.local % 2];
      const uint32_t result = l.bits * 2654435761u + other.bits;
      if (l.expr || other.expr)
        l.expr = b_.expr(Op::Opaque, 32, l.expr ? l.expr : other.expr, l.expr ? other.expr : 0, 0, result);
      l.bits = result;
      next(t);
      return;
    }
    if (s.kind == Step::Pin && following_) return next(t);  // C has no such thing
    const Local value = term(thread, s.term);
    if (blunt_) pin_reads(t);
    if (value.expr && !blunt_) {
      const uint64_t event = emit(t, s, s.kind == Step::If ? Kind::Branch : Kind::Pin, value.bits);
      b_.at(event).expr = value.expr;
    }
    if (s.kind == Step::Pin) return next(t);
    next(t);
    threads_[t].frames.push_back({value.bits ? &s.body : &s.otherwise});
  }

  bool lock(uint32_t t, const Statement& s, bool ask, Mutex& m, bool tries) {
    const bool taken = m.depth > 0 && m.owner != static_cast<int>(t);
    if (taken && !tries) return false;
    if (ask) return true;
    if (taken) {
      emit(t, s, Kind::LockFail, EBUSY, mutexes_[s.object], trace::kTry);
      next(t);
      threads_[t].frames.push_back({&s.otherwise});
      return true;
    }
    m.owner = static_cast<int>(t), ++m.depth;
    emit(t, s, Kind::Lock, static_cast<uint64_t>(m.depth), mutexes_[s.object], tries ? trace::kTry : 0);
    enter(t, s.body, &s);
    return true;
  }

  bool rwlock(uint32_t t, const Statement& s, bool ask) {
    RwLock& l = rwlock_[s.object];
    bool read = false;
    for (const auto& [reader, count] : l.readers) read |= count > 0;
    const bool blocked = s.kind == Step::ReadLocked ? l.writer >= 0 : l.writer >= 0 || read;
    if (blocked && s.kind != Step::TryWriteLocked) return false;
    if (ask) return true;
    const Var& at = rwlocks_[s.object];
    if (blocked) {
      emit(t, s, Kind::WrLockFail, EBUSY, at, trace::kTry);
      next(t);
      return true;
    }
    if (s.kind == Step::ReadLocked) ++l.readers[t], emit(t, s, Kind::RdLock, 0, at);
    else l.writer = static_cast<int>(t), emit(t, s, Kind::WrLock, 0, at);
    enter(t, s.body, &s);
    return true;
  }

  bool wait(uint32_t t, const Statement& s, bool ask) {
    Running& thread = threads_[t];
    Mutex& m = mutex_[s.object];
    const Var& cond = conds_[s.object];
    if (thread.stage == 0) {
      if (ask) return true;
      if (m.owner != static_cast<int>(t) || m.depth != 1) return next(t), true;  // does not hold it (once): not a wait
      emit(t, s, Kind::Wait, mutexes_[s.object].addr, cond);
      m = {};
      thread.stage = 1, thread.woken_by = 0;
      return true;
    }
    if (thread.stage == 1) {
      const bool alone = s.kind == Step::TimedWait || s.pinned;  // may wake without a signal
      if (!thread.woken_by && !alone) return false;
      if (ask) return true;
      const uint16_t flags = thread.woken_by ? 0 : s.kind == Step::TimedWait ? trace::kTimeout : trace::kSpurious;
      emit(t, s, Kind::Wake, thread.woken_by, cond, flags);
      thread.stage = 2;
      return true;
    }
    if (m.depth > 0) return false;
    if (ask) return true;
    m = {static_cast<int>(t), 1};
    emit(t, s, Kind::Lock, 1, mutexes_[s.object]);
    next(t);
    return true;
  }

  void wake_up(uint32_t t, const Statement& s) {
    std::vector<uint32_t> waiting;
    for (uint32_t other = 0; other < threads_.size(); ++other) {
      const Running& thread = threads_[other];
      if (thread.frames.empty() || thread.stage != 1 || thread.woken_by) continue;
      const Frame& frame = thread.frames.back();
      const Statement& at = (*frame.block)[frame.at];
      if ((at.kind == Step::Wait || at.kind == Step::TimedWait) && at.object == s.object) waiting.push_back(other);
    }
    if (s.kind == Step::Broadcast) {
      for (uint32_t other : waiting) threads_[other].woken_by = 1 + t;
      emit(t, s, Kind::Broadcast, waiting.size(), conds_[s.object]);
      return;
    }
    uint32_t woken = 0;
    if (!waiting.empty()) {
      uint32_t other = waiting[random_.below(static_cast<uint32_t>(waiting.size()))];
      if (following_ && std::find(waiting.begin(), waiting.end(), wakes_ - 1) != waiting.end()) other = wakes_ - 1;
      threads_[other].woken_by = 1 + t;
      woken = 1 + other;
    }
    emit(t, s, Kind::Signal, woken, conds_[s.object]);
  }

  bool semaphore(uint32_t t, const Statement& s, bool ask) {
    uint32_t& count = count_[s.object];
    if (s.kind == Step::SemWait && count == 0) return false;
    if (ask) return true;
    const Var& at = sems_[s.object];
    if (s.kind == Step::SemPost) ++count, emit(t, s, Kind::SemPost, 0, at);
    else if (count == 0) emit(t, s, Kind::SemFail, EAGAIN, at, trace::kTry);
    else --count, emit(t, s, Kind::SemWait, 0, at, s.kind == Step::SemTryWait ? trace::kTry : 0);
    next(t);
    return true;
  }

  bool barrier(uint32_t t, const Statement& s, bool ask) {
    Running& thread = threads_[t];
    Barrier& b = barrier_[s.object];
    if (thread.stage == 0) {
      if (ask) return true;
      emit(t, s, Kind::BarrierArrive, b.generation, barriers_[s.object]);
      thread.generation = b.generation, thread.stage = 1;
      if (++b.arrived == program_.barriers[s.object]) b.serial[b.generation] = t, ++b.generation, b.arrived = 0;
      return true;
    }
    if (b.generation <= thread.generation) return false;
    if (ask) return true;
    const bool serial = b.serial[thread.generation] == t;
    emit(t, s, Kind::BarrierLeave, thread.generation, barriers_[s.object], serial ? trace::kSerial : 0);
    next(t);
    return true;
  }

  bool once(uint32_t t, const Statement& s, bool ask) {
    Once& o = once_[s.object];
    if (o.runner >= 0 && !o.over) return false;
    if (ask) return true;
    if (o.over) {
      emit(t, s, Kind::OncePass, 0, onces_[s.object]);
      next(t);
    } else {
      o.runner = static_cast<int>(t);
      emit(t, s, Kind::OnceBegin, 0, onces_[s.object]);
      enter(t, s.body, &s);
    }
    return true;
  }

  const Program& program_;
  Random random_;
  trace::Builder b_;
  std::vector<Running> threads_;
  std::vector<Var> variables_, mutexes_, rwlocks_, conds_, sems_, barriers_, onces_;
  std::map<uint64_t, uint8_t> memory_;
  std::vector<uint32_t> input_, count_;
  Mutex mutex_[kObjects], atomic_;
  RwLock rwlock_[kObjects];
  Barrier barrier_[kObjects];
  Once once_[kObjects];
  uint32_t heap_ = 0, global_ = 0;
  bool tainted_ = false, exited_ = false;
  bool following_ = false;
  bool locked_ = false;        // following: atomic sections are a mutex to a compiler that does not know them
  Var section_;
  uint32_t wakes_ = 0;         // following: whom the signal wakes, and what a read of unknown memory finds
  uint64_t memory_told_ = 0;
  const bool blunt_;  // record as a recorder without semantics does
};

}  // namespace

trace::Trace interpret(const Program& program, uint64_t seed) { return Interpreter(program, seed).run(); }
Followed follow(const Program& program, const trace::Trace& recorded) { return Interpreter(program, 1).follow(recorded); }

}  // namespace stem::oracle
