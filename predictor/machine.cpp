#include "predictor/machine.h"

#include "trace/eval.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;
using trace::Op;

Machine::Machine(const Model& model)
    : model_(model),
      at_first_(model.sync_objects),
      woken_at_first_(model.threads, 0),
      executed_at_first_(model.threads, 0),
      memory_(model.atoms.size()),
      read_stamp_(model.trace.events.size()),
      read_value_(model.trace.events.size()),
      memo_stamp_(model.trace.exprs.size()),
      memo_(model.trace.exprs.size()) {
  for (uint32_t i = 0; i < model.sync_objects; ++i) at_first_[i].count = model.semaphores[i].initial;
}

void Machine::start(uint32_t first) {
  if (first < first_) {
    first_ = 0;
    at_first_.assign(model_.sync_objects, {});
    for (uint32_t i = 0; i < model_.sync_objects; ++i) at_first_[i].count = model_.semaphores[i].initial;
    woken_at_first_.assign(model_.threads, 0);
    executed_at_first_.assign(model_.threads, 0);
  }
  for (; first_ < first; ++first_) {
    const Event& e = model_.trace.events[first_];
    follow(at_first_, woken_at_first_, first_);
    // What the recording says of who was woken.
    if (e.kind == Kind::Signal && e.value > 0 && e.value <= model_.threads) woken_at_first_[e.value - 1] = 1;
    if (e.kind == Kind::Broadcast)
      for (uint32_t t = 0; t < model_.threads; ++t) {
        const uint32_t at = executed_at_first_[t];
        if (at == 0 || at >= model_.events_of[t].size()) continue;
        const uint32_t wait = model_.events_of[t][at - 1], wake = model_.events_of[t][at];
        if (model_.wait_of[wake] == wait && model_.sync[wait] == model_.sync[first_]) woken_at_first_[t] = 1;
      }
    ++executed_at_first_[e.thread];
  }
  sync_ = at_first_;
  woken_ = woken_at_first_;
  executed_ = executed_at_first_;
  exited_ = model_.exit_event < first_;
  differs_ = false;
  schedule_.clear();
  old_cells_.clear(), old_reads_.clear(), old_sync_.clear(), old_woken_.clear(), memos_.clear();
  ++stamp_;
  ++memo_epoch_;
}

// The effect of an event on synchronisation, signals apart.
void Machine::follow(std::vector<Sync>& sync, std::vector<uint8_t>& woken, uint32_t event) const {
  const uint32_t section = model_.section_of[event];
  const Event& e = model_.trace.events[event];
  if (section != trace::kNone) {
    const Section& s = model_.sections[section];
    Sync& lock = sync[s.lock];
    if (s.acquire == event) {
      if (s.shared) ++lock.readers;
      else lock.owner = s.thread;
    } else {
      if (s.shared) --lock.readers;
      else lock.owner = trace::kNone;
    }
  }
  switch (e.kind) {
    case Kind::SemPost: ++sync[model_.sync[event]].count; break;
    case Kind::SemWait: --sync[model_.sync[event]].count; break;
    case Kind::SemInit: sync[model_.sync[event]].count += model_.raise[event]; break;
    case Kind::Wait:
    case Kind::Wake: woken[e.thread] = 0; break;
    default: break;
  }
}

bool Machine::possible(uint32_t event) const {
  if (exited_) return false;
  const Event& e = model_.trace.events[event];
  for (const auto& [before, unused] : model_.needs(event))
    if (!done(before)) return false;
  if (e.object < model_.release_of.size()) {
    const uint32_t release = model_.release_of[e.object];
    if (release != kNoEvent && event < release && done(release)) return false;
  }
  if (model_.sync[event] == trace::kNone) return true;
  const Sync& s = sync_[model_.sync[event]];
  switch (e.kind) {
    case Kind::Lock:
    case Kind::AtomicBegin: return s.owner == trace::kNone || s.owner == e.thread;
    case Kind::RdLock: return s.owner == trace::kNone;
    case Kind::WrLock: return s.owner == trace::kNone && s.readers == 0;
    case Kind::LockFail:
    case Kind::WrLockFail: return !model_.was_busy(event) || s.owner != trace::kNone || s.readers > 0;
    case Kind::RdLockFail: return !model_.was_busy(event) || s.owner != trace::kNone;
    case Kind::SemWait: return s.count > 0;
    case Kind::SemFail: return !model_.was_busy(event) || s.count == 0;
    case Kind::Wake: return e.flags & (trace::kTimeout | trace::kSpurious) || woken_[e.thread];
    default: return true;
  }
}

Machine::Cell Machine::read_atom(uint32_t atom) const {
  if (memory_[atom].stamp == stamp_) return memory_[atom];
  const uint32_t writer = first_ == 0 ? kFromStart : model_.last_write_before(atom, first_);
  if (writer == kFromStart) return {stamp_, kFromStart, {model_.atoms[atom].initial, model_.atoms[atom].known}};
  return {stamp_, writer, {model_.slice(writer, atom, model_.written(writer)), true}};
}

uint32_t Machine::writer(uint32_t atom) const { return read_atom(atom).writer; }

Machine::Value Machine::read(uint32_t event) const {
  Value value;
  for (unsigned k = 0; k < model_.atom_count[event]; ++k) {
    const uint32_t atom = model_.first_atom[event] + k;
    const Cell cell = read_atom(atom);
    if (!cell.value.known) return {0, false};
    value.bits |= cell.value.bits << (8 * (model_.atoms[atom].addr - model_.trace.events[event].addr));
  }
  return value;
}

void Machine::remember(uint32_t event, Value value) {
  const Event& e = model_.trace.events[event];
  if (!differs_ && value.known && value.bits == (e.value & trace::width_mask(8u * e.size))) return;
  if (!differs_) differs_ = true;
  read_stamp_[event] = stamp_;
  read_value_[event] = value;
  if (history_) old_reads_.push_back(event);
}

void Machine::forget(uint32_t event) {
  read_stamp_[event] = 0;
  if (history_) old_reads_.pop_back();
}

void Machine::drop_memos(size_t size) {
  for (; memos_.size() > size; memos_.pop_back()) memo_stamp_[memos_.back()] = 0;
}

void Machine::note_sync(uint32_t event) {
  if (const uint32_t section = model_.section_of[event]; section != trace::kNone)
    old_sync_.emplace_back(model_.sections[section].lock, sync_[model_.sections[section].lock]);
  switch (model_.trace.events[event].kind) {
    case Kind::SemPost:
    case Kind::SemWait:
    case Kind::SemInit: old_sync_.emplace_back(model_.sync[event], sync_[model_.sync[event]]); break;
    case Kind::Wait:
    case Kind::Wake: {
      const uint32_t thread = model_.trace.events[event].thread;
      old_woken_.emplace_back(thread, woken_[thread]);
      break;
    }
    default: break;
  }
}

void Machine::undo(const Mark& mark) {
  for (; schedule_.size() > mark.schedule; schedule_.pop_back()) {
    --executed_[model_.trace.events[schedule_.back()].thread];
    if (schedule_.back() == model_.exit_event) exited_ = false;
  }
  for (; old_cells_.size() > mark.cells; old_cells_.pop_back()) memory_[old_cells_.back().first] = old_cells_.back().second;
  for (; old_reads_.size() > mark.reads; old_reads_.pop_back()) read_stamp_[old_reads_.back()] = 0;
  for (; old_sync_.size() > mark.sync; old_sync_.pop_back()) sync_[old_sync_.back().first] = old_sync_.back().second;
  for (; old_woken_.size() > mark.woken; old_woken_.pop_back()) woken_[old_woken_.back().first] = old_woken_.back().second;
  drop_memos(mark.memos);
  differs_ = mark.differs;
}

// Operands before what uses them, without recursion: a sum over a long loop is a very deep expression.
Machine::Value Machine::evaluate(trace::ExprId id) {
  if (!differs_) return {model_.recorded[id], true};
  stack_.assign(1, id);
  while (!stack_.empty()) {
    const trace::ExprId top = stack_.back();
    const trace::Expr& x = model_.trace.exprs[top];
    const size_t size = stack_.size();
    if (memo_stamp_[top] != memo_epoch_)
      for (trace::ExprId operand : {x.a, x.b, x.c})
        if (operand && memo_stamp_[operand] != memo_epoch_) stack_.push_back(operand);
    if (stack_.size() > size) continue;
    stack_.pop_back();
    if (memo_stamp_[top] == memo_epoch_) continue;
    memo_stamp_[top] = memo_epoch_;
    memo_[top] = apply(top);
    memos_.push_back(top);
  }
  return memo_[id];
}

Machine::Value Machine::apply(trace::ExprId id) const {
  const auto& exprs = model_.trace.exprs;
  const trace::Expr& x = exprs[id];
  const Value a = x.a ? memo_[x.a] : Value{}, b = x.b ? memo_[x.b] : Value{}, c = x.c ? memo_[x.c] : Value{};
  switch (x.op) {
    case Op::Const:
    case Op::Input: return {model_.recorded[id], true};
    case Op::Read:
      if (read_stamp_[x.value] != stamp_) return {model_.recorded[id], true};
      return {read_value_[x.value].bits & trace::width_mask(x.width), read_value_[x.value].known};
    case Op::Opaque:
      return {x.value & trace::width_mask(x.width), a.known && b.known && a.bits == model_.recorded[x.a] &&
                                                        (!x.b || b.bits == model_.recorded[x.b])};
    default:
      if (!a.known || !b.known || !c.known) return {0, false};
      return {trace::apply(x.op, x.width, a.bits, b.bits, c.bits, x.a ? exprs[x.a].width : 0, x.b ? exprs[x.b].width : 0, x.value),
              true};
  }
}

bool Machine::holds(uint32_t constraint) {
  const Event& e = model_.trace.events[constraint];
  if (!differs_) return true;
  const Value value = evaluate(e.expr);
  return value.known && value.bits == (e.value & trace::width_mask(model_.trace.exprs[e.expr].width));
}

// Whether the branches and pins that follow a read, up to its thread's next visible event, hold. For a read-modify-write
// only its own pins: what it wrote is of use to others even if its thread then stops.
bool Machine::path_ahead(uint32_t event, uint32_t limit) {
  const Event& e = model_.trace.events[event];
  const auto& thread = model_.events_of[e.thread];
  for (uint32_t p = model_.position[event] + 1; p < thread.size(); ++p) {
    const Event& next = model_.trace.events[thread[p]];
    if (e.kind == Kind::Rmw ? next.kind != Kind::Pin : (trace::is_visible(next.kind) || p >= limit)) break;
    const bool binds = next.kind == Kind::Branch || next.kind == Kind::Pin || next.kind == Kind::Assert;
    if (binds && next.expr && !holds(thread[p])) {
      violated_ = thread[p];
      return false;
    }
  }
  return true;
}

bool Machine::step(uint32_t event, uint32_t limit) {
  const Event& e = model_.trace.events[event];
  violated_ = event;
  if (model_.atom_count[event]) {
    if (model_.is_read(event)) {
      const Value value = read(event);
      if (e.flags & trace::kPinned && !(value.known && value.bits == (e.value & trace::width_mask(8u * e.size)))) return false;
      if (e.flags & trace::kTainted)
        for (unsigned k = 0; k < model_.atom_count[event]; ++k)
          if (read_atom(model_.first_atom[event] + k).writer != model_.sources[model_.sources_at[event] + k]) return false;
      const bool differed = differs_;
      const size_t memos = memos_.size();
      remember(event, value);
      if (differs_ && !path_ahead(event, limit)) {
        forget(event);
        drop_memos(memos);
        differs_ = differed;
        return false;
      }
    }
    if (model_.is_write(event)) {
      Value value{model_.written(event), true};
      if (e.expr && differs_) value = evaluate(e.expr);
      for (unsigned k = 0; k < model_.atom_count[event]; ++k) {
        const uint32_t atom = model_.first_atom[event] + k;
        if (history_) old_cells_.emplace_back(atom, memory_[atom]);
        memory_[atom] = {stamp_, event, {model_.slice(event, atom, value.bits), value.known}};
      }
    }
  } else if (e.expr && (e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert)) {
    if (!holds(event)) return false;
  } else if (e.kind == Kind::Signal || e.kind == Kind::Broadcast) {
    deliver(event);
  } else if (e.kind == Kind::Exit) {
    exited_ = true;
  }
  if (history_) note_sync(event);
  follow(sync_, woken_, event);
  ++executed_[e.thread];
  schedule_.push_back(event);
  return true;
}

void Machine::waiters(uint32_t signal, std::vector<uint32_t>& wakes) const {
  wakes.clear();
  for (uint32_t t = 0; t < model_.threads; ++t) {
    const uint32_t at = executed_[t];
    if (at == 0 || at >= model_.events_of[t].size() || woken_[t]) continue;
    const uint32_t wait = model_.events_of[t][at - 1], wake = model_.events_of[t][at];
    if (model_.wait_of[wake] == wait && model_.sync[wait] == model_.sync[signal] &&
        !(model_.trace.events[wake].flags & (trace::kTimeout | trace::kSpurious)))
      wakes.push_back(wake);
  }
}

void Machine::deliver(uint32_t signal) {
  const Event& e = model_.trace.events[signal];
  uint32_t chosen = kNoEvent;
  for (uint32_t t = 0; t < model_.threads; ++t) {
    const uint32_t at = executed_[t];
    if (at == 0 || at >= model_.events_of[t].size() || woken_[t]) continue;
    const uint32_t wait = model_.events_of[t][at - 1], wake = model_.events_of[t][at];
    if (model_.wait_of[wake] != wait || model_.sync[wait] != model_.sync[signal]) continue;
    if (e.kind == Kind::Broadcast) {
      awaken(t);
      continue;
    }
    bool wished = false;
    for (const auto& [s, w] : wishes_) wished |= s == signal && w == wake;
    if (wished) {
      chosen = wake;
      break;
    }
    const bool useful = !(model_.trace.events[wake].flags & (trace::kTimeout | trace::kSpurious));
    if (useful && (chosen == kNoEvent || wake < chosen)) chosen = wake;
  }
  if (chosen != kNoEvent) awaken(model_.trace.events[chosen].thread);
}

}  // namespace stem::predictor
