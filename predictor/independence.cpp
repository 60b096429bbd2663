#include "predictor/independence.h"

#include <algorithm>

namespace stem::predictor {

using trace::Event;
using trace::Kind;
using trace::Op;

namespace {

void append(std::vector<Chain>& chains, trace::ThreadId thread, uint32_t position) {
  auto it = std::find_if(chains.begin(), chains.end(), [&](const Chain& c) { return c.thread == thread; });
  if (it == chains.end()) it = chains.insert(chains.end(), {thread, {}});
  if (it->positions.empty() || it->positions.back() != position) it->positions.push_back(position);
}

}  // namespace

Independence::Independence(const Model& model, const MustOrder& order) : model_(model), order_(order) {
  find_chains();
  find_held();
  find_uses();
  find_values();
  find_inputs();
}

void Independence::find_chains() {
  reads_.resize(model_.atoms.size());
  takes_.resize(model_.sync_objects);
  fails_.resize(model_.sync_objects);
  release_at_.assign(model_.trace.objects.size(), trace::kNone);
  for (uint32_t i = 0; i < model_.releases.size(); ++i) release_at_[model_.trace.events[model_.releases[i].event].object] = i;
  for (uint32_t i = 0; i < model_.trace.events.size(); ++i) {
    const Event& e = model_.trace.events[i];
    if (model_.atom_count[i] && model_.is_read(i))
      for (unsigned k = 0; k < model_.atom_count[i]; ++k) append(reads_[model_.first_atom[i] + k], e.thread, model_.position[i]);
    const uint32_t section = model_.section_of[i];
    if (section != trace::kNone && model_.sections[section].acquire == i) append(takes_[model_.sync[i]], e.thread, model_.position[i]);
    switch (e.kind) {
      case Kind::SemWait:
      case Kind::Wait:
      case Kind::Signal:
      case Kind::Broadcast: append(takes_[model_.sync[i]], e.thread, model_.position[i]); break;
      case Kind::LockFail:
      case Kind::RdLockFail:
      case Kind::WrLockFail:
      case Kind::SemFail:
        if (model_.was_busy(i)) append(fails_[model_.sync[i]], e.thread, model_.position[i]);
        break;
      default: break;
    }
  }
}

void Independence::find_held() {
  std::map<std::vector<uint32_t>, uint32_t> ids{{{}, 0}};
  sets_.emplace_back();
  held_.resize(model_.trace.events.size());
  std::vector<uint32_t> now(model_.threads, 0);  // by thread: its set
  for (uint32_t i = 0; i < model_.trace.events.size(); ++i) {
    uint32_t& set = now[model_.trace.events[i].thread];
    held_[i] = set;
    const uint32_t id = model_.section_of[i];
    if (id == trace::kNone || model_.sections[id].shared) continue;
    std::vector<uint32_t> locks = sets_[set];
    if (model_.sections[id].acquire == i) locks.insert(std::lower_bound(locks.begin(), locks.end(), model_.sections[id].lock), model_.sections[id].lock);
    else std::erase(locks, model_.sections[id].lock);
    auto [it, fresh] = ids.try_emplace(locks, static_cast<uint32_t>(sets_.size()));
    if (fresh) sets_.push_back(locks);
    set = it->second;
  }
}

// An expression comes after its operands, so one pass downwards hands on what is known of its users.
void Independence::find_uses() {
  const auto& exprs = model_.trace.exprs;
  constexpr uint32_t kNobody = trace::kNone, kSeveral = trace::kNone - 1;
  std::vector<uint32_t> last(exprs.size(), 0), user(exprs.size(), kNobody);
  for (const auto& thread : model_.events_of)
    for (uint32_t position = 0; position < thread.size(); ++position) {
      const Event& e = model_.trace.events[thread[position]];
      if (!e.expr) continue;
      if (user[e.expr] != kNobody && user[e.expr] != e.thread) user[e.expr] = kSeveral;
      else user[e.expr] = e.thread;
      last[e.expr] = std::max(last[e.expr], position);
    }
  last_use_.assign(model_.trace.events.size(), 0);
  for (size_t id = exprs.size(); id-- > 1;) {
    const trace::Expr& x = exprs[id];
    if (user[id] == kNobody) continue;
    if (x.op == Op::Read) {
      const auto read = static_cast<uint32_t>(x.value);
      const bool own = user[id] == model_.trace.events[read].thread;
      last_use_[read] = own ? std::max(last_use_[read], last[id]) : UINT32_MAX;
    }
    if (trace::op_arity(x.op) == 0) continue;
    for (trace::ExprId child : {x.a, x.b, x.c}) {
      if (!child) continue;
      user[child] = user[child] == kNobody || user[child] == user[id] ? user[id] : kSeveral;
      last[child] = std::max(last[child], last[id]);
    }
  }
}

// Backwards from everything that binds: the reads below it, the memory they read, what is written there.
void Independence::find_values() {
  const auto& exprs = model_.trace.exprs;
  matters_.assign(model_.atoms.size(), 0);
  std::vector<uint8_t> seen(exprs.size(), 0);
  std::vector<trace::ExprId> todo;
  std::vector<uint32_t> atoms;
  const auto want = [&](uint32_t event) {
    for (unsigned k = 0; k < model_.atom_count[event]; ++k)
      if (uint8_t& flag = matters_[model_.first_atom[event] + k]; !flag) flag = 1, atoms.push_back(model_.first_atom[event] + k);
  };
  for (uint32_t i = 0; i < model_.trace.events.size(); ++i) {
    if (!model_.is_constraint(i)) continue;
    if (model_.is_read(i)) want(i);
    else todo.push_back(model_.trace.events[i].expr);
  }
  while (!todo.empty() || !atoms.empty()) {
    if (todo.empty()) {
      const uint32_t atom = atoms.back();
      atoms.pop_back();
      for (uint32_t w : model_.writes_of(atom)) todo.push_back(model_.trace.events[w].expr);
      continue;
    }
    const trace::ExprId id = todo.back();
    todo.pop_back();
    if (!id || seen[id]) continue;
    seen[id] = 1;
    const trace::Expr& x = exprs[id];
    if (x.op == Op::Read) want(static_cast<uint32_t>(x.value));
    if (trace::op_arity(x.op) > 0) todo.insert(todo.end(), {x.a, x.b, x.c});
  }
}

void Independence::find_inputs() {
  const auto& exprs = model_.trace.exprs;
  input_atom_.assign(model_.atoms.size(), 0);
  input_expr_.assign(exprs.size(), 0);
  if (model_.trace.inputs.empty()) return;
  constexpr int kPasses = 8;
  for (int pass = 0;; ++pass) {
    bool changed = false;
    for (size_t id = 1; id < exprs.size(); ++id) {
      const trace::Expr& x = exprs[id];
      bool input = x.op == Op::Input;
      if (x.op == Op::Read)
        for (unsigned k = 0; k < model_.atom_count[x.value]; ++k) input |= input_atom_[model_.first_atom[x.value] + k];
      if (trace::op_arity(x.op) > 0)
        for (trace::ExprId child : {x.a, x.b, x.c}) input |= input_expr_[child];
      input_expr_[id] = input;
    }
    for (uint32_t i = 0; i < model_.trace.events.size(); ++i) {
      if (!model_.atom_count[i] || !model_.is_write(i) || !input_expr_[model_.trace.events[i].expr]) continue;
      for (unsigned k = 0; k < model_.atom_count[i]; ++k)
        if (uint8_t& flag = input_atom_[model_.first_atom[i] + k]; !flag) flag = 1, changed = true;
    }
    if (!changed) return;
    if (pass == kPasses) {  // too long a chain: anything may depend on an input
      std::fill(input_atom_.begin(), input_atom_.end(), 1);
      std::fill(input_expr_.begin() + 1, input_expr_.end(), 1);
      return;
    }
  }
}

bool Independence::input_decides(uint32_t constraint) const {
  if (!model_.is_read(constraint)) return input_expr_[model_.trace.events[constraint].expr];
  for (unsigned k = 0; k < model_.atom_count[constraint]; ++k)
    if (input_atom_[model_.first_atom[constraint] + k]) return true;
  return false;
}

// --- conflicts -------------------------------------------------------------------------------------------------------

// Where the other thread next takes a lock that the event's thread holds: it comes no further for now.
uint32_t Independence::next_acquisition(uint32_t event, uint32_t thread, uint32_t from) const {
  uint32_t first = UINT32_MAX;
  for (uint32_t lock : sets_[held_[event]])
    for (const Model::LockUse& use : model_.lock_uses[lock]) {
      if (use.thread != thread) continue;
      const auto it = std::lower_bound(use.sections.begin(), use.sections.end(), from, [&](uint32_t section, uint32_t position) {
        return model_.position[model_.sections[section].acquire] < position;
      });
      if (it != use.sections.end()) first = std::min(first, model_.position[model_.sections[*it].acquire]);
    }
  return first;
}

bool Independence::conflict(const Chains& chains, uint32_t event, const Progress& progress) const {
  const uint32_t own = model_.trace.events[event].thread;
  for (const Chain& chain : chains) {
    if (chain.thread == own) continue;
    const uint32_t from = progress.executed[chain.thread];
    const auto it = std::lower_bound(chain.positions.begin(), chain.positions.end(), from);
    if (it == chain.positions.end() || *it >= progress.end[chain.thread]) continue;
    if (order_.before(event, model_.events_of[chain.thread][*it])) continue;
    if (next_acquisition(event, chain.thread, from) < *it) continue;
    return true;
  }
  return false;
}

bool Independence::alone(uint32_t event, const Progress& progress) const {
  const Event& e = model_.trace.events[event];
  const uint32_t section = model_.section_of[event];
  const auto on_atoms = [&](const auto& chains) {
    for (unsigned k = 0; k < model_.atom_count[event]; ++k)
      if (conflict(chains(model_.first_atom[event] + k), event, progress)) return true;
    return false;
  };
  const auto writes = [&](uint32_t atom) -> const Chains& { return model_.write_chains(atom); };
  const auto reads = [&](uint32_t atom) -> const Chains& { return reads_[atom]; };
  switch (e.kind) {
    case Kind::Read: return !on_atoms(writes);
    case Kind::Write: case Kind::Rmw: case Kind::External: return !on_atoms(writes) && !on_atoms(reads);
    case Kind::Lock: case Kind::RdLock: case Kind::WrLock: case Kind::AtomicBegin:
      return section == trace::kNone || !conflict(takes_[model_.sync[event]], event, progress);
    // To release only helps others, but for attempts that failed.
    case Kind::Unlock: case Kind::RwUnlock: case Kind::AtomicEnd:
      return section == trace::kNone || !conflict(fails_[model_.sections[section].lock], event, progress);
    case Kind::Wait:
      return !conflict(takes_[model_.sync[event]], event, progress) &&
             (section == trace::kNone || !conflict(fails_[model_.sections[section].lock], event, progress));
    case Kind::Signal: case Kind::Broadcast: case Kind::SemWait: return !conflict(takes_[model_.sync[event]], event, progress);
    case Kind::SemPost: return !conflict(fails_[model_.sync[event]], event, progress);
    case Kind::Free: {
      const uint32_t release = e.object < release_at_.size() ? release_at_[e.object] : trace::kNone;
      return release == trace::kNone || model_.releases[release].event != event ||
             !conflict(model_.releases[release].uses, event, progress);
    }
    // An attempt that fails changes nothing; what a Wake needs was given to it; the rest is ordered for certain.
    case Kind::LockFail: case Kind::RdLockFail: case Kind::WrLockFail: case Kind::SemFail: case Kind::Wake: case Kind::Start:
    case Kind::End: case Kind::Create: case Kind::Join: case Kind::Detach: case Kind::Yield: case Kind::Alloc:
    case Kind::Branch: case Kind::Pin: case Kind::Assert: case Kind::Input: case Kind::Nondet: case Kind::SemInit:
    case Kind::BarrierInit: case Kind::BarrierArrive: case Kind::BarrierLeave: case Kind::OnceBegin: case Kind::OnceEnd:
    case Kind::OncePass: case Kind::SignalIn: case Kind::SignalOut: case Kind::Fork: case Kind::Fault: return true;
    case Kind::Exit: return false;
  }
  return false;
}

}  // namespace stem::predictor
