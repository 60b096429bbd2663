// Memory: recorded accesses with their inline fast path, private accesses with their shadow, copies, fills and local variables.
#include "tracer/pass/instrument.h"

#include "trace/raw.h"
#include "tracer/runtime/abi.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

using namespace llvm;

namespace stem::pass {

static Type* number_of_bytes(LLVMContext& context, unsigned bytes) { return Type::getIntNTy(context, 8 * bytes); }

// --- the fast path, exactly as tracer/runtime/abi.h has it -----------------------------------------------------------------

// The cursor, if a record may be written without asking; the condition for it is left as the builder's last value.
Value* FunctionInstrumenter::fast_path_open(IRBuilder<>& builder) { return builder.CreateLoad(builder.getPtrTy(), abi_.hot(builder, offsetof(stem_hot, cursor))); }

void FunctionInstrumenter::fast_path_head(IRBuilder<>& builder, Value* cursor, unsigned kind, const Access& access) {
  Value* left = abi_.hot(builder, offsetof(stem_hot, countdown));
  builder.CreateStore(builder.CreateSub(builder.CreateLoad(builder.getInt64Ty(), left), i64(1)), left);
  Value* address = builder.CreateAnd(builder.CreatePtrToInt(access.address, builder.getInt64Ty()), i64(0xffffffffffffull));
  Value* head = builder.CreateOr(address, i64(stem_head(kind, access.aux | access.bytes, 0)));
  builder.CreateStore(head, cursor);
  Value* site = builder.CreateTrunc(builder.CreatePtrToInt(access.site, builder.getInt64Ty()), builder.getInt32Ty());
  builder.CreateStore(site, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), cursor, offsetof(stem_rec, site)));
}

void FunctionInstrumenter::fast_path_close(IRBuilder<>& builder, Value* cursor, Value* value, Value* id) {
  builder.CreateStore(as_number(builder, value), builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), cursor, offsetof(stem_rec, value)));
  builder.CreateStore(id, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), cursor, offsetof(stem_rec, expr)));
  builder.CreateStore(builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), cursor, sizeof(stem_rec)), abi_.hot(builder, offsetof(stem_hot, cursor)));
}

static Value* may_record(IRBuilder<>& builder, const Abi& abi, Value* cursor) {
  Value* limit = builder.CreateLoad(builder.getPtrTy(), abi.hot(builder, offsetof(stem_hot, limit)));
  Value* left = builder.CreateLoad(builder.getInt64Ty(), abi.hot(builder, offsetof(stem_hot, countdown)));
  return builder.CreateAnd(builder.CreateICmpULT(cursor, limit), builder.CreateICmpSGT(left, builder.getInt64(0)));
}

Value* FunctionInstrumenter::record_load(const Access& access, Instruction& at, Value** leaf) {
  Type* type = number_of_bytes(context_, access.bytes);
  const bool atomic = access.aux & STEM_AUX_ATOMIC;
  const char* function = atomic ? "__stem_atomic_load" : "__stem_load";
  IRBuilder<> builder(&at);
  if (calls_only_) {
    Value* called = abi_.call(builder, function, {access.address, i32(access.aux | access.bytes), access.site});
    if (leaf) *leaf = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, result_id));
    return builder.CreateTrunc(called, type);
  }
  Value* cursor = fast_path_open(builder);
  Value* fast = may_record(builder, abi_, cursor);
  Instruction *then, *otherwise;
  SplitBlockAndInsertIfThenElse(fast, at.getIterator(), &then, &otherwise, MDBuilder(context_).createLikelyBranchWeights());

  builder.SetInsertPoint(then);
  fast_path_head(builder, cursor, STEM_KIND_Read, access);
  LoadInst* direct = builder.CreateAlignedLoad(type, access.address, access.align, access.is_volatile);
  direct->setAtomic(access.ordering);
  fast_path_close(builder, cursor, direct, i32(0));
  Value* direct_leaf = i32(0);
  if (access.aux & STEM_AUX_LEAF) {
    direct_leaf = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, next_id));
    Value* step = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, id_step));
    tls_store(builder, builder.CreateAdd(direct_leaf, step), offsetof(stem_tls, next_id));
  }

  builder.SetInsertPoint(otherwise);
  Value* called = abi_.call(builder, function, {access.address, i32(access.aux | access.bytes), access.site});
  called = builder.CreateTrunc(called, type);
  Value* called_leaf = i32(0);
  if (access.aux & STEM_AUX_LEAF) called_leaf = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, result_id));

  builder.SetInsertPoint(&at);
  PHINode* value = builder.CreatePHI(type, 2);
  value->addIncoming(direct, then->getParent());
  value->addIncoming(called, otherwise->getParent());
  if (leaf) {
    PHINode* ids = builder.CreatePHI(builder.getInt32Ty(), 2);
    ids->addIncoming(direct_leaf, then->getParent());
    ids->addIncoming(called_leaf, otherwise->getParent());
    *leaf = ids;
  }
  return value;
}

void FunctionInstrumenter::record_store(const Access& access, Value* value, Value* id, Instruction& at) {
  IRBuilder<> builder(&at);
  const bool atomic = access.aux & STEM_AUX_ATOMIC;
  const char* function = atomic ? "__stem_atomic_store" : "__stem_store";
  if (calls_only_) {
    abi_.call(builder, function, {access.address, as_number(builder, value), id, i32(access.aux | access.bytes), access.site});
    return;
  }
  Value* cursor = fast_path_open(builder);
  Value* fast = may_record(builder, abi_, cursor);
  Instruction *then, *otherwise;
  SplitBlockAndInsertIfThenElse(fast, at.getIterator(), &then, &otherwise, MDBuilder(context_).createLikelyBranchWeights());

  builder.SetInsertPoint(then);
  fast_path_head(builder, cursor, STEM_KIND_Write, access);
  StoreInst* direct = builder.CreateAlignedStore(value, access.address, access.align, access.is_volatile);
  direct->setAtomic(access.ordering);
  fast_path_close(builder, cursor, value, id);

  builder.SetInsertPoint(otherwise);
  abi_.call(builder, function, {access.address, as_number(builder, value), id, i32(access.aux | access.bytes), access.site});
}

// --- loads and stores --------------------------------------------------------------------------------------------------------

// The sizes of the events that make up an access: 8, 8, 4, 1 for 21 bytes.
static SmallVector<unsigned, 4> pieces(uint64_t bytes) {
  SmallVector<unsigned, 4> sizes;
  for (unsigned size : {8u, 4u, 2u, 1u})
    for (; bytes >= size; bytes -= size) sizes.push_back(size);
  return sizes;
}

static Value* at_offset(IRBuilder<>& builder, Value* address, uint64_t offset) { return offset ? builder.CreateConstGEP1_64(builder.getInt8Ty(), address, offset) : address; }

void FunctionInstrumenter::visit_load(LoadInst& load) {
  pin_address(load.getPointerOperand(), load);
  const Memory memory = sharing_.of(load.getPointerOperand());
  if (memory == Memory::Constant) return;
  if (memory == Memory::Private) return visit_private_load(load);
  const TypeSize size = layout_.getTypeStoreSize(load.getType());
  const ReadKind kind = symbolic_.read(&load);
  // What cannot be taken apart stays as it is: the reader will see its effects as external.
  if (size.isScalable() || size.isZero() || (load.isAtomic() && size.getFixedValue() > 8)) return;
  const uint64_t bytes = size.getFixedValue();
  Access access{load.getPointerOperand(), 0, 0, site(load), load.getAlign(), load.isVolatile(), load.getOrdering()};
  if (load.isAtomic()) access.aux |= STEM_AUX_ATOMIC;
  if (kind == ReadKind::Pinned) access.aux |= STEM_AUX_PINNED;
  if (kind == ReadKind::Leaf) access.aux |= STEM_AUX_LEAF;

  const auto sizes = pieces(bytes);
  Value* whole = nullptr;
  Value* leaf = nullptr;
  Type* number = number_of_bytes(context_, static_cast<unsigned>(bytes));
  uint64_t done = 0;
  for (const unsigned piece : sizes) {
    IRBuilder<> builder(&load);
    access.address = at_offset(builder, load.getPointerOperand(), done);
    access.align = commonAlignment(load.getAlign(), done);
    access.bytes = piece;
    if (sizes.size() > 1) access.aux = (access.aux & ~STEM_AUX_LEAF) | (kind == ReadKind::Leaf ? STEM_AUX_PINNED : 0u);
    Value* value = record_load(access, load, access.aux & STEM_AUX_LEAF ? &leaf : nullptr);
    builder.SetInsertPoint(&load);
    if (sizes.size() > 1) value = builder.CreateShl(builder.CreateZExt(value, number), ConstantInt::get(number, 8 * done));
    whole = whole ? builder.CreateOr(whole, value) : value;
    done += piece;
  }
  IRBuilder<> builder(&load);
  Type* type = load.getType();
  Value* result;
  const uint64_t bits = layout_.getTypeSizeInBits(type).getFixedValue();
  if (type->isPointerTy()) {
    result = builder.CreateIntToPtr(whole, type);
  } else {
    if (bits != 8 * bytes) whole = builder.CreateTrunc(whole, builder.getIntNTy(static_cast<unsigned>(bits)));
    if (type->isVectorTy() && type->getScalarType()->isPointerTy()) result = builder.CreateIntToPtr(builder.CreateBitCast(whole, layout_.getIntPtrType(type)), type);
    else result = whole->getType() == type ? whole : builder.CreateBitCast(whole, type);
  }
  if (symbolic_.may_be(&load)) {
    Value* known = leaf ? leaf : i32(0);
    if (leaf && bits < 8 * bytes) known = convert(STEM_OP_Trunc, static_cast<unsigned>(bits), static_cast<unsigned>(8 * bytes), leaf, load);
    set_id(&load, known, load);
  }
  replace(load, result);
}

void FunctionInstrumenter::visit_store(StoreInst& store) {
  pin_address(store.getPointerOperand(), store);
  const Memory memory = sharing_.of(store.getPointerOperand());
  if (memory == Memory::Private) return visit_private_store(store);
  Value* value = store.getValueOperand();
  Type* type = value->getType();
  const TypeSize size = layout_.getTypeStoreSize(type);
  if (size.isScalable() || size.isZero() || (store.isAtomic() && size.getFixedValue() > 8)) return;
  const uint64_t bytes = size.getFixedValue();
  Value* known = id(value, store);
  if (bytes > 8 || pieces(bytes).size() > 1) {
    pin_id(known, value, store);
    known = i32(0);
  }
  const uint64_t bits = layout_.getTypeSizeInBits(type).getFixedValue();
  if (bits < 8 * bytes && !is_concrete(known)) known = convert(STEM_OP_ZExt, static_cast<unsigned>(8 * bytes), static_cast<unsigned>(bits), known, store);
  IRBuilder<> builder(&store);
  Type* number = number_of_bytes(context_, static_cast<unsigned>(bytes));
  Value* whole = value;
  if (type->isPtrOrPtrVectorTy()) whole = builder.CreatePtrToInt(whole, layout_.getIntPtrType(type));
  if (whole->getType() != number) {
    whole = builder.CreateBitCast(whole, builder.getIntNTy(static_cast<unsigned>(bits)));
    whole = builder.CreateZExt(whole, number);
  }
  Access access{store.getPointerOperand(), 0, 0, site(store), store.getAlign(), store.isVolatile(), store.getOrdering()};
  if (store.isAtomic()) access.aux |= STEM_AUX_ATOMIC;
  uint64_t done = 0;
  for (const unsigned piece : pieces(bytes)) {
    builder.SetInsertPoint(&store);
    access.address = at_offset(builder, store.getPointerOperand(), done);
    access.align = commonAlignment(store.getAlign(), done);
    access.bytes = piece;
    Value* part = done ? builder.CreateLShr(whole, ConstantInt::get(number, 8 * done)) : whole;
    record_store(access, builder.CreateTrunc(part, number_of_bytes(context_, piece)), known, store);
    done += piece;
  }
  store.removeFromParent();
  dead_.push_back(&store);
}

void FunctionInstrumenter::visit_rmw(AtomicRMWInst& rmw) {
  pin_address(rmw.getPointerOperand(), rmw);
  const uint64_t bytes = layout_.getTypeStoreSize(rmw.getType()).getFixedValue();
  if (bytes > 8) return pin_operands(rmw);
  const ReadKind kind = symbolic_.read(&rmw);
  unsigned aux = STEM_AUX_ATOMIC | static_cast<unsigned>(bytes);
  if (kind == ReadKind::Leaf) aux |= STEM_AUX_LEAF;
  if (kind == ReadKind::Pinned) aux |= STEM_AUX_PINNED;
  Value* operand = id(rmw.getValOperand(), rmw);
  IRBuilder<> builder(&rmw);
  Value* old = abi_.call(builder, "__stem_atomic_rmw", {rmw.getPointerOperand(), i32(rmw.getOperation()), as_number(builder, rmw.getValOperand()), operand, i32(aux), site(rmw)});
  if (symbolic_.may_be(&rmw)) set_id(&rmw, tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, result_id)), rmw);
  Value* number = builder.CreateTrunc(old, number_of_bytes(context_, static_cast<unsigned>(bytes)));
  replace(rmw, rmw.getType()->isPointerTy() ? builder.CreateIntToPtr(number, rmw.getType()) : number);
}

void FunctionInstrumenter::visit_exchange(AtomicCmpXchgInst& exchange) {
  pin_address(exchange.getPointerOperand(), exchange);
  Type* type = exchange.getCompareOperand()->getType();
  const uint64_t bytes = layout_.getTypeStoreSize(type).getFixedValue();
  if (bytes > 8) return pin_operands(exchange);
  Value* expected = exchange.getCompareOperand();
  Value* expected_id = id(expected, exchange);
  Value* desired_id = id(exchange.getNewValOperand(), exchange);
  const unsigned aux = STEM_AUX_ATOMIC | STEM_AUX_LEAF | static_cast<unsigned>(bytes);
  IRBuilder<> builder(&exchange);
  Value* old = abi_.call(builder, "__stem_atomic_cas", {exchange.getPointerOperand(), as_number(builder, expected), expected_id, as_number(builder, exchange.getNewValOperand()), desired_id, i32(aux), site(exchange)});
  Value* leaf = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, result_id));
  Value* number = builder.CreateTrunc(old, number_of_bytes(context_, static_cast<unsigned>(bytes)));
  Value* value = type->isPointerTy() ? builder.CreateIntToPtr(number, type) : number;
  Value* success_id = compare(CmpInst::ICMP_EQ, value, leaf, expected, expected_id, exchange);
  builder.SetInsertPoint(&exchange);
  Value* pair = builder.CreateInsertValue(PoisonValue::get(exchange.getType()), value, 0);
  pair = builder.CreateInsertValue(pair, builder.CreateICmpEQ(value, expected), 1);
  exchange_ids_[&exchange] = {leaf, success_id};
  replace(exchange, pair);
}

// --- private memory: no events, but what is stored keeps its expression -----------------------------------------------------------

Instruction* FunctionInstrumenter::guard_live_shadow(Instruction& before, Value* also) {
  IRBuilder<> builder(&before);
  Value* live = tls_load(builder, builder.getInt32Ty(), offsetof(stem_tls, shadow_live));
  if (also) live = builder.CreateOr(live, also);
  return guard(builder.CreateIsNotNull(live), before);
}

void FunctionInstrumenter::visit_private_load(LoadInst& load) {
  if (!symbolic_.holds_any(load.getPointerOperand())) return;
  const TypeSize size = layout_.getTypeStoreSize(load.getType());
  if (size.isScalable()) return;
  Instruction& next = *load.getNextNode();
  if (!carries_expression(load.getType())) {
    // Too wide to carry an expression: every piece that has one is pinned.
    Instruction* inside = guard_live_shadow(next);
    uint64_t done = 0;
    for (const unsigned piece : pieces(size.getFixedValue())) {
      IRBuilder<> builder(inside);
      Value* address = at_offset(builder, load.getPointerOperand(), done);
      Value* value = builder.CreateZExt(builder.CreateAlignedLoad(number_of_bytes(context_, piece), address, Align(1)), builder.getInt64Ty());
      Value* known = abi_.call(builder, "__stem_shadow_get", {address, i32(piece), value});
      Value* place = site(load);
      builder.SetInsertPoint(guard(builder.CreateIsNotNull(known), *inside));
      abi_.call(builder, "__stem_pin", {known, value, place});
      done += piece;
    }
    return;
  }
  Instruction* inside = guard_live_shadow(next);
  BasicBlock* before = inside->getParent()->getSinglePredecessor();
  IRBuilder<> builder(inside);
  const uint64_t bits = layout_.getTypeSizeInBits(load.getType()).getFixedValue();
  const unsigned bytes = static_cast<unsigned>(size.getFixedValue());
  Value* known = abi_.call(builder, "__stem_shadow_get", {load.getPointerOperand(), i32(bytes), as_number(builder, &load)});
  if (bits < 8 * bytes) {
    Value* narrow = convert(STEM_OP_Trunc, static_cast<unsigned>(bits), 8 * bytes, known, *inside);
    known = narrow;
  }
  builder.SetInsertPoint(&next);
  PHINode* ids = builder.CreatePHI(builder.getInt32Ty(), 2);
  ids->addIncoming(i32(0), before);
  ids->addIncoming(known, inside->getParent());
  set_id(&load, ids, next);
}

void FunctionInstrumenter::visit_private_store(StoreInst& store) {
  Value* value = store.getValueOperand();
  Value* known = id(value, store);
  if (!symbolic_.holds_any(store.getPointerOperand())) return;
  const TypeSize size = layout_.getTypeStoreSize(value->getType());
  if (size.isScalable()) return;
  const uint64_t bytes = size.getFixedValue();
  const uint64_t bits = layout_.getTypeSizeInBits(value->getType()).getFixedValue();
  if (bits < 8 * bytes && !is_concrete(known)) known = convert(STEM_OP_ZExt, static_cast<unsigned>(8 * bytes), static_cast<unsigned>(bits), known, store);
  Instruction* inside = guard_live_shadow(*store.getNextNode(), is_concrete(known) ? nullptr : known);
  IRBuilder<> builder(inside);
  if (is_concrete(known)) abi_.call(builder, "__stem_shadow_clear", {store.getPointerOperand(), i64(bytes)});
  else abi_.call(builder, "__stem_shadow_set", {store.getPointerOperand(), i32(bytes), known});
}

// --- copies, fills, locals ------------------------------------------------------------------------------------------------------------

void FunctionInstrumenter::visit_copy(MemTransferInst& copy) {
  for (Value* operand : copy.args()) pin_address(operand, copy);
  const Memory to = sharing_.of(copy.getDest()), from = sharing_.of(copy.getSource());
  IRBuilder<> builder(&copy);
  Value* size = builder.CreateZExtOrTrunc(copy.getLength(), builder.getInt64Ty());
  if (to == Memory::Private && from != Memory::Shared) {
    if (!symbolic_.holds_any(copy.getDest())) return;
    builder.SetInsertPoint(guard_live_shadow(copy));
    if (from == Memory::Constant) abi_.call(builder, "__stem_shadow_clear", {copy.getDest(), size});
    else abi_.call(builder, "__stem_shadow_copy", {copy.getDest(), copy.getSource(), size});
    return;
  }
  const unsigned flags = (isa<MemMoveInst>(copy) ? 1u : 0u) | (from != Memory::Shared ? 2u : 0u) | (to != Memory::Shared ? 4u : 0u);
  abi_.call(builder, "__stem_copy", {copy.getDest(), copy.getSource(), size, i32(flags), site(copy)});
  copy.removeFromParent();
  dead_.push_back(&copy);
}

void FunctionInstrumenter::visit_fill(MemSetInst& fill) {
  pin_address(fill.getDest(), fill);
  pin_address(fill.getLength(), fill);
  if (sharing_.of(fill.getDest()) == Memory::Private) {
    pin_address(fill.getValue(), fill);
    if (!symbolic_.holds_any(fill.getDest())) return;
    IRBuilder<> builder(&fill);
    Value* size = builder.CreateZExtOrTrunc(fill.getLength(), builder.getInt64Ty());
    builder.SetInsertPoint(guard_live_shadow(fill));
    abi_.call(builder, "__stem_shadow_clear", {fill.getDest(), size});
    return;
  }
  Value* known = id(fill.getValue(), fill);
  IRBuilder<> builder(&fill);
  Value* size = builder.CreateZExtOrTrunc(fill.getLength(), builder.getInt64Ty());
  abi_.call(builder, "__stem_fill", {fill.getDest(), builder.CreateZExt(fill.getValue(), builder.getInt32Ty()), known, size, site(fill)});
  fill.removeFromParent();
  dead_.push_back(&fill);
}

void FunctionInstrumenter::begin_local(Value* address, Value* size, Value* place, bool is_private, Instruction& at) {
  if (is_private) {
    IRBuilder<> builder(guard_live_shadow(at));
    abi_.call(builder, "__stem_shadow_clear", {address, size});
  } else {
    IRBuilder<> builder(&at);
    abi_.call(builder, "__stem_stack", {address, size, place});
  }
}

void FunctionInstrumenter::visit_alloca(AllocaInst& local) {
  pin_operands(local);
  const bool is_private = sharing_.is_private(&local);
  if (is_private && !symbolic_.holds(&local)) return;
  const TypeSize unit = layout_.getTypeAllocSize(local.getAllocatedType());
  if (unit.isScalable() || unit.isZero() || local.isSwiftError() || local.isUsedWithInAlloca()) return;
  SmallVector<Instruction*, 2> births;
  for (User* user : local.users())
    if (auto* intrinsic = dyn_cast<IntrinsicInst>(user); intrinsic && intrinsic->getIntrinsicID() == Intrinsic::lifetime_start) births.push_back(intrinsic->getNextNode());
  if (births.empty()) births.push_back(local.isStaticAlloca() ? entry_ : local.getNextNode());
  Value* place = is_private ? nullptr : site(local);
  for (Instruction* at : births) {
    IRBuilder<> builder(at);
    Value* count = builder.CreateZExtOrTrunc(local.getArraySize(), builder.getInt64Ty());
    begin_local(&local, builder.CreateMul(count, i64(unit.getFixedValue())), place, is_private, *at);
  }
}

}  // namespace stem::pass
