// Expressions of a trace as Z3 terms; what a read gives is up to whoever derives from this. Internal to encoder/.
#pragma once

#include <z3++.h>

#include <unordered_map>
#include <vector>

#include "encoder/index.h"
#include "trace/event.h"

namespace stem::encoder {

// A bit-vector and whether it is known (see docs/soundness.md, "Values"); the bits of an unknown value mean nothing.
struct Term {
  z3::expr bits;
  z3::expr known;
};

class Terms {
 public:
  Terms(z3::context& z3, const Index& index, bool free_inputs)
      : z3_(z3), index_(index), trace_(index.trace), free_inputs_(free_inputs) {}
  virtual ~Terms() = default;

  Term expression(trace::ExprId id);
  Term written(uint32_t write);               // 8 * size bits
  virtual Term read(uint32_t read) = 0;       // 8 * size bits
  z3::expr input_byte(uint32_t input, uint32_t offset);

 protected:
  virtual bool fixed(trace::ExprId) const { return false; }  // it has its recorded value, whatever executes
  z3::expr all(const std::vector<z3::expr>& parts) const;

  z3::context& z3_;
  const Index& index_;
  const trace::Trace& trace_;

 private:
  z3::expr apply(const trace::Expr& e, const std::vector<Term>& operands);

  const bool free_inputs_;
  std::unordered_map<trace::ExprId, Term> expressions_;
};

}  // namespace stem::encoder
