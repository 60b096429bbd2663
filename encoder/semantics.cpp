// φsm: each thread's executed operations as bit-vector terms over its reads and the inputs; what holds the trace to its path.
//
// Only pins (branches, assertions, pinned reads) constrain anything; a write is a term that reads may be matched with. A
// pin binds where it executes: at its anchor, and a pin that directly follows a read-modify-write at that event itself.
// Opaque values are known only while their operands are what they were in the recording.
#include <algorithm>

#include "encoder/values.h"
#include "util/error.h"

namespace stem::encoder {

using trace::Op;

namespace {

z3::expr resize(const z3::expr& bits, unsigned width) {
  const unsigned from = bits.get_sort().bv_size();
  if (from == width) return bits;
  return from < width ? z3::zext(bits, width - from) : bits.extract(width - 1, 0);
}

}  // namespace

Values::Values(Formula& f) : f_(f) {
  for (uint32_t e : f.events)
    if (writes(f.event(e)))
      for (unsigned k = 0; k < f.event(e).size; ++k) writers_[{f.event(e).object, f.event(e).addr + k}].push_back(e);
  find_relevant_reads();
}

void Values::add_leaves(trace::ExprId id, std::vector<uint32_t>& reads) const {
  std::vector<trace::ExprId> todo{id};
  std::unordered_set<trace::ExprId> seen;
  while (!todo.empty()) {
    const trace::ExprId next = todo.back();
    todo.pop_back();
    if (next == 0 || !seen.insert(next).second) continue;
    const trace::Expr& e = f_.trace.exprs[next];
    if (e.op == Op::Read) reads.push_back(static_cast<uint32_t>(e.value));
    todo.insert(todo.end(), {e.a, e.b, e.c});
  }
}

// Backwards from everything that binds: a read it depends on, the writes that read may take, the reads those depend on.
void Values::find_relevant_reads() {
  std::vector<uint32_t> todo;
  for (uint32_t e : f_.events) {
    const Event& event = f_.event(e);
    if (binds(event)) add_leaves(event.expr, todo);
    if (reads(event) && (event.flags & trace::kPinned || f_.options.paper)) todo.push_back(e);
  }
  std::unordered_set<uint32_t> seen, seen_writes;
  while (!todo.empty()) {
    const uint32_t read = todo.back();
    todo.pop_back();
    if (!f_.in_scope(read) || !seen.insert(read).second) continue;
    relevant_.push_back(read);
    for (const Chunk& chunk : chunks(read)) {
      unknowns_ |= !chunk.initial_known;
      for (uint32_t write : chunk.writers)
        if (seen_writes.insert(write).second) add_leaves(f_.event(write).expr, todo);
    }
  }
  std::sort(relevant_.begin(), relevant_.end());
  unknowns_ |= f_.index.opaque;
}

z3::expr Values::input_byte(uint32_t input, uint32_t offset) {
  if (!f_.options.free_inputs) return f_.z3.bv_val(f_.trace.inputs.at(input).bytes.at(offset), 8);
  return f_.z3.bv_const(("in" + std::to_string(input) + "_" + std::to_string(offset)).c_str(), 8);
}

Term Values::read(uint32_t read) {
  auto it = reads_.find(read);
  if (it != reads_.end()) return it->second;
  const std::string name = std::to_string(read);
  if (!f_.in_scope(read))  // never executed: nothing is known of it
    return reads_.emplace(read, Term{f_.z3.bv_val(0, 8 * f_.event(read).size), f_.z3.bool_val(false)}).first->second;
  const Term term{f_.z3.bv_const(("r" + name).c_str(), 8 * f_.event(read).size),
                  unknowns_ ? f_.z3.bool_const(("known" + name).c_str()) : f_.z3.bool_val(true)};
  return reads_.emplace(read, term).first->second;
}

Term Values::written(uint32_t write) {
  const Event& event = f_.event(write);
  const unsigned width = 8 * event.size;
  if (event.expr == 0)
    return {f_.z3.bv_val(event.kind == Kind::Rmw ? event.value2 : event.value, width), f_.z3.bool_val(true)};
  const Term term = expression(event.expr);
  return {resize(term.bits, width), term.known};
}

// Operands first, without recursion: expressions of loops are deep.
Term Values::expression(trace::ExprId id) {
  std::vector<trace::ExprId> stack{id};
  while (!stack.empty()) {
    const trace::ExprId next = stack.back();
    const trace::Expr& e = f_.trace.exprs[next];
    if (expressions_.count(next)) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    for (trace::ExprId child : {e.a, e.b, e.c})
      if (child && !expressions_.count(child)) ready = false, stack.push_back(child);
    if (!ready) continue;
    stack.pop_back();
    if (e.op == Op::Const) {
      expressions_.emplace(next, Term{f_.z3.bv_val(e.value, e.width), f_.z3.bool_val(true)});
    } else if (e.op == Op::Read) {
      const Term term = read(static_cast<uint32_t>(e.value));
      expressions_.emplace(next, Term{resize(term.bits, e.width), term.known});
    } else if (e.op == Op::Input) {
      const uint32_t input = static_cast<uint32_t>(e.value >> 32), offset = static_cast<uint32_t>(e.value);
      z3::expr bits = input_byte(input, offset);
      for (unsigned k = 1; 8 * k < e.width; ++k) bits = z3::concat(input_byte(input, offset + k), bits);
      expressions_.emplace(next, Term{resize(bits, e.width), f_.z3.bool_val(true)});
    } else {
      std::vector<Term> operands;
      std::vector<z3::expr> known;
      for (trace::ExprId child : {e.a, e.b, e.c}) {
        if (!child) continue;
        const Term& operand = expressions_.at(child);
        operands.push_back(operand);
        known.push_back(operand.known);
        if (e.op == Op::Opaque)
          known.push_back(operand.bits == f_.z3.bv_val(f_.index.recorded[child], f_.trace.exprs[child].width));
      }
      expressions_.emplace(next, Term{apply(e, operands), f_.all(known)});
    }
  }
  return expressions_.at(id);
}

z3::expr Values::apply(const trace::Expr& e, const std::vector<Term>& operands) {
  z3::context& z3 = f_.z3;
  const z3::expr a = operands[0].bits;
  const z3::expr b = operands.size() > 1 ? operands[1].bits : a;
  const auto bit = [&](const z3::expr& condition) { return z3::ite(condition, z3.bv_val(1, 1), z3.bv_val(0, 1)); };
  const unsigned from = a.get_sort().bv_size();
  switch (e.op) {
    case Op::Const: case Op::Read: case Op::Input: break;
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::UDiv: return z3::udiv(a, b);
    case Op::SDiv: return a / b;
    case Op::URem: return z3::urem(a, b);
    case Op::SRem: return z3::srem(a, b);
    case Op::Shl: return z3::shl(a, b);
    case Op::LShr: return z3::lshr(a, b);
    case Op::AShr: return z3::ashr(a, b);
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Eq: return bit(a == b);
    case Op::Ne: return bit(a != b);
    case Op::Ult: return bit(z3::ult(a, b));
    case Op::Ule: return bit(z3::ule(a, b));
    case Op::Slt: return bit(z3::slt(a, b));
    case Op::Sle: return bit(z3::sle(a, b));
    case Op::Ite: return z3::ite(a == z3.bv_val(1, 1), b, operands[2].bits);
    case Op::ZExt: return resize(a, e.width);
    case Op::SExt: return e.width > from ? z3::sext(a, e.width - from) : a;
    case Op::Trunc: return resize(a, e.width);
    case Op::Extract: return a.extract(static_cast<unsigned>(e.value) + e.width - 1, static_cast<unsigned>(e.value));
    case Op::Concat: return z3::concat(a, b);
    case Op::Opaque: return z3.bv_val(e.value, e.width);
  }
  STEM_CHECK(false);
}

void Values::add_semantics() {
  for (const auto& thread : f_.threads) {
    uint32_t rmw = trace::kNone;  // whose pins follow
    for (uint32_t e : thread) {
      const Event& event = f_.event(e);
      if (event.kind != Kind::Pin) rmw = event.kind == Kind::Rmw ? e : trace::kNone;
      if (binds(event) && event.expr && !repeats_target(e)) {
        const Term term = expression(event.expr);
        const z3::expr holds =
            f_.all({term.known, term.bits == f_.z3.bv_val(event.value, f_.trace.exprs[event.expr].width)});
        // At its anchor; if that is r, it comes just before r and binds, unlike r's own pins.
        if (!f_.prefix) f_.require(holds);
        else if (rmw != trace::kNone) f_.require(holds || f_.cut <= f_.position(rmw));
        else if (f_.has_position(e)) f_.require(holds || f_.cut <= f_.position(e));
        else f_.require(holds || f_.cut < f_.position(e));
      }
      if (reads(event) && event.flags & trace::kPinned) {
        const Term term = read(e);
        f_.require_if_executed(e, f_.all({term.known, term.bits == f_.z3.bv_val(event.value, 8 * event.size)}));
      }
    }
  }
}

}  // namespace stem::encoder
