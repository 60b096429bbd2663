// The module as it is at the point of instrumentation, inside the object file: whole-program analyses link the modules of an
// executable again. Its instructions name their sites by key (metadata "stem.site").
#pragma once

#include <llvm/IR/Module.h>

namespace stem::pass {

void embed_bitcode(llvm::Module& module);

}  // namespace stem::pass
