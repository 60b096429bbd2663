#include "tracer/pass/plan.h"

#include "tracer/pass/layout.h"
#include "tracer/pass/library.h"
#include "tracer/pass/naming.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>

using namespace llvm;

namespace stem::pass {

namespace {

using Description = Sites::Description;

std::string text_or(std::string text, const char* otherwise) { return text.empty() ? otherwise : text; }

Description describe_memory(Naming& naming, stem_site_kind kind, Value* pointer, uint64_t bytes) {
  const Named named = naming.memory(pointer, bytes);
  return {kind, text_or(named.text, "memory"), named.path, "", 0};
}

Description describe_copy(Naming& naming, const MemTransferInst& copy) {
  const auto* length = dyn_cast<ConstantInt>(copy.getLength());
  const uint64_t bytes = length ? length->getZExtValue() : 9;
  const Named to = naming.memory(copy.getDest(), bytes), from = naming.memory(copy.getSource(), bytes);
  return {STEM_SITE_COPY, text_or(to.text, "memory") + " = " + text_or(from.text, "memory"), "", "", 0};
}

Description describe_local(Naming& naming, AllocaInst& local) {
  const DILocalVariable* variable = naming.variable(&local);
  if (!variable) return {STEM_SITE_STACK, "temporary", "", "", 0};
  return {STEM_SITE_STACK, variable->getName().str(), "", layout_of({variable->getType(), 0}), variable->getLine()};
}

// The words of a failed assertion are its first argument.
std::string assertion_text(const CallBase& call) {
  StringRef words;
  for (unsigned i = call.arg_size(); i-- > 0;)
    if (call.getArgOperand(i)->getType()->isPointerTy() && getConstantStringInfo(call.getArgOperand(i), words) && i == 0) return words.str();
  return "assert";
}

std::optional<Description> describe_call(Naming& naming, CallBase& call) {
  const Function* callee = library_callee(call);
  if (is_assertion_failure(call)) return Description{STEM_SITE_ASSERT, assertion_text(call), "", "", 0};
  if (is_allocation(call) || is_posix_memalign(call)) {
    const std::string layout = is_allocation(call) ? layout_of(naming.pointee(&call)) : "";
    return Description{STEM_SITE_ALLOC, function_name(*callee), "", layout, 0};
  }
  if (is_release(call)) return Description{STEM_SITE_FREE, function_name(*callee), "", "", 0};
  if (callee) {
    // What allocates inside the runtime's own version of it still has a type.
    const bool allocates = call.getType()->isPointerTy() && callee->getName().contains("alloc");
    return Description{STEM_SITE_CALL, function_name(*callee), "", allocates ? layout_of(naming.pointee(&call)) : "", 0};
  }
  return std::nullopt;
}

std::optional<Description> describe(Naming& naming, Instruction& instruction, const Sharing& sharing) {
  const DataLayout& layout = instruction.getModule()->getDataLayout();
  auto shared = [&](Value* pointer) { return sharing.of(pointer) == Memory::Shared; };
  auto bytes = [&](Type* type) { return layout.getTypeStoreSize(type).getKnownMinValue(); };
  if (auto* load = dyn_cast<LoadInst>(&instruction)) {
    if (!shared(load->getPointerOperand())) return std::nullopt;
    return describe_memory(naming, STEM_SITE_READ, load->getPointerOperand(), bytes(load->getType()));
  }
  if (auto* store = dyn_cast<StoreInst>(&instruction)) {
    if (!shared(store->getPointerOperand())) return std::nullopt;
    return describe_memory(naming, STEM_SITE_WRITE, store->getPointerOperand(), bytes(store->getValueOperand()->getType()));
  }
  if (auto* rmw = dyn_cast<AtomicRMWInst>(&instruction)) return describe_memory(naming, STEM_SITE_RMW, rmw->getPointerOperand(), bytes(rmw->getType()));
  if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) return describe_memory(naming, STEM_SITE_RMW, exchange->getPointerOperand(), bytes(exchange->getCompareOperand()->getType()));
  if (auto* copy = dyn_cast<MemTransferInst>(&instruction)) {
    if (!shared(copy->getDest()) && !shared(copy->getSource())) return std::nullopt;
    return describe_copy(naming, *copy);
  }
  if (auto* fill = dyn_cast<MemSetInst>(&instruction)) {
    if (!shared(fill->getDest())) return std::nullopt;
    const auto* length = dyn_cast<ConstantInt>(fill->getLength());
    return describe_memory(naming, STEM_SITE_FILL, fill->getDest(), length ? length->getZExtValue() : 9);
  }
  if (auto* branch = dyn_cast<BranchInst>(&instruction); branch && branch->isConditional()) return Description{STEM_SITE_BRANCH, "if", "", "", 0};
  if (isa<SwitchInst>(instruction)) return Description{STEM_SITE_BRANCH, "switch", "", "", 0};
  if (auto* local = dyn_cast<AllocaInst>(&instruction)) {
    if (sharing.is_private(local)) return std::nullopt;
    return describe_local(naming, *local);
  }
  if (auto* call = dyn_cast<CallBase>(&instruction); call && !isa<IntrinsicInst>(call)) return describe_call(naming, *call);
  return std::nullopt;
}

}  // namespace

void plan_sites(Function& function, Sites& sites, const Sharing& sharing, SiteMap& site_of) {
  Naming naming(function, function.getDataLayout());
  LLVMContext& context = function.getContext();
  for (Instruction& instruction : instructions(function)) {
    const std::optional<Description> description = describe(naming, instruction, sharing);
    if (!description) continue;
    GlobalVariable* site = sites.add(instruction, *description);
    site_of[&instruction] = site;
    Metadata* key = ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(context), Sites::key(site)));
    instruction.setMetadata("stem.site", MDNode::get(context, key));
  }
}

}  // namespace stem::pass
