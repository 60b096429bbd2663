// What the fields of a raw record (trace/raw.h) say.
#pragma once

#include <cstdint>

#include "trace/event.h"
#include "trace/raw.h"

namespace stem::collect {

constexpr int kArity[] = {
#define STEM_OP(Name, text, arity) arity,
#include "trace/ops.def"
};

inline unsigned kind_of(const stem_rec& r) { return r.head >> 48 & 0xff; }
inline unsigned aux_of(const stem_rec& r) { return static_cast<unsigned>(r.head >> 56); }
inline uint64_t addr_of(const stem_rec& r) { return r.head & 0xffffffffffffull; }
// Kind, aux and site.
inline uint64_t key_of(const stem_rec& r) { return r.head >> 48 | static_cast<uint64_t>(r.site) << 16; }
inline int arity_of(unsigned op) { return kArity[op]; }

// Of an Expr record whose aux is an operation.
struct ExprFields {
  explicit ExprFields(const stem_rec& r) : op(static_cast<trace::Op>(aux_of(r))) {
    const uint64_t bits = addr_of(r);
    width = bits & 0xff;
    operand_width = bits >> 8 & 0xff;
    low = bits >> 16 & 0xff;
    if (operand_width - 1 >= 64) operand_width = width;
  }
  // Widths of the operands, should they be constants.
  unsigned first_width() const {
    if (kArity[static_cast<unsigned>(op)] == 1) return operand_width;
    if (op == trace::Op::Concat) return width > operand_width ? width - operand_width : 1;
    return compares() ? operand_width : width;
  }
  unsigned second_width() const { return op == trace::Op::Concat || compares() ? operand_width : width; }
  bool compares() const { return width == 1 && op >= trace::Op::Eq && op <= trace::Op::Sle; }

  trace::Op op;
  unsigned width, operand_width, low;
};

}  // namespace stem::collect
