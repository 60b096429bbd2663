// A program as stem-cc left it: what an ELF file (executable or shared library) says about its sites, its variables and its
// bitcode. Read with libelf, because the collector starts at every run and LLVM's libraries would cost more than the run.
// Every offset in the file is checked: a damaged or hostile file gives a UserError or fewer sites, never a crash.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stem::trace {

struct ProgramSite : Site {
  uint8_t kind = 0;      // enum stem_site_kind
  std::string linkage;   // linkage name of the function
  std::string layout;    // allocations and local variables: see site_record.h
  std::string frame;     // a binary's: the function whose frame the instruction uses, which may be inlined there
  std::string where;     // a binary's: "function:line" outside the system's headers; "" if the whole function stands in one
};

struct ProgramVariable {
  std::string name;      // linkage name
  std::string display;   // as the programmer would write it
  std::string file;
  std::string layout;
  uint64_t address = 0;  // in the file's address space (add the load bias); 0 if not known
  uint64_t size = 0;
  uint32_t line = 0;
  bool tls = false;
  bool constant = false;
};

struct Bitcode {
  std::vector<char> bytes;  // an LLVM module, ready for the bitcode reader
};

// A function's range in the file's address space, from the symbol table; for call strings and thread start functions.
struct ProgramFunction {
  uint64_t address = 0;
  uint64_t size = 0;
  std::string name;  // linkage name
};

class Program {
 public:
  // Throws UserError if the file cannot be read or is not an ELF file for this machine.
  static Program open(const std::string& path);

  // False: not built by stem-cc.
  bool instrumented() const { return !sites_.empty() || bitcode_count_ != 0; }

  const std::string& path() const { return path_; }
  const std::string& build_id() const { return build_id_; }  // hex, "" if there is none

  // Address of a site's record in the file's address space (run-time address minus load bias) -> site.
  const std::map<uint64_t, ProgramSite>& sites() const { return sites_; }
  // Global variables by address; those without a known address come last in `variables` only.
  const std::vector<ProgramVariable>& variables() const { return variables_; }
  // The variable that contains an address, nullptr if none does.
  const ProgramVariable* variable_at(uint64_t address) const;
  const ProgramFunction* function_at(uint64_t address) const;

  size_t bitcode_count() const { return bitcode_count_; }
  // Decompresses all modules. Throws UserError if one is damaged.
  std::vector<Bitcode> bitcode() const;

 private:
  std::string path_;
  std::string build_id_;
  std::map<uint64_t, ProgramSite> sites_;
  std::vector<ProgramVariable> variables_;  // sorted by address, those with address 0 first
  std::vector<ProgramFunction> functions_;  // sorted by address
  std::vector<char> bitcode_section_;
  size_t bitcode_count_ = 0;
};

// "config" + 24 in the layout of config -> ".limits[].max". Object size: of the whole object, so that an allocation of several
// elements of the layout's type reads "[].max". Never throws: what the layout does not say is not in the path.
std::string field_path(std::string_view layout, uint64_t offset, uint64_t object_size = 0);

}  // namespace stem::trace
