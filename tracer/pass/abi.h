// The runtime as instrumented code sees it: its functions (tracer/runtime/abi.def), the hot page and the thread's state.
#pragma once

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace stem::pass {

class Abi {
 public:
  explicit Abi(llvm::Module& module);

  llvm::FunctionCallee function(llvm::StringRef name) const;
  llvm::CallInst* call(llvm::IRBuilder<>& builder, llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments) const;

  // Addresses of fields; offsets are those of tracer/runtime/abi.h and trace/raw.h.
  llvm::Value* hot(llvm::IRBuilder<>& builder, size_t offset) const;
  llvm::Value* tls(llvm::IRBuilder<>& builder, size_t offset) const;

  // Is this one of our own symbols?
  static bool owns(llvm::StringRef name) { return name.starts_with("__stem_"); }

 private:
  llvm::Module& module_;
  llvm::StringMap<llvm::FunctionCallee> functions_;
  llvm::GlobalVariable* hot_;
  llvm::GlobalVariable* tls_;
};

}  // namespace stem::pass
