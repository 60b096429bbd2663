// Inputs along the recorded order: which values make a branch go the other way while all that executes before it stays as it
// was. The order is fixed, so each read takes its recorded write, and what is left is bit-vectors over the input bytes: no
// positions, no matching. Whatever depends on no input is a constant; of the rest only the conditions that share input bytes
// with the branch, directly or by way of others, are asked of Z3, and all other bytes keep their values.
//
// Linear in the trace once, then in the conditions on inputs for each branch.
#pragma once

#include <functional>
#include <memory>

#include "encoder/encoder.h"

namespace stem::encoder {

class InputSolver {
 public:
  // Keeps a reference to the index.
  InputSolver(const Index& index, Options options);
  ~InputSolver();

  // Does what the branch decides depend on an input, in the recorded order?
  bool depends(uint32_t branch) const;

  // `executes` says of every event before the branch whether it does; the set must be closed (Scope), with the recorded source
  // of each read. The schedule of the answer is left to the caller.
  Answer solve(uint32_t branch, const Wish& wish, const std::function<bool(uint32_t)>& executes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stem::encoder
