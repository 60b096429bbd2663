// Where the threads of a creation have ended: a join of the handle that the creation wrote, or a loop of joins over the
// array that a loop of creations filled.
//
// Only handles that nobody else can write are looked at: a local or global variable whose address goes to creations
// alone. A loop of joins counts if it runs exactly as often as the loop of creations and goes through the same
// addresses (scalar evolution says so). Programs that detach threads say nothing: there a join may return at once.
#pragma once

#include <llvm/IR/Instructions.h>

#include <functional>
#include <map>
#include <vector>

#include "static/pointer.h"

namespace stem::analysis {

// Passed, the threads have ended: the end of an instruction, or the beginning of a block.
struct JoinPoint {
  const llvm::Instruction* call;         // the join; code after it, unless
  const llvm::BasicBlock* loop_left_at;  // it is in a loop, which leaves to here
};

// By creation. `once`: the function runs at most once.
std::map<const llvm::CallBase*, std::vector<JoinPoint>> find_joins(
    const llvm::Module& module, const PointerAnalysis& pointers,
    const std::function<bool(const llvm::Function*)>& once);

}  // namespace stem::analysis
