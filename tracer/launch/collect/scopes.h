// Which functions an instruction belongs to, by debug information: units and functions by address, each read once. libdw has this
// too, but dwarf_getscopes walks a whole unit at every question, seconds for a small program in C++; it follows an inlined function to
// where that is defined, where the function that holds it is wanted, whose frame it uses; and dwfl_module_addrdie needs a table of
// units that clang does not write.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace stem::collect {

class Scopes {
 public:
  explicit Scopes(Dwfl_Module* module) : module_(module) {}

  struct Found {
    Dwarf_Die* unit = nullptr;
    Dwarf_Addr address = 0;            // as the unit counts it
    std::vector<Dwarf_Die> functions;  // from the one that holds the instruction to the innermost that was inlined there
  };
  std::optional<Found> find(uint64_t address);

 private:
  struct Range {
    Dwarf_Addr begin = 0, end = 0;
    Dwarf_Die die{};
  };
  using Ranges = std::vector<Range>;  // sorted
  struct Unit {
    Dwarf_Die die{};
    Dwarf_Addr bias = 0;
    bool read = false;
    Ranges functions;
  };

  void read_units();
  static void add_ranges(Dwarf_Die* die, Ranges& to);
  static void add_functions(Dwarf_Die* die, int depth, Ranges& to);
  static const Range* at(const Ranges& ranges, Dwarf_Addr address);

  Dwfl_Module* module_;
  bool read_ = false;
  std::vector<Unit> units_;
  std::vector<std::pair<Range, size_t>> by_address_;  // ranges of units, with the bias added; index into units_
};

}  // namespace stem::collect
