#include "static/constraints.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>

#include "static/library.h"

namespace stem::analysis {

namespace {

// Pointers travel in pointers, in 64-bit integers, and in aggregates of them.
bool may_carry(llvm::Type* type) {
  if (type->isPointerTy() || type->isIntegerTy(64) || type->isIntegerTy(128)) return true;
  return type->isAggregateType() || type->isVectorTy();
}

// The virtual table of std::thread's states: what is in there is a destructor that does nothing. Everything else that
// only libraries define may hold and lead to anything.
constexpr llvm::StringRef kThreadState = "_ZTVNSt6thread6_StateE";

bool is_scalar(llvm::Type* type) { return !type->isAggregateType() && !type->isVectorTy(); }

// Constants without a pointer inside are written by nobody and lead nowhere: they need no object.
bool is_plain_constant(const llvm::GlobalVariable& global) {
  return global.isConstant() && global.hasInitializer() && llvm::isa<llvm::ConstantData>(global.getInitializer());
}

}  // namespace

ConstraintBuilder::ConstraintBuilder(PointerAnalysis& analysis, const HeapTypes& heap_types)
    : analysis_(analysis), solver_(*analysis.solver_), objects_(*analysis.objects_), heap_types_(heap_types) {
  nothing_ = solver_.add_node();
  outside_ = solver_.add_node();
  solver_.add_base(outside_, objects_.location(objects_.external(), 0));
  solver_.add_store(outside_, outside_);
  solver_.expose(objects_.external());
  for (NodeId* node : {&results_of_threads_, &specific_, &handlers_, &scanned_}) *node = solver_.add_node();
}

void ConstraintBuilder::build(const llvm::Module& module) {
  layout_ = &module.getDataLayout();
  // Slots of a virtual table are told apart: untyped objects keep their offsets.
  for (const llvm::GlobalVariable& global : module.globals())
    if (!is_plain_constant(global))
      objects_.add(ObjectKind::Global, &global, global.getName().starts_with("_ZTV") ? nullptr : global.getValueType());
  for (const llvm::Function& function : module) objects_.add(ObjectKind::Function, &function, nullptr);
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (is_plain_constant(global) || global.getName().starts_with("llvm.")) continue;
    if (global.hasInitializer())
      initialise(node(&global), global.getInitializer(), 0);
    else if (global.getName() != kThreadState)
      solver_.expose(objects_.find(&global));
  }
  for (const llvm::Function& function : module) visit(const_cast<llvm::Function&>(function));
  // main's arguments come from outside.
  if (const llvm::Function* entry = module.getFunction("main"))
    for (const llvm::Argument& argument : entry->args())
      if (may_carry(argument.getType())) solver_.add_copy(outside_, node(&argument));
}

NodeId ConstraintBuilder::node(const llvm::Value* value) {
  if (!may_carry(value->getType())) return nothing_;
  auto known = analysis_.nodes_.find(value);
  if (known != analysis_.nodes_.end()) return known->second;
  NodeId id;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(value)) {
    id = constant_node(constant);
  } else if (auto* cast = llvm::dyn_cast<llvm::CastInst>(value)) {
    id = node(cast->getOperand(0));
  } else if (auto* freeze = llvm::dyn_cast<llvm::FreezeInst>(value)) {
    id = node(freeze->getOperand(0));
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
    if (llvm::isa<llvm::GlobalIFunc>(constant)) solver_.add_unknown(id);
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

NodeId ConstraintBuilder::whole_pointer(NodeId pointer) {
  NodeId id = solver_.add_node();
  solver_.add_move(pointer, id, 0, {1}, false);
  solver_.add_copy(pointer, id);
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
  if (strides.empty() && constant.isZero()) return solver_.add_copy(node(gep.getPointerOperand()), to);
  solver_.add_move(node(gep.getPointerOperand()), to, constant.getSExtValue(), strides,
                   gep.getSourceElementType()->isArrayTy() || gep.getNumIndices() > 2);
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
  solver_.add_move(base, target, static_cast<int64_t>(offset), {}, true);
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
  solver_.add_load(
      scalar ? node(instruction.getPointerOperand()) : whole_pointer(node(instruction.getPointerOperand())),
      node(&instruction));
}

void ConstraintBuilder::visitStoreInst(llvm::StoreInst& instruction) {
  node(instruction.getPointerOperand());
  llvm::Value* value = instruction.getValueOperand();
  if (!may_carry(value->getType())) return;
  bool scalar = is_scalar(value->getType());
  solver_.add_store(
      scalar ? node(instruction.getPointerOperand()) : whole_pointer(node(instruction.getPointerOperand())),
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
    solver_.add_move(node(instruction.getOperand(0)), node(&instruction), right->getSExtValue(), {}, false);
    return;
  }
  for (const llvm::Use& operand : instruction.operands())
    solver_.add_move(node(operand.get()), node(&instruction), 0, {1}, false);
}

void ConstraintBuilder::visitReturnInst(llvm::ReturnInst& instruction) {
  if (const llvm::Value* value = instruction.getReturnValue())
    if (may_carry(value->getType())) solver_.add_copy(node(value), result_node(*instruction.getFunction()));
}

void ConstraintBuilder::visitLandingPadInst(llvm::LandingPadInst& instruction) {
  solver_.add_unknown(node(&instruction));
}

void ConstraintBuilder::visitVAArgInst(llvm::VAArgInst& instruction) {
  solver_.add_copy(variadic_node(*instruction.getFunction()), node(&instruction));
}

void ConstraintBuilder::visitInstruction(llvm::Instruction& instruction) {
  if (instruction.getType()->isVoidTy() || !may_carry(instruction.getType())) return;
  if (llvm::isa<llvm::CastInst>(instruction) || llvm::isa<llvm::FreezeInst>(instruction)) {
    // One node with the operand. What cannot carry a pointer by itself (a double) may still be made into one.
    if (!may_carry(instruction.getOperand(0)->getType())) return;
    node(&instruction);
    return;
  }
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
  const llvm::Function* function =
      llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
  if (!function) return call_pointer(node(call.getCalledOperand()), call, How::Call, nothing_);
  switch (function->getIntrinsicID()) {
    case llvm::Intrinsic::not_intrinsic:
      break;
    case llvm::Intrinsic::vastart:
      return start_variadic(call);
    case llvm::Intrinsic::vacopy:
      return solver_.add_copy_memory(node(call.getArgOperand(0)), node(call.getArgOperand(1)));
    default:
      return visitInstruction(call);
  }
  analysis_.callees_[&call].insert(function);
  if (function->isDeclaration()) return external_call(call, function->getName());
  link(call, *function);
}

// The list points to a piece of memory that holds what the caller gave beyond the named parameters.
void ConstraintBuilder::start_variadic(llvm::CallBase& call) {
  ObjectId object = objects_.add(ObjectKind::Stack, &call, nullptr);
  NodeId area = solver_.add_node();
  solver_.add_base(area, objects_.any(object));
  solver_.add_store(area, variadic_node(*call.getFunction()));
  solver_.add_store(whole_pointer(node(call.getArgOperand(0))), area);
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

void ConstraintBuilder::called(uint32_t index, ObjectId object) {
  const Pending pending = pending_[index];
  auto* function = llvm::cast<llvm::Function>(objects_.object(object).value);
  switch (pending.how) {
    case How::Call:
      if (!analysis_.callees_[pending.call].insert(function).second) return;
      if (function->isDeclaration())
        external_call(const_cast<llvm::CallBase&>(*pending.call), function->getName());
      else
        link(*pending.call, *function);
      return;
    case How::Thread: {
      if (function->isDeclaration()) return;  // nothing of ours runs there
      for (const Creation& known : analysis_.creations_)
        if (known.call == pending.call && known.entry == function) return;
      analysis_.creations_.push_back({pending.call, function});
      if (function->arg_size() > 0) solver_.add_copy(pending.argument, node(function->getArg(0)));
      solver_.add_copy(result_node(*function), results_of_threads_);
      return;
    }
    case How::CallBack:
      if (!analysis_.call_backs_[pending.call].insert(function).second) return;
      for (const llvm::Argument& argument : function->args()) {
        if (!may_carry(argument.getType())) continue;
        for (const llvm::Use& actual : pending.call->args()) solver_.add_copy(node(actual.get()), node(&argument));
      }
      return;
    case How::Anywhere:
      analysis_.anywhere_.insert(function);
      for (const llvm::Argument& argument : function->args())
        if (may_carry(argument.getType())) solver_.add_copy(pending.argument, node(&argument));
      return;
  }
}

// Any function that code we do not see knows. Those take anything already: what they are given must be something they
// can have.
void ConstraintBuilder::called_unknown(uint32_t index) {
  const Pending pending = pending_[index];
  switch (pending.how) {
    case How::Call:
    case How::CallBack:
      return unknown_call(*pending.call);
    case How::Thread:
    case How::Anywhere:
      return solver_.add_escape(pending.argument);
  }
}

void ConstraintBuilder::exposed(ObjectId object) {
  auto* function = llvm::cast<llvm::Function>(objects_.object(object).value);
  if (function->isDeclaration()) return;
  analysis_.external_functions_.insert(function);
  for (const llvm::Argument& argument : function->args())
    if (may_carry(argument.getType())) solver_.add_unknown(node(&argument));
  if (function->isVarArg()) solver_.add_unknown(variadic_node(*function));
  solver_.add_escape(result_node(*function));
}

NodeId ConstraintBuilder::fresh_object(llvm::CallBase& call) {
  auto hint = heap_types_.find(&call);
  ObjectId object = objects_.add(ObjectKind::Heap, &call, hint == heap_types_.end() ? nullptr : hint->second);
  NodeId id = solver_.add_node();
  solver_.add_base(id, objects_.location(object, 0));
  return id;
}

void ConstraintBuilder::unknown_call(const llvm::CallBase& call) {
  if (!call.isInlineAsm()) analysis_.unknown_calls_.insert(&call);
  for (const llvm::Use& argument : call.args())
    if (may_carry(argument->getType())) solver_.add_escape(node(argument.get()));
  if (may_carry(call.getType())) solver_.add_unknown(node(&call));
}

void ConstraintBuilder::external_call(llvm::CallBase& call, llvm::StringRef name) {
  auto argument = [&](unsigned i) { return i < call.arg_size() ? node(call.getArgOperand(i)) : nothing_; };
  auto anywhere_in = [&](NodeId pointer) {
    NodeId id = solver_.add_node();
    solver_.add_move(pointer, id, 0, {1}, false);
    return id;
  };
  auto loaded = [&](NodeId pointer) {
    NodeId id = solver_.add_node();
    solver_.add_load(pointer, id);
    return id;
  };
  switch (library_function(name).effect) {
    case Effect::Unknown:
      return unknown_call(call);
    case Effect::None:
      return;
    case Effect::Outside:
      return solver_.add_copy(outside_, node(&call));
    case Effect::Allocates:
    case Effect::Duplicates:
      return solver_.add_copy(fresh_object(call), node(&call));
    case Effect::Reallocates:
      solver_.add_copy(fresh_object(call), node(&call));
      return solver_.add_copy_memory(node(&call), argument(0));
    case Effect::ReturnsArg0:
      return solver_.add_copy(argument(0), node(&call));
    case Effect::ReturnsInArg0:
      return solver_.add_copy(anywhere_in(argument(0)), node(&call));
    case Effect::Copies:
      solver_.add_copy_memory(argument(0), argument(1));
      return solver_.add_copy(name.contains("mempcpy") ? anywhere_in(argument(0)) : argument(0), node(&call));
    case Effect::CopiesBack:
      return solver_.add_copy_memory(argument(1), argument(0));
    case Effect::PointsInto:
      return solver_.add_store(argument(1), anywhere_in(argument(0)));
    case Effect::Scans: {  // strtok, strtok_r, strsep: from argument 0 or where the last call stopped
      solver_.add_copy(anywhere_in(argument(0)), scanned_);
      if (call.arg_size() > 2) solver_.add_store(argument(2), scanned_);
      return solver_.add_copy(scanned_, node(&call));
    }
    case Effect::ScansThrough: {
      NodeId text = anywhere_in(loaded(argument(0)));
      solver_.add_store(argument(0), text);
      return solver_.add_copy(text, node(&call));
    }
    case Effect::CreatesThread:
      return call_pointer(argument(2), call, How::Thread, argument(3));
    case Effect::StartsThread:
      return call_pointer(argument(1), call, How::Thread, argument(2));
    case Effect::StartsState: {
      NodeId state = loaded(argument(1)), slot = solver_.add_node();
      solver_.add_move(loaded(state), slot, 16, {}, true);
      return call_pointer(loaded(slot), call, How::Thread, state);
    }
    case Effect::JoinsThread:
      analysis_.joins_.insert(&call);
      return solver_.add_store(argument(1), results_of_threads_);
    case Effect::EndsThread:
      return solver_.add_copy(argument(0), results_of_threads_);
    case Effect::SetsSpecific:
      return solver_.add_copy(argument(1), specific_);
    case Effect::GetsSpecific:
      return solver_.add_copy(specific_, node(&call));
    case Effect::StoresResult:
      return solver_.add_store(argument(0), fresh_object(call));
    case Effect::CallsBack:
      for (const llvm::Use& actual : call.args()) {
        if (!may_carry(actual->getType())) continue;
        call_pointer(node(actual.get()), call, How::CallBack, nothing_);
        if (may_carry(call.getType())) solver_.add_copy(node(actual.get()), node(&call));
      }
      return;
    case Effect::CallsAnywhere: {
      NodeId given = solver_.add_node();
      solver_.add_copy(specific_, given);
      for (const llvm::Use& actual : call.args())
        if (may_carry(actual->getType())) {
          solver_.add_copy(node(actual.get()), given);
          solver_.add_copy(node(actual.get()), handlers_);
          call_pointer(node(actual.get()), call, How::Anywhere, given);
        }
      if (may_carry(call.getType())) solver_.add_copy(handlers_, node(&call));
      return;
    }
    case Effect::HandlesSignal: {
      NodeId handler = loaded(whole_pointer(argument(1)));
      solver_.add_copy(handler, handlers_);
      solver_.add_store(whole_pointer(argument(2)), handlers_);
      return call_pointer(handler, call, How::Anywhere, outside_);
    }
  }
}

}  // namespace stem::analysis
