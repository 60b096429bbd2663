// Expression ids beside the values, and pins.
#include "tracer/pass/instrument.h"

#include "trace/raw.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Operator.h>

using namespace llvm;

namespace stem::pass {

bool FunctionInstrumenter::pinned_before(Value* value, Instruction& at) const {
  const auto found = pins_.find(value);
  if (found == pins_.end()) return false;
  const auto here = positions_.find(&at);
  if (here == positions_.end()) return false;
  for (const Instruction* point : found->second) {
    const auto there = positions_.find(point);
    if (there == positions_.end() || point == &at) continue;
    const auto& [block, ordinal] = there->second;
    if (block == here->second.first ? ordinal < here->second.second : dominators_.properlyDominates(block, here->second.first)) return true;
  }
  return false;
}

Value* FunctionInstrumenter::id(Value* value, Instruction& at) {
  if (!symbolic_.may_be(value) || (!region_ && pinned_before(value, at))) return i32(0);
  if (region_) {
    const auto known = region_->find(value);
    return known == region_->end() ? i32(0) : known->second;
  }
  if (pending_.contains(value)) force({value}, at);
  if (AllocaInst* slot = slots_.lookup(value)) {
    IRBuilder<> builder(&at);
    return builder.CreateLoad(builder.getInt32Ty(), slot);
  }
  const auto found = ids_.find(value);
  if (found == ids_.end()) report_fatal_error("stem-cc: bug in the pass: a value has no expression id yet");
  return found->second;
}

void FunctionInstrumenter::set_id(Value* value, Value* id, Instruction& after) {
  ids_[value] = id;
  if (AllocaInst* slot = slots_.lookup(value)) {
    IRBuilder<> builder(&after);
    builder.CreateStore(id, slot);
  }
}

void FunctionInstrumenter::pin_id(Value* id, Value* value, Instruction& at) {
  if (is_concrete(id)) return;
  Value* place = site(at);
  IRBuilder<> builder(&at);
  builder.SetInsertPoint(guard(builder.CreateIsNotNull(id), at));
  abi_.call(builder, "__stem_pin", {id, as_number(builder, value), place});
  if (AllocaInst* slot = slots_.lookup(value)) builder.CreateStore(i32(0), slot);
}

void FunctionInstrumenter::pin(Value* value, Instruction& at) {
  pin_id(id(value, at), value, at);
  pins_[value].push_back(&at);
}

void FunctionInstrumenter::pin_address(Value* pointer, Instruction& at) {
  if (symbolic_.may_be(pointer)) return pin(pointer, at);
  auto* instruction = dyn_cast<Instruction>(pointer);
  if (!instruction || !Symbolic::makes_address(instruction)) return;
  for (Value* operand : instruction->operands())
    if (!isa<Constant>(operand)) pin_address(operand, at);
}

void FunctionInstrumenter::pin_operands(Instruction& at) {
  for (Use& operand : at.operands())
    if (symbolic_.use(operand) == UseKind::Pinned) pin_address(operand.get(), at);
}

Value* FunctionInstrumenter::binary(unsigned operation, unsigned width, Value* a, Value* a_id, Value* b, Value* b_id, Instruction& at) {
  if (is_concrete(a_id) && is_concrete(b_id)) return i32(0);
  IRBuilder<> builder(&at);
  if (region_) return abi_.call(builder, "__stem_binary", {i32(operation), i32(width), a_id, b_id, as_number(builder, a), as_number(builder, b)});
  Value* any = is_concrete(a_id) ? b_id : is_concrete(b_id) ? a_id : builder.CreateOr(a_id, b_id);
  Value* symbolic = builder.CreateIsNotNull(any);
  Instruction* inside = guard(symbolic, at);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  builder.SetInsertPoint(inside);
  Value* made = abi_.call(builder, "__stem_binary", {i32(operation), i32(width), a_id, b_id, as_number(builder, a), as_number(builder, b)});
  builder.SetInsertPoint(&at);
  PHINode* result = builder.CreatePHI(builder.getInt32Ty(), 2);
  result->addIncoming(i32(0), before);
  result->addIncoming(made, inside->getParent());
  return result;
}

Value* FunctionInstrumenter::convert(unsigned operation, unsigned width, unsigned from, Value* id, Instruction& at) {
  if (is_concrete(id)) return id;
  IRBuilder<> builder(&at);
  if (region_) return abi_.call(builder, "__stem_convert", {i32(operation), i32(width), i32(from), i32(0), id});
  Value* symbolic = builder.CreateIsNotNull(id);
  Instruction* inside = guard(symbolic, at);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  builder.SetInsertPoint(inside);
  Value* made = abi_.call(builder, "__stem_convert", {i32(operation), i32(width), i32(from), i32(0), id});
  builder.SetInsertPoint(&at);
  PHINode* result = builder.CreatePHI(builder.getInt32Ty(), 2);
  result->addIncoming(i32(0), before);
  result->addIncoming(made, inside->getParent());
  return result;
}

Value* FunctionInstrumenter::ite(unsigned width, Value* condition, Value* condition_id, Value* a, Value* a_id, Value* b, Value* b_id, Instruction& at) {
  IRBuilder<> builder(&at);
  Value* chosen = is_concrete(a_id) && is_concrete(b_id) ? static_cast<Value*>(i32(0)) : builder.CreateSelect(condition, a_id, b_id);
  if (is_concrete(condition_id)) return chosen;
  if (region_) {
    Value* made = abi_.call(builder, "__stem_ite", {i32(width), condition_id, a_id, b_id, as_number(builder, a), as_number(builder, b)});
    return builder.CreateSelect(builder.CreateIsNotNull(condition_id), made, chosen);
  }
  Value* symbolic = builder.CreateIsNotNull(condition_id);
  Instruction* inside = guard(symbolic, at);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  builder.SetInsertPoint(inside);
  Value* made = abi_.call(builder, "__stem_ite", {i32(width), condition_id, a_id, b_id, as_number(builder, a), as_number(builder, b)});
  builder.SetInsertPoint(&at);
  PHINode* result = builder.CreatePHI(builder.getInt32Ty(), 2);
  result->addIncoming(chosen, before);
  result->addIncoming(made, inside->getParent());
  return result;
}

Value* FunctionInstrumenter::compare(CmpInst::Predicate predicate, Value* a, Value* a_id, Value* b, Value* b_id, Instruction& at) {
  const unsigned width = width_of(a->getType());
  switch (predicate) {
    case CmpInst::ICMP_EQ: return binary(STEM_OP_Eq, width, a, a_id, b, b_id, at);
    case CmpInst::ICMP_NE: return binary(STEM_OP_Ne, width, a, a_id, b, b_id, at);
    case CmpInst::ICMP_ULT: return binary(STEM_OP_Ult, width, a, a_id, b, b_id, at);
    case CmpInst::ICMP_ULE: return binary(STEM_OP_Ule, width, a, a_id, b, b_id, at);
    case CmpInst::ICMP_SLT: return binary(STEM_OP_Slt, width, a, a_id, b, b_id, at);
    case CmpInst::ICMP_SLE: return binary(STEM_OP_Sle, width, a, a_id, b, b_id, at);
    default: return compare(CmpInst::getSwappedPredicate(predicate), b, b_id, a, a_id, at);
  }
}

unsigned operation_of(const BinaryOperator& instruction) {
  switch (instruction.getOpcode()) {
    case Instruction::Add: return STEM_OP_Add;
    case Instruction::Sub: return STEM_OP_Sub;
    case Instruction::Mul: return STEM_OP_Mul;
    case Instruction::UDiv: return STEM_OP_UDiv;
    case Instruction::SDiv: return STEM_OP_SDiv;
    case Instruction::URem: return STEM_OP_URem;
    case Instruction::SRem: return STEM_OP_SRem;
    case Instruction::Shl: return STEM_OP_Shl;
    case Instruction::LShr: return STEM_OP_LShr;
    case Instruction::AShr: return STEM_OP_AShr;
    case Instruction::And: return STEM_OP_And;
    case Instruction::Or: return STEM_OP_Or;
    case Instruction::Xor: return STEM_OP_Xor;
    default: report_fatal_error("stem-cc: bug in the pass: not an integer operation");
  }
}

// The divisor is pinned as any operand outside the model; if it is -1, the dividend must not become the smallest number.
void FunctionInstrumenter::pin_division(BinaryOperator& instruction) {
  if (instruction.getOpcode() != Instruction::SDiv && instruction.getOpcode() != Instruction::SRem) return;
  Value* divisor = instruction.getOperand(1);
  if (auto* constant = dyn_cast<ConstantInt>(divisor); constant && !constant->isMinusOne()) return;
  Value* dividend = id(instruction.getOperand(0), instruction);
  if (is_concrete(dividend)) return;
  IRBuilder<> builder(&instruction);
  Value* both = builder.CreateAnd(builder.CreateICmpEQ(divisor, ConstantInt::getAllOnesValue(divisor->getType())), builder.CreateIsNotNull(dividend));
  Value* place = site(instruction);
  builder.SetInsertPoint(guard(both, instruction));
  abi_.call(builder, "__stem_pin", {dividend, as_number(builder, instruction.getOperand(0)), place});
}

Value* FunctionInstrumenter::offset(GetElementPtrInst& instruction, Instruction& at) {
  MapVector<Value*, APInt> variable;
  APInt constant(64, 0);
  Value* base = instruction.getPointerOperand();
  Value* sum_id = id(base, at);
  if (!instruction.collectOffset(layout_, 64, variable, constant)) report_fatal_error("stem-cc: bug in the pass: an offset of unknown size");
  Value* sum = as_number(base, at);
  for (auto& [index, scale] : variable) {
    const unsigned width = width_of(index->getType());
    Value* index_id = id(index, at);
    if (width < 64) index_id = convert(STEM_OP_SExt, 64, width, index_id, at);
    IRBuilder<> builder(&at);
    Value* wide = builder.CreateSExtOrTrunc(index, builder.getInt64Ty());
    Value* scaled = builder.CreateMul(wide, i64(scale.getZExtValue()));
    if (!scale.isOne()) index_id = binary(STEM_OP_Mul, 64, wide, index_id, i64(scale.getZExtValue()), i32(0), at);
    sum_id = binary(STEM_OP_Add, 64, sum, sum_id, scaled, index_id, at);
    builder.SetInsertPoint(&at);
    sum = builder.CreateAdd(sum, scaled);
  }
  if (!constant.isZero()) sum_id = binary(STEM_OP_Add, 64, sum, sum_id, i64(constant.getZExtValue()), i32(0), at);
  return sum_id;
}

Value* FunctionInstrumenter::extreme(IntrinsicInst& instruction, Instruction& at) {
  Value* a = instruction.getArgOperand(0);
  Value* a_id = id(a, at);
  const unsigned width = width_of(a->getType());
  if (instruction.getIntrinsicID() == Intrinsic::abs) {
    Value* zero = ConstantInt::get(a->getType(), 0);
    Value* condition_id = compare(CmpInst::ICMP_SLT, a, a_id, zero, i32(0), at);
    Value* negated_id = binary(STEM_OP_Sub, width, zero, i32(0), a, a_id, at);
    IRBuilder<> builder(&at);
    Value* condition = builder.CreateICmpSLT(a, zero);
    Value* negated = builder.CreateNeg(a);
    return ite(width, condition, condition_id, negated, negated_id, a, a_id, at);
  }
  Value* b = instruction.getArgOperand(1);
  Value* b_id = id(b, at);
  const CmpInst::Predicate predicate = MinMaxIntrinsic::getPredicate(instruction.getIntrinsicID());
  Value* condition_id = compare(predicate, a, a_id, b, b_id, at);
  IRBuilder<> builder(&at);
  return ite(width, builder.CreateICmp(predicate, a, b), condition_id, a, a_id, b, b_id, at);
}

// The id of an operation's result, made at `at`.
Value* FunctionInstrumenter::compute(Instruction& instruction, Instruction& at) {
  Value* first = instruction.getOperand(0);
  const unsigned width = instruction.getType()->isAggregateType() ? 0 : width_of(instruction.getType());
  if (auto* arithmetic = dyn_cast<BinaryOperator>(&instruction)) {
    const bool second_pinned = symbolic_.use(arithmetic->getOperandUse(1)) == UseKind::Pinned;
    Value* a_id = id(first, at);
    Value* b_id = second_pinned ? i32(0) : id(arithmetic->getOperand(1), at);
    return binary(operation_of(*arithmetic), width, first, a_id, arithmetic->getOperand(1), b_id, at);
  }
  if (auto* comparison = dyn_cast<ICmpInst>(&instruction)) {
    Value* b = comparison->getOperand(1);
    Value* a_id = id(first, at);
    Value* b_id = id(b, at);
    return compare(comparison->getPredicate(), first, a_id, b, b_id, at);
  }
  if (auto* cast = dyn_cast<CastInst>(&instruction)) {
    const unsigned from = width_of(cast->getSrcTy());
    Value* operand = id(first, at);
    if (width == from) return operand;
    if (width < from) return convert(STEM_OP_Trunc, width, from, operand, at);
    return convert(isa<SExtInst>(cast) ? STEM_OP_SExt : STEM_OP_ZExt, width, from, operand, at);
  }
  if (auto* select = dyn_cast<SelectInst>(&instruction)) {
    Value* condition_id = id(select->getCondition(), at);
    Value* a_id = id(select->getTrueValue(), at);
    Value* b_id = id(select->getFalseValue(), at);
    return ite(width, select->getCondition(), condition_id, select->getTrueValue(), a_id, select->getFalseValue(), b_id, at);
  }
  if (auto* element = dyn_cast<GetElementPtrInst>(&instruction)) return offset(*element, at);
  if (auto* extract = dyn_cast<ExtractValueInst>(&instruction)) {
    const auto ids = exchange_ids_.lookup(extract->getAggregateOperand());
    return extract->getIndices()[0] == 0 ? ids.first : ids.second;
  }
  if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
    const bool chooses = intrinsic->getIntrinsicID() == Intrinsic::abs || isa<MinMaxIntrinsic>(intrinsic);
    return chooses ? extreme(*intrinsic, at) : id(first, at);
  }
  if (isa<FreezeInst>(instruction)) return id(first, at);
  report_fatal_error("stem-cc: bug in the pass: an operation has no model");
}

// Operations are put off until their id is needed, so that one test guards them all: if nothing they start from is symbolic,
// all of them are skipped together.
void FunctionInstrumenter::visit_expression(Instruction& instruction) {
  pin_operands(instruction);
  if (!symbolic_.may_be(&instruction)) return;
  if (auto* arithmetic = dyn_cast<BinaryOperator>(&instruction)) pin_division(*arithmetic);
  if (isa<ExtractValueInst>(instruction)) return set_id(&instruction, compute(instruction, instruction), instruction);
  pending_.insert(&instruction);
  if (slots_.contains(&instruction)) force({&instruction}, instruction);
}

// Everything that is still put off and that other blocks use.
void FunctionInstrumenter::force_all(Instruction& at) {
  SmallVector<Value*, 8> wanted;
  for (Value* value : pending_) {
    const BasicBlock* home = positions_.lookup(cast<Instruction>(value)).first;
    const bool elsewhere = any_of(value->users(), [&](User* user) {
      const auto found = positions_.find(cast<Instruction>(user));
      return isa<PHINode>(user) || found == positions_.end() || found->second.first != home;
    });
    if (elsewhere) wanted.push_back(value);
  }
  if (!wanted.empty()) force(wanted, at);
}

void FunctionInstrumenter::force(ArrayRef<Value*> wanted, Instruction& at) {
  SmallVector<Value*, 16> work(wanted.begin(), wanted.end());
  SmallSetVector<Instruction*, 16> members;
  SmallSetVector<Value*, 8> leaves;
  while (!work.empty()) {
    auto* member = cast<Instruction>(work.pop_back_val());
    if (!members.insert(member)) continue;
    for (Value* operand : member->operands()) {
      if (!symbolic_.may_be(operand)) continue;
      if (pending_.contains(operand) && !pinned_before(operand, at)) work.push_back(operand);
      else leaves.insert(operand);
    }
  }
  std::vector<Instruction*> order(members.begin(), members.end());
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return positions_.lookup(a).second < positions_.lookup(b).second; });
  for (Instruction* member : order) pending_.remove(member);

  Value* any = nullptr;
  DenseMap<Value*, Value*> outside;
  for (Value* leaf : leaves) {
    Value* known = id(leaf, at);
    outside[leaf] = known;
    if (is_concrete(known)) continue;
    IRBuilder<> builder(&at);
    any = any ? builder.CreateOr(any, known) : known;
  }
  if (!any) {
    for (Instruction* member : order) set_id(member, i32(0), at);
    return;
  }
  IRBuilder<> builder(&at);
  Value* symbolic = builder.CreateIsNotNull(any);
  Instruction* inside = guard(symbolic, at);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  region_ = &outside;
  for (Instruction* member : order) outside[member] = compute(*member, *inside);
  region_ = nullptr;
  for (Instruction* member : order) {
    Value* made = outside[member];
    builder.SetInsertPoint(&at);
    Value* result = made;
    if (!isa<Constant>(made)) {
      PHINode* ids = builder.CreatePHI(builder.getInt32Ty(), 2);
      ids->addIncoming(i32(0), before);
      ids->addIncoming(made, inside->getParent());
      result = ids;
    }
    outside[member] = result;
  }
  for (Instruction* member : order) set_id(member, outside[member], at);
}

void FunctionInstrumenter::finish_phis() {
  for (auto& [phi, ids] : phis_) {
    DenseMap<BasicBlock*, Value*> done;  // several edges from one block carry one value
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      BasicBlock* from = phi->getIncomingBlock(i);
      Value*& incoming = done[from];
      if (!incoming) incoming = id(phi->getIncomingValue(i), *from->getTerminator());
      ids->addIncoming(incoming, from);
    }
  }
}

}  // namespace stem::pass
