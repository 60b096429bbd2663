// Reads whose value matters: which writes they can still take, what follows when only one is left, and whether the branches
// and pins hold once all that they depend on is known.
#include <algorithm>

#include "predictor/engine.h"
#include "trace/eval.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;
using trace::Op;

const Engine::Support& Engine::support(trace::ExprId id) {
  auto [it, fresh] = supports_.try_emplace(id);
  Support& s = it->second;
  if (!fresh) return s;
  ++stamp_;
  stack_.assign(1, id);
  while (!stack_.empty()) {
    const trace::ExprId top = stack_.back();
    stack_.pop_back();
    if (!top || memo_stamp_[top] == stamp_) continue;
    memo_stamp_[top] = stamp_;
    const trace::Expr& x = model_.trace.exprs[top];
    if (x.op == Op::Input) s.inputs = true;
    if (x.op == Op::Read && window_->holds(static_cast<uint32_t>(x.value)) && model_.atom_count[x.value])
      s.reads.push_back(static_cast<uint32_t>(x.value));
    if (trace::op_arity(x.op) > 0) stack_.insert(stack_.end(), {x.a, x.b, x.c});
  }
  std::sort(s.reads.begin(), s.reads.end());
  s.reads.erase(std::unique(s.reads.begin(), s.reads.end()), s.reads.end());
  return s;
}

uint32_t Engine::recorded_source(uint32_t read, unsigned k) const {
  const uint32_t source = model_.sources[model_.sources_at[read] + k];
  return source == kFromStart || source < window_->first ? kFromStart : source;
}

void Engine::make_live(uint32_t read) {
  uint8_t& flag = live_[read - window_->first];
  if (flag || read == target_) return;
  set_flag(flag, 1);
  live_reads_.push_back(read);
  ++changes_;
  for (unsigned k = 0; k < model_.atom_count[read]; ++k) {
    const uint32_t w = bound_[slot(read, k)];
    if (w == kUnbound || w == kFromStart) continue;
    if (const trace::ExprId id = model_.trace.events[w].expr)
      for (uint32_t below : std::vector<uint32_t>(support(id).reads)) make_live(below);
  }
}

bool Engine::bind(uint32_t read, unsigned k, uint32_t writer, Reasons why) {
  const uint32_t s = slot(read, k);
  if (bound_[s] != kUnbound) return bound_[s] == writer || fail(why | bound_why_[s]);
  slots_trail_.push_back(s);
  bound_[s] = writer;
  bound_why_[s] = why;
  const Flow flow{writer, read, model_.first_atom[read] + k, why};
  flows_.push_back(flow);
  ++changes_;
  if (writer != kFromStart) {
    if (!require_event(writer, why) || !add_edge(writer, read, why)) return false;
    if (live_[read - window_->first])
      if (const trace::ExprId id = model_.trace.events[writer].expr)
        for (uint32_t below : std::vector<uint32_t>(support(id).reads)) make_live(below);
  }
  return saturate_flow(flow);
}

// The writes that (read, k) can still take, as far as order and certain values go; stops after `enough`. Returns what the
// exclusion of all others rests on.
Reasons Engine::candidates(uint32_t read, unsigned k, size_t enough, std::vector<uint32_t>& writers) {
  writers.clear();
  const uint32_t atom = model_.first_atom[read] + k;
  const uint32_t reader = window_->thread(read);
  struct Last {
    uint32_t event;
    Reasons why;
  };
  const auto& chains = model_.write_chains(atom);
  std::vector<Last> last;
  Reasons why = 0;
  bool from_start = true;
  for (const Chain& chain : chains) {
    const uint32_t t = chain.thread;
    const int64_t base = window_->base[t];
    const Order::Cell before = t == reader ? Order::Cell{window_->at(read) - 1, 0} : order_->pred(read, t);
    auto it = std::upper_bound(chain.positions.begin(), chain.positions.end(), base + before.at,
                               [](int64_t l, uint32_t p) { return l < static_cast<int64_t>(p); });
    const bool some = before.at >= 0 && it != chain.positions.begin() && *(it - 1) >= base;
    last.push_back({some ? model_.events_of[t][*(it - 1)] : kNoEvent, before.why});
    if (some) from_start = false, why |= before.why;
  }
  auto consider = [&](uint32_t w) {
    if (value_allowed(read, k, w, why)) writers.push_back(w);
    return writers.size() < enough;
  };
  for (size_t c = 0; c < chains.size(); ++c) {
    const uint32_t t = chains[c].thread;
    const int64_t base = window_->base[t], end = base + window_->length[t];
    if (last[c].event != kNoEvent) {
      bool hidden = false;
      for (size_t d = 0; d < chains.size() && !hidden; ++d)
        if (d != c && last[d].event != kNoEvent && order_->before(last[c].event, last[d].event)) {
          hidden = true;
          why |= order_->why_before(last[c].event, last[d].event) | last[d].why;
        }
      if (!hidden && !consider(last[c].event)) return why;
    }
    if (t == reader) continue;
    const Order::Cell before = order_->pred(read, t), after = order_->succ(read, t);
    const auto& positions = chains[c].positions;
    auto it = std::upper_bound(positions.begin(), positions.end(), base + before.at,
                               [](int64_t l, uint32_t p) { return l < static_cast<int64_t>(p); });
    for (; it != positions.end() && *it < end; ++it) {
      if (after.at != Order::kNever && *it >= base + after.at) {
        why |= after.why;
        break;
      }
      if (*it >= base && !consider(model_.events_of[t][*it])) return why;
    }
  }
  if (from_start) consider(kFromStart);
  return why;
}

// False only if the value that the write certainly has violates a branch or pin that the read alone decides.
bool Engine::value_allowed(uint32_t read, unsigned k, uint32_t writer, Reasons& why) {
  const auto& unary = unary_[read - window_->first];
  if (unary.empty()) return true;
  const uint32_t atom = model_.first_atom[read] + k;
  Known value;
  if (writer == kFromStart) {
    const uint32_t w = window_->first == 0 ? kFromStart : model_.last_write_before(atom, window_->first);
    value = w == kFromStart ? Known{model_.atoms[atom].initial, model_.atoms[atom].known}
                            : Known{model_.slice(w, atom, model_.written(w)), true};
  } else if (model_.trace.events[writer].expr == 0) {
    value = {model_.slice(writer, atom, model_.written(writer)), true};
  } else {
    return true;
  }
  for (uint32_t c : unary) {
    if (!is_required(c)) break;  // in program order
    bool ok = value.known;
    if (ok && c == read) {
      ok = value.bits == model_.slice(read, atom, model_.trace.events[read].value);
    } else if (ok && model_.atom_count[read] == 1) {
      auto [it, fresh] = allowed_.try_emplace({c, value.bits}, 0);
      if (fresh) {
        ++stamp_;
        leaf_[read - window_->first] = value;
        leaf_stamp_[read - window_->first] = stamp_;
        const trace::ExprId id = model_.trace.events[c].expr;
        const Known got = evaluate(id);
        it->second = got.known && got.bits == (model_.trace.events[c].value & trace::width_mask(model_.trace.exprs[id].width));
      }
      ok = it->second;
    }
    if (ok) continue;
    why |= why_required(c);
    return false;
  }
  return true;
}

bool Engine::saturate_read(uint32_t read) {
  for (unsigned k = 0; k < model_.atom_count[read]; ++k) {
    if (bound_[slot(read, k)] != kUnbound) {
      Reasons why = 0;
      if (!value_allowed(read, k, bound_[slot(read, k)], why)) return fail(why | bound_why_[slot(read, k)]);
      continue;
    }
    const Reasons why = candidates(read, k, 2, scratch_) | why_required(read);
    if (scratch_.empty()) return fail(why);
    if (scratch_.size() == 1 && !bind(read, k, uint32_t(scratch_[0]), why)) return false;
  }
  return true;
}

// --- values ----------------------------------------------------------------------------------------------------------

Engine::Known Engine::evaluate(trace::ExprId id) {
  const auto& exprs = model_.trace.exprs;
  stack_.assign(1, id);
  while (!stack_.empty()) {
    const trace::ExprId top = stack_.back();
    const trace::Expr& x = exprs[top];
    const size_t size = stack_.size();
    if (memo_stamp_[top] != stamp_ && trace::op_arity(x.op) > 0)
      for (trace::ExprId operand : {x.a, x.b, x.c})
        if (operand && memo_stamp_[operand] != stamp_) stack_.push_back(operand);
    if (stack_.size() > size) continue;
    stack_.pop_back();
    if (memo_stamp_[top] == stamp_) continue;
    memo_stamp_[top] = stamp_;
    const Known a = x.a ? memo_[x.a] : Known{0, true}, b = x.b ? memo_[x.b] : Known{0, true},
                c = x.c ? memo_[x.c] : Known{0, true};
    Known& out = memo_[top];
    switch (x.op) {
      case Op::Const:
      case Op::Input: out = {model_.recorded[top], true}; break;
      case Op::Read: {
        const auto read = static_cast<uint32_t>(x.value);
        if (window_->holds(read) && leaf_stamp_[read - window_->first] == stamp_)
          out = {leaf_[read - window_->first].bits & trace::width_mask(x.width), leaf_[read - window_->first].known};
        else
          out = {model_.recorded[top], true};
        break;
      }
      case Op::Opaque:
        out = {x.value & trace::width_mask(x.width),
               a.known && b.known && a.bits == model_.recorded[x.a] && (!x.b || b.bits == model_.recorded[x.b])};
        break;
      default:
        out.known = a.known && b.known && c.known;
        if (out.known)
          out.bits = trace::apply(x.op, x.width, a.bits, b.bits, c.bits, x.a ? exprs[x.a].width : 0,
                                  x.b ? exprs[x.b].width : 0, x.value);
    }
  }
  return memo_[id];
}

std::optional<Engine::Known> Engine::value_of_atom(uint32_t writer, uint32_t atom, Reasons& why) {
  if (writer == kFromStart) {
    const uint32_t w = window_->first == 0 ? kFromStart : model_.last_write_before(atom, window_->first);
    if (w == kFromStart) return Known{model_.atoms[atom].initial, model_.atoms[atom].known};
    return Known{model_.slice(w, atom, model_.written(w)), true};
  }
  const trace::ExprId id = model_.trace.events[writer].expr;
  if (!id) return Known{model_.slice(writer, atom, model_.written(writer)), true};
  // Several reads may take their value from one write: ask once a check.
  Determined& memo = determined_[writer - window_->first];
  if (memo.check != check_) {
    Determined fresh{check_, 0, {}};
    fresh.value = value_of(id, fresh.why);
    memo = fresh;
  }
  why |= memo.why;
  if (!memo.value) return std::nullopt;
  return Known{model_.slice(writer, atom, memo.value->bits), memo.value->known, memo.value->inputs};
}

std::optional<Engine::Known> Engine::value_of_read(uint32_t read, Reasons& why) {
  Known value{0, true};
  for (unsigned k = 0; k < model_.atom_count[read]; ++k) {
    const uint32_t s = slot(read, k), atom = model_.first_atom[read] + k;
    if (bound_[s] == kUnbound) return std::nullopt;
    why |= bound_why_[s];
    const auto part = value_of_atom(bound_[s], atom, why);
    if (!part) return std::nullopt;
    value.known &= part->known;
    value.inputs |= part->inputs;
    value.bits |= part->bits << (8 * (model_.atoms[atom].addr - model_.trace.events[read].addr));
  }
  return value;
}

// The reads below must be determined first; the order graph has no cycles, so this ends.
std::optional<Engine::Known> Engine::value_of(trace::ExprId id, Reasons& why) {
  const Support& s = support(id);
  std::vector<std::pair<uint32_t, Known>> leaves;
  leaves.reserve(s.reads.size());
  for (uint32_t read : s.reads) {
    const auto value = value_of_read(read, why);
    if (!value) return std::nullopt;
    leaves.emplace_back(read, *value);
  }
  ++stamp_;
  bool inputs = s.inputs;
  for (const auto& [read, value] : leaves) {
    leaf_[read - window_->first] = value;
    leaf_stamp_[read - window_->first] = stamp_;
    inputs |= value.inputs;
  }
  Known value = evaluate(id);
  value.inputs = inputs;
  return value;
}

bool Engine::check_constraint(size_t index) {
  const uint32_t c = constraints_[index];
  if (verified_[c - window_->first]) return true;
  const Event& e = model_.trace.events[c];
  Reasons why = why_required(c);
  std::optional<Known> value;
  uint64_t wanted;
  ++check_;
  if (e.kind == Kind::Read || e.kind == Kind::Rmw) {
    value = value_of_read(c, why);
    wanted = e.value & trace::width_mask(8u * e.size);
  } else {
    const Support& s = support(e.expr);
    for (uint32_t read : s.reads)
      for (unsigned k = 0; k < model_.atom_count[read]; ++k)
        if (bound_[slot(read, k)] == kUnbound) return true;
    value = value_of(e.expr, why);
    wanted = e.value & trace::width_mask(model_.trace.exprs[e.expr].width);
  }
  if (!value) return true;
  if (value->known && value->bits == wanted) {
    set_flag(verified_[c - window_->first], 1);
    return true;
  }
  if (value->inputs) inexact_ = true;  // another input might do
  return fail(why);
}

uint32_t Engine::unbound_below(trace::ExprId id) {
  std::vector<trace::ExprId> todo{id};
  std::vector<trace::ExprId> seen;
  while (!todo.empty()) {
    const trace::ExprId top = todo.back();
    todo.pop_back();
    if (std::find(seen.begin(), seen.end(), top) != seen.end()) continue;
    seen.push_back(top);
    for (uint32_t read : support(top).reads)
      for (unsigned k = 0; k < model_.atom_count[read]; ++k) {
        const uint32_t w = bound_[slot(read, k)];
        if (w == kUnbound) return read;
        if (w != kFromStart && model_.trace.events[w].expr) todo.push_back(model_.trace.events[w].expr);
      }
  }
  return kNoEvent;
}

}  // namespace stem::predictor
