// Values of a run that may be unknown, and expressions over them: the brute force's own evaluator.
#pragma once

#include <cstdint>
#include <functional>

#include "trace/event.h"

namespace stem::oracle {

struct Value {
  uint64_t bits = 0;
  bool known = true;
  bool operator==(const Value&) const = default;
};

inline uint64_t mask(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }

using Leaf = std::function<Value(const trace::Expr&)>;  // the value of an Op::Read or Op::Input node

// `recorded` gives what a leaf was in the recording, for Opaque.
Value evaluate(const trace::Trace& trace, trace::ExprId id, const Leaf& now, const Leaf& recorded);

}  // namespace stem::oracle
