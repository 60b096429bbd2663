// What a module's debug information says about a binary that nobody prepared: the source line of an instruction, the global
// variables with their layout, the local variables of a function by their place in its frame. By libdw, outside of the traced
// process; separate debug files are found by build id as gdb does. Without any of it, names come from the symbol table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace/program.h"

namespace stem::collect {

class DebugInfo {
 public:
  explicit DebugInfo(const std::string& path);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;

  bool present() const;  // false: the file was compiled without -g, or was stripped

  // The site of an instruction: file, line, column, function. `address` as in the file.
  trace::ProgramSite place(uint64_t address) const;

  // Sorted by address. Read when first asked for: it means a walk through everything.
  const std::vector<trace::ProgramVariable>& globals() const;

  struct Local {
    std::string name;    // function::variable
    std::string layout;
    int64_t offset = 0;  // from the canonical frame address
    uint64_t size = 0;
  };
  // Those of the function that contains `address` which live in its frame.
  std::vector<Local> locals(uint64_t address) const;

 private:
  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace stem::collect
