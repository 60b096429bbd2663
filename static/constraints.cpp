#include "static/constraints.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>

namespace stem::analysis {

namespace {

enum class Effect : uint8_t {
  Unknown,
  None,
  Allocates,
  Reallocates,
  ReturnsArg0,
  Copies,
  Duplicates,
  CreatesThread,
  StartsThread,
  StartsState,
  JoinsThread,
  StoresResult,
  CallsBack,
};

Effect effect_of(llvm::StringRef name) {
  static const llvm::StringMap<Effect> table = [] {
    llvm::StringMap<Effect> map;
#define STEM_EXTERNAL(name, effect) map[#name] = Effect::effect;
#include "static/externals.def"
    return map;
  }();
  auto entry = table.find(name);
  return entry == table.end() ? Effect::Unknown : entry->second;
}

// Pointers travel in pointers, in 64-bit integers, and in aggregates of them.
bool may_carry(llvm::Type* type) {
  if (type->isPointerTy() || type->isIntegerTy(64)) return true;
  return type->isAggregateType() || type->isVectorTy();
}

bool is_scalar(llvm::Type* type) { return !type->isAggregateType() && !type->isVectorTy(); }

}  // namespace

ConstraintBuilder::ConstraintBuilder(PointerAnalysis& analysis,
                                     const std::map<const llvm::Value*, llvm::Type*>& heap_types)
    : analysis_(analysis), solver_(*analysis.solver_), objects_(*analysis.objects_), heap_types_(heap_types) {
  nothing_ = solver_.add_node();
  external_ = solver_.add_node();
  solver_.add_base(external_, objects_.location(objects_.external(), 0));
  solver_.add_store(external_, external_);
  escaped_ = solver_.add_node();
  solver_.add_load(external_, escaped_);
}

void ConstraintBuilder::build(const llvm::Module& module) {
  layout_ = &module.getDataLayout();
  // Slots of a virtual table are told apart: untyped objects keep their offsets.
  for (const llvm::GlobalVariable& global : module.globals())
    objects_.add(ObjectKind::Global, &global, global.getName().starts_with("_ZTV") ? nullptr : global.getValueType());
  for (const llvm::Function& function : module) objects_.add(ObjectKind::Function, &function, nullptr);
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (global.hasInitializer()) initialise(node(&global), global.getInitializer(), 0);
    else solver_.add_store(whole_pointer(&global), external_);
  }
  for (const llvm::Function& function : module) visit(const_cast<llvm::Function&>(function));
  // Code we do not see may call every function it was given, with every pointer it was given.
  pending_.push_back({nullptr, How::Escaped, nothing_});
  solver_.add_call(escaped_, static_cast<uint32_t>(pending_.size() - 1));
  // main's arguments come from outside.
  if (const llvm::Function* entry = module.getFunction("main"))
    for (const llvm::Argument& argument : entry->args())
      if (may_carry(argument.getType())) solver_.add_copy(external_, node(&argument));
}

NodeId ConstraintBuilder::node(const llvm::Value* value) {
  if (!may_carry(value->getType())) return nothing_;
  auto known = analysis_.nodes_.find(value);
  if (known != analysis_.nodes_.end()) return known->second;
  NodeId id;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(value)) {
    id = constant_node(constant);
  } else {
    id = solver_.add_node();
  }
  return analysis_.nodes_.emplace(value, id).first->second;
}

NodeId ConstraintBuilder::constant_node(const llvm::Constant* constant) {
  if (auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(constant)) return node(alias->getAliasee());
  if (llvm::isa<llvm::GlobalObject>(constant)) {
    ObjectId object = objects_.find(constant);
    NodeId id = solver_.add_node();
    if (object != UINT32_MAX) solver_.add_base(id, objects_.location(object, 0));
    return id;
  }
  if (llvm::isa<llvm::ConstantData>(constant)) return nothing_;
  NodeId id = solver_.add_node();
  if (auto* gep = llvm::dyn_cast<llvm::GEPOperator>(constant)) {
    move_gep(*gep, id);
  } else {
    for (const llvm::Use& operand : constant->operands()) solver_.add_copy(node(operand.get()), id);
  }
  return id;
}

NodeId ConstraintBuilder::whole_pointer(const llvm::Value* pointer) {
  NodeId id = solver_.add_node();
  solver_.add_move(node(pointer), id, 0, {1});
  solver_.add_copy(node(pointer), id);
  return id;
}

void ConstraintBuilder::move_gep(const llvm::GEPOperator& gep, NodeId to) {
  unsigned bits = layout_->getIndexSizeInBits(gep.getPointerAddressSpace());
  llvm::MapVector<llvm::Value*, llvm::APInt> variable;
  llvm::APInt constant(bits, 0);
  std::vector<uint64_t> strides;
  if (!gep.collectOffset(*layout_, bits, variable, constant)) {
    strides.push_back(1);
  } else {
    for (const auto& [index, stride] : variable) strides.push_back(stride.getZExtValue());
  }
  solver_.add_move(node(gep.getPointerOperand()), to, constant.getSExtValue(), strides);
}

void ConstraintBuilder::initialise(NodeId base, const llvm::Constant* constant, uint64_t offset) {
  if (llvm::isa<llvm::ConstantData>(constant)) return;
  if (auto* aggregate = llvm::dyn_cast<llvm::ConstantAggregate>(constant)) {
    for (unsigned i = 0; i < aggregate->getNumOperands(); ++i) {
      uint64_t step = 0;
      if (auto* structure = llvm::dyn_cast<llvm::StructType>(aggregate->getType()))
        step = layout_->getStructLayout(structure)->getElementOffset(i).getKnownMinValue();
      else
        step = i * layout_->getTypeAllocSize(aggregate->getOperand(i)->getType()).getKnownMinValue();
      initialise(base, aggregate->getOperand(i), offset + step);
    }
    return;
  }
  NodeId target = solver_.add_node();
  solver_.add_move(base, target, static_cast<int64_t>(offset), {});
  solver_.add_store(target, node(constant));
}

void ConstraintBuilder::visitAllocaInst(llvm::AllocaInst& instruction) {
  ObjectId object = objects_.add(ObjectKind::Stack, &instruction, instruction.getAllocatedType());
  solver_.add_base(node(&instruction), objects_.location(object, 0));
}

void ConstraintBuilder::visitLoadInst(llvm::LoadInst& instruction) {
  node(instruction.getPointerOperand());  // asked for later even if no pointer is loaded
  if (!may_carry(instruction.getType())) return;
  bool scalar = is_scalar(instruction.getType());
  solver_.add_load(scalar ? node(instruction.getPointerOperand()) : whole_pointer(instruction.getPointerOperand()),
                   node(&instruction));
}

void ConstraintBuilder::visitStoreInst(llvm::StoreInst& instruction) {
  node(instruction.getPointerOperand());
  llvm::Value* value = instruction.getValueOperand();
  if (!may_carry(value->getType())) return;
  bool scalar = is_scalar(value->getType());
  solver_.add_store(scalar ? node(instruction.getPointerOperand()) : whole_pointer(instruction.getPointerOperand()),
                    node(value));
}

void ConstraintBuilder::visitGetElementPtrInst(llvm::GetElementPtrInst& instruction) {
  move_gep(*llvm::cast<llvm::GEPOperator>(&instruction), node(&instruction));
}

void ConstraintBuilder::visitAtomicCmpXchgInst(llvm::AtomicCmpXchgInst& instruction) {
  solver_.add_load(node(instruction.getPointerOperand()), node(&instruction));
  solver_.add_store(node(instruction.getPointerOperand()), node(instruction.getNewValOperand()));
}

void ConstraintBuilder::visitAtomicRMWInst(llvm::AtomicRMWInst& instruction) {
  node(instruction.getPointerOperand());
  if (!may_carry(instruction.getType())) return;
  solver_.add_load(node(instruction.getPointerOperand()), node(&instruction));
  solver_.add_store(node(instruction.getPointerOperand()), node(instruction.getValOperand()));
}

void ConstraintBuilder::visitBinaryOperator(llvm::BinaryOperator& instruction) {
  if (!may_carry(instruction.getType())) return;
  auto* right = llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(1));
  if (right && instruction.getOpcode() == llvm::Instruction::Add) {
    solver_.add_move(node(instruction.getOperand(0)), node(&instruction), right->getSExtValue(), {});
    return;
  }
  for (const llvm::Use& operand : instruction.operands())
    solver_.add_move(node(operand.get()), node(&instruction), 0, {1});
}

void ConstraintBuilder::visitReturnInst(llvm::ReturnInst& instruction) {
  if (const llvm::Value* value = instruction.getReturnValue())
    if (may_carry(value->getType())) solver_.add_copy(node(value), result_node(*instruction.getFunction()));
}

void ConstraintBuilder::visitLandingPadInst(llvm::LandingPadInst& instruction) {
  solver_.add_copy(external_, node(&instruction));
}

void ConstraintBuilder::visitVAArgInst(llvm::VAArgInst& instruction) {
  solver_.add_copy(variadic_node(*instruction.getFunction()), node(&instruction));
}

void ConstraintBuilder::visitInstruction(llvm::Instruction& instruction) {
  if (instruction.getType()->isVoidTy() || !may_carry(instruction.getType())) return;
  for (const llvm::Use& operand : instruction.operands())
    if (!llvm::isa<llvm::BasicBlock>(operand.get())) solver_.add_copy(node(operand.get()), node(&instruction));
}

NodeId ConstraintBuilder::result_node(const llvm::Function& function) {
  auto [entry, fresh] = results_.try_emplace(&function, 0);
  if (fresh) entry->second = solver_.add_node();
  return entry->second;
}

NodeId ConstraintBuilder::variadic_node(const llvm::Function& function) {
  auto [entry, fresh] = variadics_.try_emplace(&function, 0);
  if (fresh) entry->second = solver_.add_node();
  return entry->second;
}

void ConstraintBuilder::visitCallBase(llvm::CallBase& call) {
  if (call.isInlineAsm()) return unknown_call(call);
  if (auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(&call)) {
    solver_.add_copy_memory(node(copy->getDest()), node(copy->getSource()));
    return;
  }
  for (const llvm::Use& argument : call.args()) node(argument.get());
  const llvm::Function* function = llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
  if (!function) return call_pointer(node(call.getCalledOperand()), call, How::Call, nothing_);
  if (function->isIntrinsic()) return visitInstruction(call);
  analysis_.callees_[&call].insert(function);
  if (function->isDeclaration()) return external_call(call, function->getName());
  link(call, *function);
}

void ConstraintBuilder::call_pointer(NodeId pointer, const llvm::CallBase& call, How how, NodeId argument) {
  pending_.push_back({&call, how, argument});
  solver_.add_call(pointer, static_cast<uint32_t>(pending_.size() - 1));
}

void ConstraintBuilder::link(const llvm::CallBase& call, const llvm::Function& function) {
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    const llvm::Value* actual = call.getArgOperand(i);
    if (!may_carry(actual->getType())) continue;
    NodeId formal = i < function.arg_size() ? node(function.getArg(i)) : variadic_node(function);
    solver_.add_copy(node(actual), formal);
  }
  if (may_carry(call.getType())) solver_.add_copy(result_node(function), node(&call));
}

void ConstraintBuilder::resolve(uint32_t index, const llvm::Function* function) {
  Pending pending = pending_[index];
  bool fresh = pending.call && analysis_.callees_[pending.call].insert(function).second;
  switch (pending.how) {
    case How::Call:
      if (!fresh) return;
      if (function->isDeclaration()) external_call(const_cast<llvm::CallBase&>(*pending.call), function->getName());
      else link(*pending.call, *function);
      return;
    case How::Thread: {
      if (function->isDeclaration()) return;  // nothing of ours runs there
      for (const Creation& known : analysis_.creations_)
        if (known.call == pending.call && known.entry == function) return;
      analysis_.creations_.push_back({pending.call, function});
      if (function->arg_size() > 0) solver_.add_copy(pending.argument, node(function->getArg(0)));
      return;
    }
    case How::CallBack:
      if (!fresh) return;
      for (const llvm::Argument& argument : function->args()) {
        if (!may_carry(argument.getType())) continue;
        for (const llvm::Use& actual : pending.call->args()) solver_.add_copy(node(actual.get()), node(&argument));
      }
      return;
    case How::Escaped:
      for (const llvm::Argument& argument : function->args())
        if (may_carry(argument.getType())) solver_.add_copy(escaped_, node(&argument));
      return;
  }
}

NodeId ConstraintBuilder::fresh_object(llvm::CallBase& call) {
  auto hint = heap_types_.find(&call);
  ObjectId object = objects_.add(ObjectKind::Heap, &call, hint == heap_types_.end() ? nullptr : hint->second);
  NodeId id = solver_.add_node();
  solver_.add_base(id, objects_.location(object, 0));
  return id;
}

void ConstraintBuilder::unknown_call(llvm::CallBase& call) {
  for (const llvm::Use& argument : call.args()) {
    if (!may_carry(argument->getType())) continue;
    solver_.add_store(external_, node(argument.get()));
    solver_.add_store(whole_pointer(argument.get()), external_);
  }
  if (may_carry(call.getType())) solver_.add_copy(escaped_, node(&call));
}

void ConstraintBuilder::external_call(llvm::CallBase& call, llvm::StringRef name) {
  auto argument = [&](unsigned i) { return i < call.arg_size() ? node(call.getArgOperand(i)) : nothing_; };
  switch (effect_of(name)) {
    case Effect::Unknown: return unknown_call(call);
    case Effect::None: return;
    case Effect::Allocates:
    case Effect::Duplicates: solver_.add_copy(fresh_object(call), node(&call)); return;
    case Effect::Reallocates:
      solver_.add_copy(fresh_object(call), node(&call));
      solver_.add_copy_memory(node(&call), argument(0));
      return;
    case Effect::ReturnsArg0: solver_.add_move(argument(0), node(&call), 0, {1}); return;
    case Effect::Copies:
      solver_.add_copy_memory(argument(0), argument(1));
      solver_.add_copy(argument(0), node(&call));
      return;
    case Effect::CreatesThread: return call_pointer(argument(2), call, How::Thread, argument(3));
    case Effect::StartsThread: return call_pointer(argument(1), call, How::Thread, argument(2));
    case Effect::StartsState: {
      NodeId state = solver_.add_node(), table = solver_.add_node(), slot = solver_.add_node(), run = solver_.add_node();
      solver_.add_load(argument(1), state);
      solver_.add_load(state, table);
      solver_.add_move(table, slot, 16, {});
      solver_.add_load(slot, run);
      return call_pointer(run, call, How::Thread, state);
    }
    case Effect::JoinsThread: analysis_.joins_.insert(&call); return;
    case Effect::StoresResult: solver_.add_store(argument(0), fresh_object(call)); return;
    case Effect::CallsBack:
      for (const llvm::Use& actual : call.args())
        if (may_carry(actual->getType())) call_pointer(node(actual.get()), call, How::CallBack, nothing_);
      return;
  }
}

}  // namespace stem::analysis
