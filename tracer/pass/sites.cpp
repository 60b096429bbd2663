#include "tracer/pass/sites.h"

#include "tracer/pass/layout.h"
#include "tracer/pass/naming.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/xxhash.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <algorithm>

using namespace llvm;

namespace stem::pass {

Sites::Sites(Module& module) : module_(module) {
  LLVMContext& context = module.getContext();
  Type* i8 = Type::getInt8Ty(context);
  Type* i16 = Type::getInt16Ty(context);
  Type* i32 = Type::getInt32Ty(context);
  Type* i64 = Type::getInt64Ty(context);
  site_type_ = StructType::create(context, {i64, i8, i8, i16, i32, i32, i32, i32, i32, i32, i32}, "stem_site");
  variable_type_ = StructType::create(context, {i64, i32, i32, i32, i32, i32, i32, i32, i32}, "stem_variable");
  const DataLayout& layout = module.getDataLayout();
  if (layout.getTypeAllocSize(site_type_) != sizeof(stem_site) || layout.getTypeAllocSize(variable_type_) != sizeof(stem_variable))
    report_fatal_error("stem-cc: the records of trace/site_record.h do not have the size that the pass gives them");
}

Constant* Sites::text(const std::string& text) {
  if (text.empty()) return nullptr;
  Constant*& known = texts_[text];
  if (!known) {
    Constant* bytes = ConstantDataArray::getString(module_.getContext(), text);
    auto* global = new GlobalVariable(module_, bytes->getType(), true, GlobalValue::PrivateLinkage, bytes, "stem.text");
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    global->setAlignment(Align(1));
    known = global;
  }
  return known;
}

Constant* Sites::relative(Constant* target, GlobalVariable* record, unsigned field) {
  LLVMContext& context = module_.getContext();
  Type* i32 = Type::getInt32Ty(context);
  if (!target) return ConstantInt::get(i32, 0);
  Type* i64 = Type::getInt64Ty(context);
  Constant* indices[] = {ConstantInt::get(i32, 0), ConstantInt::get(i32, field)};
  Constant* place = ConstantExpr::getInBoundsGetElementPtr(record->getValueType(), record, indices);
  return ConstantExpr::getTrunc(ConstantExpr::getSub(ConstantExpr::getPtrToInt(target, i64), ConstantExpr::getPtrToInt(place, i64)), i32);
}

GlobalVariable* Sites::add(Instruction& at, const Description& description) {
  Function& function = *at.getFunction();
  std::string identity = function.getName().str();
  // A static function's name is unique in its file only.
  if (function.hasLocalLinkage()) identity += "@" + sys::path::filename(module_.getSourceFileName()).str();
  identity += '\0' + std::to_string(description.kind) + '\0' + description.text;
  identity += '\0' + std::to_string(ordinals_[identity]++);
  const uint64_t key = std::max<uint64_t>(1, xxh3_64bits(StringRef(identity)));

  unsigned line = description.line, column = 0;
  std::string file, inside;
  if (const DILocation* place = at.getDebugLoc().get(); place && place->getLine() != 0) {
    if (line == 0) line = place->getLine(), column = place->getColumn();
    file = file_name(place->getFile());
  } else if (const DISubprogram* subprogram = function.getSubprogram()) {
    if (line == 0) line = subprogram->getLine();
    file = file_name(subprogram->getFile());
  }

  LLVMContext& context = module_.getContext();
  auto* record = new GlobalVariable(module_, site_type_, true, GlobalValue::PrivateLinkage, nullptr, "stem.site");
  record->setSection(STEM_SITES_SECTION);
  record->setAlignment(Align(8));
  Type* i8 = Type::getInt8Ty(context);
  Type* i32 = Type::getInt32Ty(context);
  record->setInitializer(ConstantStruct::get(
      site_type_, {ConstantInt::get(Type::getInt64Ty(context), key), ConstantInt::get(i8, description.kind), ConstantInt::get(i8, STEM_RECORD_VERSION),
                   ConstantInt::get(Type::getInt16Ty(context), std::min(column, 65535u)), ConstantInt::get(i32, line), relative(text(file), record, 5),
                   relative(text(function_name(function)), record, 6), relative(text(function.getName().str()), record, 7),
                   relative(text(description.text), record, 8), relative(text(description.path), record, 9), relative(text(description.layout), record, 10)}));
  records_.push_back(record);
  return record;
}

uint64_t Sites::key(const GlobalVariable* site) { return cast<ConstantInt>(site->getInitializer()->getAggregateElement(0u))->getZExtValue(); }

// A reference that the linker can resolve inside this object file, whatever it does with the symbol; nullptr if there is none:
// an inline variable's copy may be thrown away, a common symbol has no place yet.
static Constant* local_reference(GlobalVariable& global) {
  if (global.isThreadLocal() || global.hasComdat() || global.hasCommonLinkage() || global.isInterposable() || global.hasAvailableExternallyLinkage()) {
    if (!global.hasExternalLinkage() || global.isThreadLocal() || global.hasComdat()) return nullptr;
  }
  if (global.hasLinkOnceLinkage() || global.hasWeakLinkage()) return nullptr;
  if (global.hasLocalLinkage() || global.isDSOLocal()) return &global;
  return GlobalAlias::create(global.getValueType(), global.getAddressSpace(), GlobalValue::PrivateLinkage, "stem.here", &global, global.getParent());
}

void Sites::add_variable(GlobalVariable& global) {
  SmallVector<DIGlobalVariableExpression*, 1> expressions;
  global.getDebugInfo(expressions);
  const DIGlobalVariable* variable = expressions.empty() ? nullptr : expressions.front()->getVariable();
  const std::string display = variable ? qualified_name(variable->getScope(), variable->getName()) : global.getName().str();
  LLVMContext& context = module_.getContext();
  Type* i32 = Type::getInt32Ty(context);
  auto* record = new GlobalVariable(module_, variable_type_, true, GlobalValue::PrivateLinkage, nullptr, "stem.variable");
  record->setSection(STEM_VARS_SECTION);
  record->setAlignment(Align(8));
  const unsigned flags = global.isThreadLocal() ? STEM_VARIABLE_TLS : 0;
  record->setInitializer(ConstantStruct::get(
      variable_type_, {ConstantInt::get(Type::getInt64Ty(context), module_.getDataLayout().getTypeAllocSize(global.getValueType())),
                       relative(local_reference(global), record, 1), relative(text(global.getName().str()), record, 2),
                       relative(text(display), record, 3), relative(text(variable ? file_name(variable->getFile()) : ""), record, 4),
                       ConstantInt::get(i32, variable ? variable->getLine() : 0),
                       relative(text(variable ? layout_of({variable->getType(), 0}) : ""), record, 6), ConstantInt::get(i32, flags),
                       ConstantInt::get(i32, STEM_RECORD_VERSION)}));
  records_.push_back(record);
}

void Sites::add_variables() {
  std::vector<GlobalVariable*> globals;
  for (GlobalVariable& global : module_.globals()) {
    if (global.isDeclaration() || global.isConstant() || global.hasPrivateLinkage() || global.getName().starts_with("llvm.") || global.hasAvailableExternallyLinkage()) continue;
    if (!global.getValueType()->isSized() || module_.getDataLayout().getTypeAllocSize(global.getValueType()) == 0) continue;
    globals.push_back(&global);
  }
  for (GlobalVariable* global : globals) add_variable(*global);
}

// One constructor per executable or library: the linker keeps one copy of it, and the section's bounds cover everybody's records.
void Sites::finish(FunctionCallee announce) {
  if (records_.empty()) return;
  appendToCompilerUsed(module_, records_);
  LLVMContext& context = module_.getContext();
  auto bound = [&](const char* name) {
    auto* symbol = new GlobalVariable(module_, Type::getInt8Ty(context), true, GlobalValue::ExternalWeakLinkage, nullptr, name);
    symbol->setVisibility(GlobalValue::HiddenVisibility);
    return symbol;
  };
  const char* name = "__stem_announce_sites";
  auto* function = Function::Create(FunctionType::get(Type::getVoidTy(context), false), GlobalValue::LinkOnceODRLinkage, name, module_);
  function->setVisibility(GlobalValue::HiddenVisibility);
  function->setComdat(module_.getOrInsertComdat(name));
  function->addFnAttr(Attribute::NoUnwind);
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  builder.CreateCall(announce, {bound("__start_" STEM_SITES_SECTION), bound("__stop_" STEM_SITES_SECTION)});
  builder.CreateRetVoid();
  appendToGlobalCtors(module_, function, 1, function);
}

}  // namespace stem::pass
