// Brings a function into the form that is instrumented: locals in SSA form (also at -O0), no aggregates in loads and stores, no
// guaranteed tail calls, a block of its own after each invoke, reads that a loop only repeats made once (loop_reads.h).
#pragma once

#include <llvm/IR/PassManager.h>

namespace stem::pass {

bool instrumentable(const llvm::Function& function);
void prepare(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace stem::pass
