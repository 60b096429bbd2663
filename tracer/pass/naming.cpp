#include "tracer/pass/naming.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugProgramInstruction.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

using namespace llvm;

namespace stem::pass {

namespace {

constexpr int kMaxDepth = 6;
constexpr size_t kMaxText = 120;

// An access path under construction: a variable or pointer, then what is still to be walked.
struct Walk {
  std::string text;
  std::string path;
  TypeRef type;
  bool through_pointer = false;  // `text` is a pointer: the next step is -> or * or []
  bool is_this = false;
  int64_t offset = 0;
  SmallVector<std::pair<std::string, uint64_t>, 2> indices;  // text and scale of variable parts

  void index(const std::string& what) {
    text = (is_this ? "this" : text) + "[" + what + "]";
    path += "[]";
    through_pointer = is_this = false;
  }

  void member(StringRef name) {
    if (name.empty()) {  // base class, anonymous struct
      return;
    }
    if (is_this) text = name.str();
    else text += (through_pointer ? "->" : ".") + name.str();
    path += "." + name.str();
    through_pointer = is_this = false;
  }

  // The text of the variable index whose scale is `stride`, with `constant` elements added; "" if there is none.
  std::string take_index(uint64_t stride, int64_t constant) {
    for (auto it = indices.begin(); it != indices.end(); ++it) {
      if (it->second != stride) continue;
      std::string what = it->first.empty() ? "?" : it->first;
      indices.erase(it);
      if (constant > 0) what += " + " + std::to_string(constant);
      if (constant < 0) what += " - " + std::to_string(-constant);
      return what;
    }
    return {};
  }
};

// The member at an offset: the one whose size fits the access best, so that a union shows the arm that was used.
const DIDerivedType* member_at(const DICompositeType* record, uint64_t offset, uint64_t bytes) {
  const DIDerivedType* best = nullptr;
  uint64_t best_size = 0;
  for (const DINode* node : record->getElements()) {
    const auto* member = dyn_cast_or_null<DIDerivedType>(node);
    if (!member || member->isStaticMember()) continue;
    if (member->getTag() != dwarf::DW_TAG_member && member->getTag() != dwarf::DW_TAG_inheritance) continue;
    uint64_t begin = member->getOffsetInBits() / 8;
    uint64_t size = size_of({member->getBaseType(), 0});
    if (member->isBitField()) {
      const uint64_t end = (member->getOffsetInBits() + member->getSizeInBits() + 7) / 8;
      if (begin < offset + bytes && offset < end && !best) return member;
      continue;
    }
    const bool open = size == 0 && is_array({member->getBaseType(), 0});
    if (offset < begin || (!open && offset - begin >= size)) continue;
    const bool better = !best || (best_size != bytes && size == bytes) || (best_size < bytes && size > best_size);
    if (better) best = member, best_size = size;
  }
  return best;
}

void index_pointer(Walk& walk) {
  const uint64_t size = size_of(walk.type);
  if (size == 0) return;
  const int64_t whole = walk.offset >= 0 ? walk.offset / static_cast<int64_t>(size) : -((-walk.offset + static_cast<int64_t>(size) - 1) / static_cast<int64_t>(size));
  const std::string what = walk.take_index(size, whole);
  if (!what.empty()) walk.index(what);
  else if (whole != 0) walk.index(std::to_string(whole));
  else return;
  walk.offset -= whole * static_cast<int64_t>(size);
}

void descend(Walk& walk, uint64_t bytes) {
  for (int depth = 0; depth < 16 && walk.type && walk.offset >= 0; ++depth) {
    walk.type = strip(walk.type);
    const bool anything_left = walk.offset > 0 || !walk.indices.empty() || size_of(walk.type) > bytes;
    if (const DICompositeType* record = record_of(walk.type)) {
      if (!anything_left && bytes > 8) return;
      const DIDerivedType* member = member_at(record, static_cast<uint64_t>(walk.offset), bytes);
      if (!member) return;
      walk.member(member->getTag() == dwarf::DW_TAG_inheritance ? StringRef() : member->getName());
      walk.offset -= static_cast<int64_t>(member->getOffsetInBits() / 8);
      walk.type = strip({member->getBaseType(), 0});
      if (member->isBitField()) return;
    } else if (is_array(walk.type)) {
      if (!anything_left && bytes > 8) return;
      uint64_t count = 0;
      const TypeRef element = element_of(walk.type, count);
      const uint64_t stride = size_of(element);
      if (stride == 0) return;
      const int64_t whole = walk.offset / static_cast<int64_t>(stride);
      const std::string what = walk.take_index(stride, whole);
      if (walk.through_pointer) {  // (*p)[i]
        walk.text = "(*" + walk.text + ")";
        walk.through_pointer = false;
      }
      walk.index(what.empty() ? std::to_string(whole) : what);
      walk.offset -= whole * static_cast<int64_t>(stride);
      walk.type = element;
    } else {
      return;
    }
  }
}

}  // namespace

Naming::Naming(Function& function, const DataLayout& layout) : layout_(layout) {
  for (Instruction& instruction : instructions(function)) {
    for (DbgVariableRecord& record : filterDbgVars(instruction.getDbgRecordRange())) {
      DILocalVariable* variable = record.getVariable();
      if (record.isDbgAssign() && record.getAddress() && isa<AllocaInst>(record.getAddress()) && record.getAddressExpression()->getNumElements() == 0)
        variables_.try_emplace(record.getAddress(), variable);
      const DIExpression* expression = record.getExpression();
      if (record.hasArgList() || (expression && expression->getNumElements() != 0)) continue;
      Value* location = record.getNumVariableLocationOps() == 1 ? record.getVariableLocationOp(0) : nullptr;
      if (!location || isa<Constant>(location)) continue;
      auto [it, fresh] = variables_.try_emplace(location, variable);
      // A value handed to an inlined or artificial name keeps the name that the function itself gave it.
      if (!fresh && it->second->isArtificial() && !variable->isArtificial()) it->second = variable;
    }
    if (const auto* declare = dyn_cast<DbgDeclareInst>(&instruction))
      if (declare->getAddress()) variables_.try_emplace(declare->getAddress(), declare->getVariable());
    if (const auto* value = dyn_cast<DbgValueInst>(&instruction))
      if (value->getNumVariableLocationOps() == 1 && value->getExpression()->getNumElements() == 0 && value->getValue(0) && !isa<Constant>(value->getValue(0)))
        variables_.try_emplace(value->getValue(0), value->getVariable());
  }
}

DILocalVariable* Naming::variable(Value* value) const { return variables_.lookup(value); }

static const DIGlobalVariable* global_variable(const GlobalVariable* global) {
  SmallVector<DIGlobalVariableExpression*, 1> expressions;
  global->getDebugInfo(expressions);
  return expressions.empty() ? nullptr : expressions.front()->getVariable();
}

Named Naming::value(Value* value, int depth) {
  if (depth > kMaxDepth) return {};
  if (DILocalVariable* variable = variables_.lookup(value); variable && !isa<AllocaInst>(value)) return {variable->getName().str(), "", {variable->getType(), 0}};
  if (const auto* number = dyn_cast<ConstantInt>(value)) {
    return {number->getBitWidth() <= 64 ? std::to_string(number->getSExtValue()) : "", "", {}};
  }
  if (auto* load = dyn_cast<LoadInst>(value)) return memory(load->getPointerOperand(), layout_.getTypeStoreSize(load->getType()), depth + 1);
  if (auto* cast = dyn_cast<CastInst>(value)) return this->value(cast->getOperand(0), depth + 1);
  if (auto* freeze = dyn_cast<FreezeInst>(value)) return this->value(freeze->getOperand(0), depth + 1);
  if (auto* call = dyn_cast<CallBase>(value)) {
    if (const Function* callee = call->getCalledFunction(); callee && !callee->isIntrinsic()) return {function_name(*callee) + "()", "", {}};
    return {};
  }
  if (auto* binary = dyn_cast<BinaryOperator>(value)) {
    const char* sign = nullptr;
    switch (binary->getOpcode()) {
      case Instruction::Add: sign = " + "; break;
      case Instruction::Sub: sign = " - "; break;
      case Instruction::Mul: sign = " * "; break;
      case Instruction::And: sign = " & "; break;
      case Instruction::URem:
      case Instruction::SRem: sign = " % "; break;
      default: return {};
    }
    auto* constant = dyn_cast<ConstantInt>(binary->getOperand(1));
    const Named a = this->value(binary->getOperand(0), depth + 1);
    if (a.text.empty()) return {};
    if (constant && constant->isNegative() && binary->getOpcode() == Instruction::Add && constant->getBitWidth() <= 64) return {a.text + " - " + std::to_string(-constant->getSExtValue()), "", a.type};
    const Named b = this->value(binary->getOperand(1), depth + 1);
    if (b.text.empty() || a.text.size() + b.text.size() > kMaxText) return {};
    return {a.text + sign + b.text, "", a.type};
  }
  if (auto* phi = dyn_cast<PHINode>(value)) {
    for (Value* incoming : phi->incoming_values())
      if (DILocalVariable* variable = variables_.lookup(incoming)) return {variable->getName().str(), "", {variable->getType(), 0}};
  }
  return {};
}

Named Naming::memory(Value* pointer, uint64_t bytes, int depth) {
  if (depth > kMaxDepth) return {};
  Walk walk;
  Value* base = pointer;
  for (int i = 0; i < 32; ++i) {
    if (variables_.count(base) && !isa<AllocaInst>(base) && base != pointer) break;  // a pointer variable of its own
    if (auto* gep = dyn_cast<GEPOperator>(base)) {
      MapVector<Value*, APInt> variable;
      APInt constant(layout_.getIndexTypeSizeInBits(gep->getType()), 0);
      if (!gep->collectOffset(layout_, constant.getBitWidth(), variable, constant)) return {};
      walk.offset += constant.getSExtValue();
      for (auto& [index, scale] : variable) walk.indices.push_back({value(index, depth + 1).text, scale.getZExtValue()});
      base = gep->getPointerOperand();
    } else if (isa<BitCastOperator>(base) || isa<AddrSpaceCastOperator>(base)) {
      base = cast<Operator>(base)->getOperand(0);
    } else if (auto* call = dyn_cast<IntrinsicInst>(base); call && (call->getIntrinsicID() == Intrinsic::threadlocal_address || call->getIntrinsicID() == Intrinsic::launder_invariant_group)) {
      base = call->getArgOperand(0);
    } else {
      break;
    }
  }
  if (auto* global = dyn_cast<GlobalVariable>(base)) {
    if (const DIGlobalVariable* variable = global_variable(global)) {
      walk.text = variable->getName().str();
      walk.type = strip({variable->getType(), 0});
    } else {
      walk.text = demangle(global->getName());
    }
  } else if (DILocalVariable* variable = variables_.lookup(base); variable && (isa<AllocaInst>(base) || (isa<Argument>(base) && cast<Argument>(base)->hasByValAttr()))) {
    walk.text = variable->getName().str();
    walk.type = strip({variable->getType(), 0});
  } else {
    const Named named = value(base, depth + 1);
    if (named.text.empty()) return {};
    bool reference = false;
    walk.text = named.text;
    walk.type = pointee_of(named.type, reference);
    walk.is_this = named.text == "this";
    walk.through_pointer = !reference;
    if (!walk.type && is_array(named.type)) {  // a pointer that began as an array
      walk.type = strip(named.type);
      walk.through_pointer = false;
    } else if (walk.through_pointer) {
      index_pointer(walk);
    }
  }
  descend(walk, bytes);
  for (const auto& [what, scale] : walk.indices) walk.index(what.empty() ? "?" : what);  // not explained by the type
  if (walk.through_pointer) walk.text = "*" + walk.text;
  if (walk.text.size() > kMaxText) walk.text.resize(kMaxText);
  return {walk.text, walk.path, walk.type};
}

TypeRef Naming::pointee(Value* pointer) {
  bool reference = false;
  if (DILocalVariable* variable = variables_.lookup(pointer)) return pointee_of({variable->getType(), 0}, reference);
  for (User* user : pointer->users()) {
    if (auto* store = dyn_cast<StoreInst>(user); store && store->getValueOperand() == pointer) {
      if (const TypeRef type = pointee_of(memory(store->getPointerOperand(), 8, 1).type, reference)) return type;
    } else if (auto* phi = dyn_cast<PHINode>(user)) {
      if (DILocalVariable* variable = variables_.lookup(phi)) return pointee_of({variable->getType(), 0}, reference);
    } else if (auto* call = dyn_cast<CallBase>(user); call && call->arg_size() > 0 && call->getArgOperand(0) == pointer) {
      // A constructor: the type of its `this`.
      const Function* callee = call->getCalledFunction();
      const DISubprogram* subprogram = callee ? callee->getSubprogram() : nullptr;
      const DISubroutineType* signature = subprogram ? subprogram->getType() : nullptr;
      if (!signature || signature->getTypeArray().size() < 2) continue;
      DIType* self = signature->getTypeArray()[1];
      if (self && self->isArtificial()) return pointee_of({self, 0}, reference);
    }
  }
  return {};
}

}  // namespace stem::pass
