// Values as the programmer would write them: q->head, table[i], *p. The debug information of the unoptimised program says
// which variable an SSA value holds and how types are laid out; the walk goes from an access back to the variable it starts at.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <string>

namespace stem::pass {

// A type with what is left of its array dimensions. Typedefs and qualifiers are looked through.
struct TypeRef {
  llvm::DIType* type = nullptr;
  unsigned dimension = 0;  // of an array type: how many were already indexed

  explicit operator bool() const { return type != nullptr; }
};

TypeRef strip(TypeRef type);
uint64_t size_of(TypeRef type);                              // bytes, 0 if unknown
bool is_array(TypeRef type);
TypeRef element_of(TypeRef array, uint64_t& count);          // count: 0 if unknown
TypeRef pointee_of(TypeRef pointer, bool& reference);        // {} if it is no pointer
llvm::DICompositeType* record_of(TypeRef type);              // struct, class or union; nullptr if it is none

struct Named {
  std::string text;  // "" if unknown
  std::string path;  // field path below the innermost object named
  TypeRef type;
};

class Naming {
 public:
  Naming(llvm::Function& function, const llvm::DataLayout& layout);

  // The memory behind a pointer, accessed with that many bytes.
  Named memory(llvm::Value* pointer, uint64_t bytes) { return memory(pointer, bytes, 0); }
  // The declared variable of an alloca or a by-value parameter.
  llvm::DILocalVariable* variable(llvm::Value* value) const;
  // The type that a pointer value points to, from its declaration or from where it is stored to.
  TypeRef pointee(llvm::Value* pointer);

 private:
  Named memory(llvm::Value* pointer, uint64_t bytes, int depth);
  Named value(llvm::Value* value, int depth);

  const llvm::DataLayout& layout_;
  llvm::DenseMap<llvm::Value*, llvm::DILocalVariable*> variables_;
};

// ns::Class::name, without parameters.
std::string qualified_name(const llvm::DIScope* scope, llvm::StringRef name);
std::string function_name(const llvm::Function& function);
std::string file_name(const llvm::DIFile* file);

}  // namespace stem::pass
