// From LLVM IR to inclusion constraints: one visit of every instruction, and one more link per resolved call.
#pragma once

#include <llvm/IR/InstVisitor.h>
#include <llvm/IR/Operator.h>

#include "static/pointer.h"

namespace stem::analysis {

class ConstraintBuilder : public llvm::InstVisitor<ConstraintBuilder>, public Solver::Listener {
 public:
  ConstraintBuilder(PointerAnalysis& analysis, const HeapTypes& heap_types);

  void build(const llvm::Module& module);

  void called(uint32_t call, ObjectId function) override;
  void called_unknown(uint32_t call) override;
  void exposed(ObjectId function) override;

  void visitAllocaInst(llvm::AllocaInst& instruction);
  void visitLoadInst(llvm::LoadInst& instruction);
  void visitStoreInst(llvm::StoreInst& instruction);
  void visitGetElementPtrInst(llvm::GetElementPtrInst& instruction);
  void visitAtomicCmpXchgInst(llvm::AtomicCmpXchgInst& instruction);
  void visitAtomicRMWInst(llvm::AtomicRMWInst& instruction);
  void visitBinaryOperator(llvm::BinaryOperator& instruction);
  void visitCallBase(llvm::CallBase& call);
  void visitReturnInst(llvm::ReturnInst& instruction);
  void visitLandingPadInst(llvm::LandingPadInst& instruction);
  void visitVAArgInst(llvm::VAArgInst& instruction);
  void visitInstruction(llvm::Instruction& instruction);  // casts, phi, select, aggregates: a copy of each operand

 private:
  enum class How : uint8_t { Call, Thread, CallBack, Anywhere };
  struct Pending {
    const llvm::CallBase* call;
    How how;
    NodeId argument;  // Thread, Anywhere: what the function is given
  };

  NodeId node(const llvm::Value* value);
  NodeId constant_node(const llvm::Constant* constant);
  NodeId whole_pointer(NodeId pointer);  // to every part of what the pointer points to
  void move_gep(const llvm::GEPOperator& gep, NodeId to);
  void initialise(NodeId base, const llvm::Constant* constant, uint64_t offset);
  void call_pointer(NodeId pointer, const llvm::CallBase& call, How how, NodeId argument);
  void link(const llvm::CallBase& call, const llvm::Function& function);
  void external_call(llvm::CallBase& call, llvm::StringRef name);
  void unknown_call(const llvm::CallBase& call);
  void start_variadic(llvm::CallBase& call);
  NodeId fresh_object(llvm::CallBase& call);
  NodeId result_node(const llvm::Function& function);
  NodeId variadic_node(const llvm::Function& function);

  PointerAnalysis& analysis_;
  Solver& solver_;
  Objects& objects_;
  const HeapTypes& heap_types_;
  const llvm::DataLayout* layout_ = nullptr;
  std::unordered_map<const llvm::Function*, NodeId> results_, variadics_;
  std::vector<Pending> pending_;
  NodeId outside_;  // points to memory that was there before the program: its arguments, the environment, tables of
                    // libraries
  NodeId results_of_threads_, specific_, handlers_, scanned_;  // pthread_join, pthread_getspecific, sigaction, strtok
  NodeId nothing_;
};

}  // namespace stem::analysis
