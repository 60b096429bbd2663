// The LLVM pass behind stem-cc, run where the optimiser's pipeline starts: every access of the source is still there, and the
// optimiser then works on the instrumented code. See instrument.h, sharing.h, symbolic.h and naming.h for its parts.
#include "tracer/pass/bitcode.h"
#include "tracer/pass/instrument.h"
#include "tracer/pass/library.h"
#include "tracer/pass/plan.h"
#include "tracer/pass/prepare.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

using namespace llvm;

namespace stem::pass {

namespace {

constexpr const char* kFlag = "stem.instrumented";

// Promises that were true of the program's code and are not of the instrumented one.
void forget_promises(Module& module) {
  static const Attribute::AttrKind promises[] = {Attribute::Memory, Attribute::NoSync, Attribute::NoFree, Attribute::WillReturn, Attribute::Speculatable};
  for (Function& function : module) {
    if (!function.isIntrinsic())
      for (const auto promise : promises) function.removeFnAttr(promise);
    for (Instruction& instruction : instructions(function))
      if (auto* call = dyn_cast<CallBase>(&instruction); call && !isa<IntrinsicInst>(call))
        for (const auto promise : promises) call->removeFnAttr(promise);
  }
}

void mark(Function& function) {
  if (function.hasPrefixData() || function.hasAvailableExternallyLinkage()) return;
  Type* number = Type::getInt64Ty(function.getContext());
  function.setPrefixData(ConstantStruct::getAnon({ConstantInt::get(number, STEM_FUNCTION_MARK_0), ConstantInt::get(number, STEM_FUNCTION_MARK_1)}));
}

// A program may have a strdup or an index of its own. Calls to it from its other files were turned into calls of the runtime's
// wrapper, which is weak: this one takes its place.
void keep_own_functions(Module& module) {
  for (Function& function : module) {
    if (function.isDeclaration() || function.hasLocalLinkage() || function.hasAvailableExternallyLinkage() || intercepted(function.getName()) != Intercept::Wrap) continue;
    const std::string name = ("__stem_wrap_" + function.getName()).str();
    GlobalValue* declared = module.getNamedValue(name);
    auto* alias = GlobalAlias::create(function.getFunctionType(), 0, function.getLinkage(), "", &function, &module);
    alias->setVisibility(function.getVisibility());
    if (declared) {
      declared->replaceAllUsesWith(alias);
      declared->eraseFromParent();
    }
    alias->setName(name);
  }
}

class StemPass : public PassInfoMixin<StemPass> {
 public:
  PreservedAnalyses run(Module& module, ModuleAnalysisManager& managers) {
    if (module.getModuleFlag(kFlag)) return PreservedAnalyses::all();
    module.addModuleFlag(Module::Max, kFlag, 1);
    auto& analyses = managers.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    std::vector<Function*> functions;
    for (Function& function : module)
      if (instrumentable(function)) functions.push_back(&function);
    for (Function* function : functions) prepare(*function, analyses);

    const Sharing sharing(module);
    Sites sites(module);
    SiteMap site_of;
    for (Function* function : functions) plan_sites(*function, sites, sharing, site_of);
    embed_bitcode(module);
    sites.add_variables();

    const Abi abi(module);
    forget_promises(module);
    for (Function* function : functions) {
      FunctionInstrumenter(*function, abi, sites, sharing, analyses.getResult<TargetLibraryAnalysis>(*function), site_of).run();
      mark(*function);
      if (verifyFunction(*function, &errs())) report_fatal_error(Twine("stem-cc: bug in the pass: ") + function->getName() + " is not valid any more");
    }
    keep_own_functions(module);
    sites.finish(abi.function("__stem_register"));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

}  // namespace

}  // namespace stem::pass

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "stem", "1", [](PassBuilder& builder) {
            builder.registerPipelineStartEPCallback([](ModulePassManager& manager, OptimizationLevel) { manager.addPass(stem::pass::StemPass()); });
            builder.registerPipelineParsingCallback([](StringRef name, ModulePassManager& manager, ArrayRef<PassBuilder::PipelineElement>) {
              if (name != "stem") return false;
              manager.addPass(stem::pass::StemPass());
              return true;
            });
          }};
}
