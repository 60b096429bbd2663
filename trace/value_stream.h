// The recorded value of every expression of a run that is being read, in bounded memory: older ones are on disk
// (value_store.h). An expression over the read that comes next has its value once that read has been seen.
#pragma once

#include <vector>

#include "trace/event.h"
#include "trace/value_store.h"

namespace stem::trace {

class ValueStream {
 public:
  ValueStream() { values_.push({}); }

  // In the order of the trace. Inputs: those read so far.
  void expr(const Expr& expr, const std::vector<Input>& inputs);
  void event(const Event& event);

  ExprId next() const { return static_cast<ExprId>(values_.size()); }
  ValueStore::Value value(ExprId id) { return values_.get(id); }

 private:
  ValueStore values_;
  std::vector<std::pair<ExprId, Expr>> pending_;
};

}  // namespace stem::trace
