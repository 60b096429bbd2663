// One function, instrumented. All decisions are taken on the clean code (Symbolic, Sharing, the sites); then the blocks are walked
// in an order in which definitions come before uses, and every instruction gets what it needs beside it.
//
// An expression id is a 32-bit SSA value next to each value that may be symbolic, 0 where it turns out concrete. A value that is
// pinned in another block than its own keeps its id in a slot that the pin clears, so a loop pins once.
#pragma once

#include "tracer/pass/abi.h"
#include "tracer/pass/sharing.h"
#include "tracer/pass/sites.h"
#include "tracer/pass/symbolic.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>

namespace stem::pass {

unsigned operation_of(const llvm::BinaryOperator& instruction);  // STEM_OP_

using SiteMap = llvm::DenseMap<const llvm::Instruction*, llvm::GlobalVariable*>;

class FunctionInstrumenter {
 public:
  FunctionInstrumenter(llvm::Function& function, const Abi& abi, Sites& sites, const Sharing& sharing, const llvm::TargetLibraryInfo& library, const SiteMap& site_of);
  void run();

 private:
  // --- instrument.cpp
  void visit(llvm::Instruction& instruction);
  void visit_branch(llvm::Instruction& instruction, llvm::Value* condition);
  void visit_switch(llvm::SwitchInst& instruction);
  llvm::Value* site(llvm::Instruction& instruction);  // of the instruction, made up as a pin's if it has none
  llvm::Instruction* guard(llvm::Value* condition, llvm::Instruction& before);  // if (condition) { here }; rarely true

  // --- expression.cpp
  llvm::Value* id(llvm::Value* value, llvm::Instruction& at);
  void set_id(llvm::Value* value, llvm::Value* id, llvm::Instruction& after);
  void pin(llvm::Value* value, llvm::Instruction& at);
  void pin_id(llvm::Value* id, llvm::Value* value, llvm::Instruction& at);
  void pin_address(llvm::Value* pointer, llvm::Instruction& at);
  void pin_operands(llvm::Instruction& at);
  bool pinned_before(llvm::Value* value, llvm::Instruction& at) const;
  void visit_expression(llvm::Instruction& instruction);
  llvm::Value* binary(unsigned operation, unsigned width, llvm::Value* a, llvm::Value* a_id, llvm::Value* b, llvm::Value* b_id, llvm::Instruction& at);
  llvm::Value* convert(unsigned operation, unsigned width, unsigned from, llvm::Value* id, llvm::Instruction& at);
  llvm::Value* ite(unsigned width, llvm::Value* condition, llvm::Value* condition_id, llvm::Value* a, llvm::Value* a_id, llvm::Value* b, llvm::Value* b_id, llvm::Instruction& at);
  llvm::Value* compare(llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* a_id, llvm::Value* b, llvm::Value* b_id, llvm::Instruction& at);
  llvm::Value* offset(llvm::GetElementPtrInst& instruction, llvm::Instruction& at);
  llvm::Value* extreme(llvm::IntrinsicInst& instruction, llvm::Instruction& at);
  llvm::Value* compute(llvm::Instruction& instruction, llvm::Instruction& at);
  void force(llvm::ArrayRef<llvm::Value*> wanted, llvm::Instruction& at);
  void force_all(llvm::Instruction& at);
  void pin_division(llvm::BinaryOperator& instruction);
  void finish_phis();

  // --- loop_expressions.cpp
  struct Computed {  // a loop that only computes
    llvm::BasicBlock* before = nullptr;
    llvm::BasicBlock* latch = nullptr;
    llvm::PHINode* value = nullptr;            // what a round begins with
    unsigned entry = 0;                        // its incoming value from before the loop
    llvm::Value* result = nullptr;             // what the next round begins with
    std::vector<llvm::Instruction*> round;     // what it makes of that
    llvm::Value* rounds = nullptr;             // how many have been completed
  };
  bool find_round(const llvm::Loop& loop, Computed& found);
  void find_computing_loops();
  llvm::GlobalVariable* round_record(const Computed& loop);
  void record_rounds(const Computed& loop, llvm::Instruction& at);

  // --- access.cpp
  void visit_load(llvm::LoadInst& load);
  void visit_store(llvm::StoreInst& store);
  void visit_rmw(llvm::AtomicRMWInst& rmw);
  void visit_exchange(llvm::AtomicCmpXchgInst& exchange);
  void visit_copy(llvm::MemTransferInst& copy);
  void visit_fill(llvm::MemSetInst& fill);
  void visit_alloca(llvm::AllocaInst& local);
  void begin_local(llvm::Value* address, llvm::Value* size, llvm::Value* site, bool is_private, llvm::Instruction& at);
  struct Access {
    llvm::Value* address;
    unsigned bytes;
    unsigned aux;  // STEM_AUX_ flags
    llvm::Value* site;
    llvm::Align align;
    bool is_volatile = false;
    llvm::AtomicOrdering ordering = llvm::AtomicOrdering::NotAtomic;
  };
  llvm::Value* record_load(const Access& access, llvm::Instruction& at, llvm::Value** leaf);
  void record_store(const Access& access, llvm::Value* value, llvm::Value* id, llvm::Instruction& at);
  llvm::Value* fast_path_open(llvm::IRBuilder<>& builder);
  void fast_path_head(llvm::IRBuilder<>& builder, llvm::Value* cursor, unsigned kind, const Access& access);
  void fast_path_close(llvm::IRBuilder<>& builder, llvm::Value* cursor, llvm::Value* value, llvm::Value* id);
  void visit_private_load(llvm::LoadInst& load);
  void visit_private_store(llvm::StoreInst& store);
  llvm::Instruction* guard_live_shadow(llvm::Instruction& before, llvm::Value* also = nullptr);

  // --- calls.cpp
  void prologue();
  void visit_call(llvm::CallBase& call);
  void visit_return(llvm::ReturnInst& instruction);
  void visit_allocation(llvm::CallBase& call);
  void pass_arguments(llvm::CallBase& call, Callee callee, llvm::Value* target);
  void check_mark(llvm::CallBase& call, llvm::Value* target);
  void take_result(llvm::CallBase& call, llvm::Value* target);
  void pin_by_value(llvm::CallBase& call);
  void expose_arguments(llvm::CallBase& call, Callee callee);
  llvm::Value* self();
  static llvm::Instruction* after(llvm::CallBase& call);

  // --- small things
  llvm::Value* as_number(llvm::IRBuilder<>& builder, llvm::Value* value);  // zero-extended to 64 bits
  llvm::Value* as_number(llvm::Value* value, llvm::Instruction& at);
  llvm::ConstantInt* i32(uint64_t value) { return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context_), value); }
  llvm::ConstantInt* i64(uint64_t value) { return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context_), value); }
  bool is_concrete(llvm::Value* id) { return llvm::isa<llvm::ConstantInt>(id) && llvm::cast<llvm::ConstantInt>(id)->isZero(); }
  void replace(llvm::Instruction& old, llvm::Value* now);
  llvm::Value* tls_load(llvm::IRBuilder<>& builder, llvm::Type* type, size_t offset);
  void tls_store(llvm::IRBuilder<>& builder, llvm::Value* value, size_t offset);

  llvm::Function& function_;
  llvm::LLVMContext& context_;
  const llvm::DataLayout& layout_;
  const Abi& abi_;
  Sites& sites_;
  const Sharing& sharing_;
  const llvm::TargetLibraryInfo& library_;
  const SiteMap& site_of_;
  Symbolic symbolic_;
  llvm::DominatorTree dominators_;  // of the clean code; blocks keep their identity, positions are remembered
  llvm::DenseMap<const llvm::Instruction*, std::pair<const llvm::BasicBlock*, unsigned>> positions_;
  llvm::DenseMap<llvm::Value*, llvm::Value*> ids_;
  llvm::DenseMap<llvm::Value*, llvm::AllocaInst*> slots_;
  llvm::DenseMap<llvm::Value*, llvm::SmallVector<const llvm::Instruction*, 2>> pins_;
  llvm::DenseMap<const llvm::Instruction*, llvm::GlobalVariable*> pin_sites_;
  llvm::DenseMap<llvm::Value*, std::pair<llvm::Value*, llvm::Value*>> exchange_ids_;  // of a compare-and-swap: old value, success
  llvm::SmallSetVector<llvm::Value*, 16> pending_;  // operations of this block whose ids nobody has asked for yet
  llvm::DenseMap<llvm::Value*, llvm::Value*>* region_ = nullptr;  // ids inside the guarded region being written
  bool calls_only_ = false;  // no inline fast path: the code would grow too large
  llvm::DenseMap<llvm::BasicBlock*, Computed> computed_;  // by the block behind the loop
  llvm::SmallPtrSet<const llvm::Instruction*, 8> skipped_;  // what such loops make
  std::vector<std::pair<llvm::PHINode*, llvm::PHINode*>> phis_;
  std::vector<llvm::Instruction*> dead_;
  llvm::Instruction* entry_ = nullptr;      // the first instruction that is no static alloca
  llvm::Value* called_properly_ = nullptr;  // by instrumented code; nullptr: always
  llvm::Value* self_ = nullptr;
};

}  // namespace stem::pass
