// The records of trace/site_record.h that a translation unit contributes: one constant per site in a section of its own.
// A key is a hash of the function's linkage name, the kind, the text and the ordinal among its like, so an edit elsewhere
// does not change it, and every build of the same source gives the same one.
#pragma once

#include "trace/site_record.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace stem::pass {

class Sites {
 public:
  explicit Sites(llvm::Module& module);

  struct Description {
    stem_site_kind kind = STEM_SITE_READ;
    std::string text;
    std::string path;
    std::string layout;
    unsigned line = 0;  // where the instruction itself has no place: a declaration's
  };
  // A new site in the instruction's function, at its place in the source.
  llvm::GlobalVariable* add(llvm::Instruction& at, const Description& description);
  static uint64_t key(const llvm::GlobalVariable* site);

  bool empty() const { return records_.empty(); }

  // The tables of variables, the list that keeps the records, and the constructor that announces them.
  void add_variables();
  void finish(llvm::FunctionCallee announce);

 private:
  llvm::Constant* text(const std::string& text);
  // The field with this index of a record: `target` relative to the field itself.
  llvm::Constant* relative(llvm::Constant* target, llvm::GlobalVariable* record, unsigned field);
  void add_variable(llvm::GlobalVariable& global);

  llvm::Module& module_;
  llvm::StructType* site_type_;
  llvm::StructType* variable_type_;
  llvm::StringMap<llvm::Constant*> texts_;
  llvm::StringMap<unsigned> ordinals_;
  std::vector<llvm::GlobalValue*> records_;
};

}  // namespace stem::pass
