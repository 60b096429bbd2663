// Threads, memory and expressions; synchronisation is in checker_sync.cpp.
#include "trace/checker.h"

#include <algorithm>

#include "trace/eval.h"
#include "trace/text.h"
#include "util/error.h"

namespace stem::trace {

std::string to_string(const Problem& p) { return fmt::format("event {}, {}: {}", p.event, p.where, p.what); }

void Checker::report(std::string what) {
  ++count_;
  if (problems_.size() >= keep_) return;
  std::string where = event_ ? describe(names_.thread(event_->thread), names_.site(event_->site)) : "the trace";
  problems_.push_back({index_, std::move(where), std::move(what)});
}

std::string Checker::name(const Event& e) const { return subject(e, names_); }

Checker::ThreadState& Checker::state(ThreadId id) {
  if (id >= threads_.size()) threads_.resize(id + 1);
  return threads_[id];
}

// --- expressions -----------------------------------------------------------------------------------------------------------------

void Checker::expr(ExprId id, const Expr& e) {
  if (values_.size() == 0) values_.push({});
  event_ = nullptr;
  index_ = next_event_;
  if (id != values_.size()) problem("expression e{} comes where e{} should", id, values_.size());
  // The operands under the numbers 1 to 3, as the typing rules only look at their widths.
  Expr renamed = e;
  Expr before[4];
  ExprId* operands[] = {&renamed.a, &renamed.b, &renamed.c};
  bool far = false;
  for (ExprId i = 0; i < 3; ++i) {
    if (*operands[i] == 0) continue;
    if (*operands[i] >= id) {
      problem("expression e{} refers to e{}, which comes later", id, *operands[i]);
      values_.push({0, e.width, ValueStore::Lost});
      return;
    }
    ValueStore::Value v = values_.get(*operands[i]);
    far |= v.width == 0;
    before[i + 1].width = v.width;
    *operands[i] = i + 1;
  }
  const char* why = far ? nullptr : malformed(renamed, 4, before);
  if (why) {
    problem("expression e{} ({}) has {}", id, op_name(e.op), why);
    values_.push({0, e.width, ValueStore::Lost});
    return;
  }
  if (e.op == Op::Read) {
    if (e.value < next_event_) problem("expression e{} is the leaf of an event that has passed without it", id);
    pending_leaves_[e.value].push_back(id);
    values_.push({0, e.width, e.value < next_event_ ? ValueStore::Lost : ValueStore::Pending});
    return;
  }
  if (e.op == Op::Input && !input_value(names_.inputs(), e.value, e.width)) {
    problem("expression e{} takes bytes that its input does not have", id);
    values_.push({0, e.width, ValueStore::Lost});
    return;
  }
  ValueStore::Value v = evaluate(e);
  values_.push(v);
  if (v.state == ValueStore::Pending) pending_.emplace_back(id, e);
}

ValueStore::Value Checker::evaluate(const Expr& e) {
  if (e.op == Op::Input) return {input_value(names_.inputs(), e.value, e.width).value_or(0), e.width, ValueStore::Known};
  return values_.apply(e);
}

void Checker::settle_pending() {
  std::vector<std::pair<ExprId, Expr>> still;
  for (auto& [id, e] : pending_) {
    ValueStore::Value v = evaluate(e);
    values_.set(id, v);
    if (v.state == ValueStore::Pending) still.emplace_back(id, e);
  }
  pending_ = std::move(still);
}

void Checker::leaf(const Event& e) {
  auto waiting = pending_leaves_.find(index_);
  bool own = false;
  if (waiting != pending_leaves_.end()) {
    for (ExprId id : waiting->second) {
      own |= id == e.leaf;
      ValueStore::Value v = values_.get(id);
      if (e.kind != Kind::Read && e.kind != Kind::Rmw) {
        problem("expression e{} is the leaf of an event that is not a read", id);
        values_.set(id, {0, v.width, ValueStore::Lost});
      } else if (v.width != 8u * e.size) {
        problem("expression e{} has {} bits, but its read has {} bytes", id, v.width, e.size);
        values_.set(id, {0, v.width, ValueStore::Lost});
      } else {
        values_.set(id, {e.value, v.width, ValueStore::Known});
      }
    }
    pending_leaves_.erase(waiting);
    if (!pending_.empty()) settle_pending();
  }
  if (e.leaf && !own) problem("names e{} as its leaf, which is not its leaf", e.leaf);
}

void Checker::expect(const Event& e, ExprId expr, uint64_t value, const char* what) {
  if (expr == 0) return;
  ValueStore::Value v = values_.get(expr);
  if (v.state != ValueStore::Known) {
    ++unchecked_;
    return;
  }
  if (v.value != value) problem("{} {}, but its expression e{} evaluates to {}", what, value, expr, v.value);
  if (e.size && v.width != 8u * e.size) problem("writes {} bytes, but its expression e{} has {} bits", e.size, expr, v.width);
}

void Checker::values(const Event& e) {
  if (e.kind == Kind::Write) return expect(e, e.expr, e.value, "writes");
  if (e.kind == Kind::Rmw) return expect(e, e.expr, e.value2, "writes");
  if (e.kind == Kind::Branch) return expect(e, e.expr, e.value, "decides");
  if (e.kind == Kind::Pin) return expect(e, e.expr, e.value, "is pinned to");
  if (e.kind == Kind::Assert && e.value > 1) return problem("an assertion holds (1) or fails (0), not {}", e.value);
  if (e.kind == Kind::Assert) return expect(e, e.expr, e.value, "asserts");
  if (e.expr) problem("{} has no value to express", kind_name(e.kind));
}

// --- threads -------------------------------------------------------------------------------------------------------------------------

void Checker::thread_rules(const Event& e) {
  ThreadState& t = state(e.thread);
  if (e.kind == Kind::Start) {
    if (t.started) problem("starts a second time");
    if (e.thread != 0 && !t.created) problem("starts before it was created");
    t.started = true;
    return;
  }
  if (!t.started) {
    problem("{} comes before the thread's start", kind_name(e.kind));
    t.started = true;  // say it once
  }
  // The end of the run is told by the thread that was the last, after its own end.
  if (t.ended && e.kind != Kind::Exit) problem("{} comes after the thread's end", kind_name(e.kind));
  if (t.handlers == 0 && e.kind != Kind::SignalIn && e.kind != Kind::Exit && e.kind != Kind::Fault && e.kind != Kind::Nondet) {
    if (t.waiting && e.kind != Kind::Wake) problem("{} comes between a wait and its wake-up", kind_name(e.kind));
    if (t.reacquire && !(e.kind == Kind::Lock && e.addr == t.mutex)) {
      problem("{} comes before the mutex was re-acquired after a wait", kind_name(e.kind));
      t.reacquire = false;
    }
  }
  if (e.kind == Kind::End) t.ended = true;
  if (e.kind == Kind::SignalIn) ++t.handlers;
  if (e.kind == Kind::SignalOut && t.handlers == 0) problem("a signal handler returns that never started");
  else if (e.kind == Kind::SignalOut) --t.handlers;
  if (e.kind == Kind::Create || e.kind == Kind::Join || e.kind == Kind::Detach) child_rules(e);
}

void Checker::child_rules(const Event& e) {
  if (e.value >= names_.thread_count()) return problem("{} names a thread that does not exist", kind_name(e.kind));
  auto child = static_cast<ThreadId>(e.value);
  ThreadState& c = state(child);
  if (e.kind == Kind::Create) {
    if (c.created || child == 0) problem("creates {} a second time", thread_name(child));
    else if (c.started) problem("creates {}, which runs already", thread_name(child));
    c.created = true;
  } else if (e.kind == Kind::Join) {
    if (!c.ended) problem("joins {} before its end", thread_name(child));
    if (c.joined) problem("joins {} a second time", thread_name(child));
    c.joined = true;
  }
}

// --- memory ------------------------------------------------------------------------------------------------------------------------------

void Checker::read_explained(const Event& e, uint64_t value) {
  Shadow::Seen seen = shadow_.get(e.addr, e.size);
  uint64_t base = 0;
  bool have_base = false;
  for (unsigned i = 0; i < e.size; ++i) {
    auto got = static_cast<uint8_t>(value >> (8 * i));
    if (seen.known & (1u << i)) {
      auto last = static_cast<uint8_t>(seen.value >> (8 * i));
      if (got == last) continue;
      problem("reads {} from {}, but {} was there last", value, name(e), seen.value);
      return;
    }
    if (shadow_.evicted()) {
      ++unchecked_;
      return;
    }
    if (e.object == kNone) continue;
    if (!have_base) base = names_.object(e.object).base, have_base = true;
    auto first = names_.initial(e.object, e.addr + i - base);
    if (first && *first != got) {
      problem("reads {} from {}, which began as something else and was never written", value, name(e));
      return;
    }
  }
}

void Checker::memory(const Event& e) {
  if (e.kind == Kind::Alloc) {
    shadow_.forget(e.addr, e.value);
    return forget_range(e.addr, e.value);
  }
  if (e.kind == Kind::Free) return;
  if (e.size < 1 || e.size > 8) return problem("accesses {} bytes; 1 to 8 are possible", e.size);
  uint64_t mask = width_mask(8u * e.size);
  if ((e.value & ~mask) || (e.kind == Kind::Rmw && (e.value2 & ~mask))) return problem("has a value of more than its {} bytes", e.size);
  if (e.kind == Kind::Read || e.kind == Kind::Rmw) read_explained(e, e.value);
  shadow_.set(e.addr, e.size, e.kind == Kind::Rmw ? e.value2 : e.value);
}

// A new object: synchronisation objects that lay there are gone.
void Checker::forget_range(uint64_t base, uint64_t size) {
  if (base + size < base) return;
  auto forget = [&](auto& table) { table.erase(table.lower_bound(base), table.lower_bound(base + size)); };
  forget(mutexes_);
  forget(rwlocks_);
  forget(semaphores_);
  forget(barriers_);
  forget(onces_);
}

void Checker::event(uint64_t index, const Event& e) {
  index_ = index;
  event_ = &e;
  next_event_ = index + 1;
  if (exited_) problem("{} comes after the end of the run", kind_name(e.kind));
  if (e.thread >= names_.thread_count()) return problem("belongs to a thread that does not exist");
  thread_rules(e);
  switch (e.kind) {
    case Kind::Read: case Kind::Write: case Kind::Rmw: case Kind::External: case Kind::Alloc: case Kind::Free: memory(e); break;
    case Kind::Lock: case Kind::Unlock: case Kind::LockFail: mutex(e); break;
    case Kind::RdLock: case Kind::WrLock: case Kind::RwUnlock: case Kind::RdLockFail: case Kind::WrLockFail: rwlock(e); break;
    case Kind::Wait: case Kind::Wake: case Kind::Signal: case Kind::Broadcast: condition(e); break;
    case Kind::SemInit: case Kind::SemPost: case Kind::SemWait: case Kind::SemFail: semaphore(e); break;
    case Kind::BarrierInit: case Kind::BarrierArrive: case Kind::BarrierLeave: barrier(e); break;
    case Kind::OnceBegin: case Kind::OnceEnd: case Kind::OncePass: once(e); break;
    case Kind::AtomicBegin: case Kind::AtomicEnd: atomic_section(e); break;
    case Kind::Input:
      if (e.value >= names_.inputs().size()) problem("names an input that does not exist");
      break;
    case Kind::Exit:
      exited_ = true;
      exit_value_ = e.value;
      exit_outcome_ = e.value2;
      break;
    case Kind::Start: case Kind::End: case Kind::Create: case Kind::Join: case Kind::Detach: case Kind::Yield: case Kind::Branch:
    case Kind::Pin: case Kind::Assert: case Kind::Nondet: case Kind::SignalIn: case Kind::SignalOut: case Kind::Fork: case Kind::Fault:
      break;
  }
  leaf(e);
  values(e);
}

void Checker::finish(Outcome outcome, int exit_code, bool complete) {
  event_ = nullptr;
  index_ = next_event_;
  if (!complete) return;
  if (!pending_leaves_.empty()) problem("{} leaves wait for reads that never came", pending_leaves_.size());
  if (exited_ && (exit_outcome_ != static_cast<uint64_t>(outcome) || static_cast<int>(exit_value_) != exit_code)) {
    problem("the last event does not agree with the outcome, {} {}", outcome_name(outcome), exit_code);
  }
  if (!exited_ && outcome != Outcome::Truncated && outcome != Outcome::Signalled) problem("the run {} without an exit event", outcome_name(outcome));
}

CheckResult check(const Trace& trace, size_t keep) {
  TraceNames names(trace);
  Checker checker(names, keep);
  ExprId next = 1;
  auto exprs = [&](ExprId end) {
    for (; next < end && next < trace.exprs.size(); ++next) checker.expr(next, trace.exprs[next]);
  };
  for (size_t i = 0; i < trace.events.size(); ++i) {
    exprs(std::max(trace.events[i].expr, trace.events[i].leaf) + 1);
    checker.event(i, trace.events[i]);
  }
  exprs(static_cast<ExprId>(trace.exprs.size()));
  checker.finish(trace.outcome, trace.exit_code, trace.outcome != Outcome::Truncated);
  return {trace.events.size(), trace.exprs.size() - 1, checker.count(), checker.unchecked(), checker.problems()};
}

CheckResult check(Reader& reader, size_t keep) {
  ReaderNames names(reader);
  Checker checker(names, keep);
  for (Reader::Item item; (item = reader.next()) != Reader::Item::End;) {
    if (item == Reader::Item::Expr) checker.expr(reader.expr_id(), reader.expr());
    else checker.event(reader.event_index(), reader.event());
  }
  checker.finish(reader.outcome(), reader.exit_code(), reader.recovery().complete);
  return {reader.recovery().events, reader.expr_count(), checker.count(), checker.unchecked(), checker.problems()};
}

void require(const CheckResult& result, const std::string& path) {
  if (result.ok()) return;
  std::string reasons;
  for (const Problem& problem : result.problems) reasons += "\n  " + to_string(problem);
  user_error("{}: no analysis has a meaning for this trace:{}{}", path, reasons,
             result.problem_count > result.problems.size() ? fmt::format("\n  and {} more", result.problem_count - result.problems.size()) : "");
}

}  // namespace stem::trace
