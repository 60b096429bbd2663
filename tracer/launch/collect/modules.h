// The ELF objects of the recorded process: its sites, its global variables and what they start with, its functions. A module that
// stem-cc has not compiled has instructions for sites, and all names come from its debug information.
// Everything is looked up when it is first needed: a program has far more of these than a run touches.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trace/program.h"
#include "tracer/launch/collect/dwarf.h"

namespace stem::collect {

// What memory holds when a module has just been loaded and relocated.
class Image {
 public:
  explicit Image(const std::string& path);
  ~Image();
  Image(const Image&) = delete;

  struct Initial {
    bool zero = false;
    std::vector<uint8_t> bytes;  // empty unless known
  };
  // `address` as in the file; `bias` where it was loaded.
  Initial initial(uint64_t address, uint64_t size, uint64_t bias) const;

 private:
  struct Segment {
    uint64_t address, offset, file_size, memory_size;
  };
  struct Relocation {
    uint64_t address, addend;
    bool relative;  // bias + addend; others are not known here
  };
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  std::vector<Segment> segments_;
  std::vector<Relocation> relocations_;  // sorted
};

class Modules {
 public:
  // A module as the recorder announced it. One that cannot be read has no names, and a message says so.
  void add(const std::string& path, uint64_t bias, uint64_t sites_begin, uint64_t sites_size);

  // The site whose record's address has these low 32 bits, or nullptr.
  const trace::ProgramSite* site(uint32_t low) const;
  // The low 32 bits of the address of a record with that key. Looks through all of them.
  std::optional<uint32_t> site_with_key(uint64_t key) const;

  struct Global {
    const trace::ProgramVariable* variable;
    uint64_t base;  // at run time
    const Image* image;
    uint64_t bias;
  };
  std::optional<Global> global(uint64_t address) const;
  std::string function(uint64_t return_address) const;  // demangled, without parameters; "" if unknown

  std::string build_id(const std::string& executable) const;  // of the module of that path, else of the first: a library may come before it
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Module {
    std::string path;
    uint64_t bias, sites_begin, sites_size;
    std::unique_ptr<trace::Program> program;
    std::unique_ptr<Image> image;
    std::unique_ptr<DebugInfo> debug;                  // of a module without sites of its own
    std::map<uint32_t, trace::ProgramSite> code_sites; // made when asked for
  };
  static trace::ProgramSite code_site(const Module& module, uint64_t address);
  std::optional<Global> code_global(const Module& module, uint64_t address) const;

  mutable std::vector<Module> modules_;
  std::vector<std::string> problems_;
};

}  // namespace stem::collect
