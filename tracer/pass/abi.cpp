#include "tracer/pass/abi.h"

#include "trace/raw.h"
#include "tracer/runtime/abi.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Intrinsics.h>

using namespace llvm;

namespace stem::pass {

namespace {

struct Entry {
  const char* name;
  const char* result;
  const char* parameters;
};

constexpr Entry kEntries[] = {
#define STEM_FN(name, result, parameters) {#name, #result, #parameters},
#include "tracer/runtime/abi.def"
};

Type* type_named(LLVMContext& context, StringRef name) {
  if (name == "void") return Type::getVoidTy(context);
  if (name == "i1") return Type::getInt1Ty(context);
  if (name == "i32") return Type::getInt32Ty(context);
  if (name == "i64") return Type::getInt64Ty(context);
  if (name == "ptr") return PointerType::get(context, 0);
  report_fatal_error("stem-cc: unknown type in tracer/runtime/abi.def: " + name);
}

}  // namespace

Abi::Abi(Module& module) : module_(module) {
  LLVMContext& context = module.getContext();
  for (const Entry& entry : kEntries) {
    SmallVector<Type*, 8> parameters;
    SmallVector<StringRef, 8> parts;
    StringRef(entry.parameters).trim("()").split(parts, ',', -1, false);
    for (const StringRef part : parts) parameters.push_back(type_named(context, part.trim().split(' ').first));
    FunctionCallee callee = module.getOrInsertFunction(entry.name, FunctionType::get(type_named(context, entry.result), parameters, false));
    if (auto* function = dyn_cast<Function>(callee.getCallee())) function->addFnAttr(Attribute::NoUnwind);
    functions_[entry.name] = callee;
  }
  // The runtime is part of the executable: code that can only be in one reaches it directly, the rest through the GOT.
  const bool in_executable = module.getPICLevel() == PICLevel::NotPIC || module.getPIELevel() != PIELevel::Default;
  auto declare = [&](const char* name, uint64_t size, bool thread_local_) {
    auto* type = ArrayType::get(Type::getInt8Ty(context), size);
    auto* global = new GlobalVariable(module, type, false, GlobalValue::ExternalLinkage, nullptr, name);
    global->setAlignment(Align(8));
    if (in_executable) global->setDSOLocal(true);
    if (thread_local_) global->setThreadLocalMode(in_executable ? GlobalValue::LocalExecTLSModel : GlobalValue::InitialExecTLSModel);
    return global;
  };
  hot_ = declare("__stem_hot", sizeof(stem_hot), false);
  tls_ = declare("__stem_tls", sizeof(stem_tls), true);
}

FunctionCallee Abi::function(StringRef name) const {
  auto found = functions_.find(name);
  if (found == functions_.end()) report_fatal_error("stem-cc: not in tracer/runtime/abi.def: " + name);
  return found->second;
}

CallInst* Abi::call(IRBuilder<>& builder, StringRef name, ArrayRef<Value*> arguments) const { return builder.CreateCall(function(name), arguments); }

Value* Abi::hot(IRBuilder<>& builder, size_t offset) const { return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), hot_, offset); }

Value* Abi::tls(IRBuilder<>& builder, size_t offset) const { return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), builder.CreateThreadLocalAddress(tls_), offset); }

}  // namespace stem::pass
