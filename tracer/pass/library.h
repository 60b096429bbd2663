// Functions of the C and C++ libraries that the pass knows by name. Only declarations count: a program's own malloc is code.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/InstrTypes.h>

namespace stem::pass {

// The called function if it is a declaration that is not an intrinsic, else nullptr.
llvm::Function* library_callee(const llvm::CallBase& call);

// malloc, calloc, aligned_alloc, operator new, ...: returns new memory. posix_memalign, which stores it, is not among them.
bool is_allocation(const llvm::CallBase& call);
bool is_zeroing(const llvm::CallBase& call);
// Which arguments multiply to the size; second is -1 if there is one.
std::pair<int, int> size_arguments(const llvm::CallBase& call);
bool is_release(const llvm::CallBase& call);  // free, operator delete
bool is_posix_memalign(const llvm::CallBase& call);
bool is_assertion_failure(const llvm::CallBase& call);
// The runtime's own model of it writes nothing that is not recorded.
bool only_synchronises(const llvm::Function& function);

enum class Intercept { No, Wrap, Interpose };
Intercept intercepted(llvm::StringRef name);

}  // namespace stem::pass
