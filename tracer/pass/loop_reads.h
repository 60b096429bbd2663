// Reads that a loop repeats: once for each time the loop is entered, as the optimiser has it.
#pragma once

#include <llvm/IR/PassManager.h>

namespace stem::pass {

void merge_loop_reads(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace stem::pass
