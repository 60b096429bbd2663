#include "tracer/launch/collect/scopes.h"

#include <dwarf.h>

#include <algorithm>

namespace stem::collect {

void Scopes::add_ranges(Dwarf_Die* die, Ranges& to) {
  Dwarf_Addr base = 0, begin = 0, end = 0;
  for (ptrdiff_t offset = 0; (offset = dwarf_ranges(die, offset, &base, &begin, &end)) > 0;)
    if (begin < end) to.push_back({begin, end, *die});
}

// A function can stand inside another: in a class that is local to it, or as gcc's own nested functions do.
void Scopes::add_functions(Dwarf_Die* die, int depth, Ranges& to) {
  Dwarf_Die child;
  if (depth > 40 || dwarf_child(die, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        add_ranges(&child, to);
        add_functions(&child, depth + 1, to);
        break;
      case DW_TAG_namespace: case DW_TAG_structure_type: case DW_TAG_class_type: case DW_TAG_union_type: case DW_TAG_lexical_block:
        add_functions(&child, depth + 1, to);
        break;
      default: break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

void Scopes::read_units() {
  if (read_) return;
  read_ = true;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;) {
    Ranges ranges;
    add_ranges(unit, ranges);
    for (Range& r : ranges) by_address_.push_back({{r.begin + bias, r.end + bias, r.die}, units_.size()});
    units_.push_back({*unit, bias, false, {}});
  }
  std::sort(by_address_.begin(), by_address_.end(), [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
}

const Scopes::Range* Scopes::at(const Ranges& ranges, Dwarf_Addr address) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address, [](Dwarf_Addr a, const Range& r) { return a < r.begin; });
  if (after == ranges.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

std::optional<Scopes::Found> Scopes::find(uint64_t address) {
  read_units();
  auto after = std::upper_bound(by_address_.begin(), by_address_.end(), address, [](uint64_t a, const auto& r) { return a < r.first.begin; });
  if (after == by_address_.begin() || address >= std::prev(after)->first.end) return std::nullopt;
  Unit& unit = units_[std::prev(after)->second];
  if (!unit.read) {
    unit.read = true;
    add_functions(&unit.die, 0, unit.functions);
    std::sort(unit.functions.begin(), unit.functions.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  }
  Found found{&unit.die, address - unit.bias, {}};
  const Range* function = at(unit.functions, found.address);
  if (!function) return found;
  found.functions.push_back(function->die);
  Dwarf_Die inside = function->die, child;
  while (dwarf_child(&inside, &child) == 0) {
    bool deeper = false;
    do {
      const int tag = dwarf_tag(&child);
      if ((tag != DW_TAG_lexical_block && tag != DW_TAG_inlined_subroutine) || dwarf_haspc(&child, found.address) <= 0) continue;
      if (tag == DW_TAG_inlined_subroutine) found.functions.push_back(child);
      inside = child;
      deeper = true;
      break;
    } while (dwarf_siblingof(&child, &child) == 0);
    if (!deeper) break;
  }
  return found;
}

}  // namespace stem::collect
