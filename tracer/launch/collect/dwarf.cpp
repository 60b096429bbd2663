#include "tracer/launch/collect/dwarf.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "tracer/launch/collect/scopes.h"
#include "util/error.h"

namespace stem::collect {

namespace {

constexpr int kMaxDepth = 12;
constexpr size_t kMaxLayout = 20000;

std::string plain_name(const char* linkage) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(linkage, nullptr, nullptr, &status), std::free);
  std::string name = status == 0 && plain ? plain.get() : linkage;
  if (status != 0) return name;
  int depth = 0;  // without parameters; those of templates stay
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && i > 0 && name.compare(i, 2, "()") != 0 && name.compare(i, 11, "(anonymous ") != 0) return name.substr(0, i);
    if (name.compare(i, 2, "()") == 0 && depth == 0) return name.substr(0, i);
  }
  return name;
}

bool peel(Dwarf_Die* die, Dwarf_Die* type) {
  Dwarf_Attribute attribute;
  Dwarf_Die outer;
  if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &outer)) return false;
  return dwarf_peel_type(&outer, type) == 0;
}

uint64_t size_of(Dwarf_Die* type) {
  Dwarf_Word size = 0;
  return dwarf_aggregate_size(type, &size) == 0 ? size : 0;
}

int64_t member_offset(Dwarf_Die* member) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute)) return dwarf_formudata(&attribute, &value) == 0 ? static_cast<int64_t>(value) : -1;
  if (dwarf_attr_integrate(member, DW_AT_data_bit_offset, &attribute)) return dwarf_formudata(&attribute, &value) == 0 ? static_cast<int64_t>(value / 8) : -1;
  return 0;  // a union's
}

// The part after the size (trace/site_record.h).
void describe(Dwarf_Die* type, int depth, std::string& out) {
  if (depth > kMaxDepth || out.size() > kMaxLayout) return;
  Dwarf_Die child;
  switch (dwarf_tag(type)) {
    case DW_TAG_array_type: {
      Dwarf_Die element;
      if (!peel(type, &element)) return;
      std::vector<uint64_t> counts;
      if (dwarf_child(type, &child) == 0) do {
          if (dwarf_tag(&child) != DW_TAG_subrange_type) continue;
          Dwarf_Attribute attribute;
          Dwarf_Word bound = 0;
          uint64_t count = 0;
          if (dwarf_attr_integrate(&child, DW_AT_count, &attribute) && dwarf_formudata(&attribute, &bound) == 0) count = bound;
          else if (dwarf_attr_integrate(&child, DW_AT_upper_bound, &attribute) && dwarf_formudata(&attribute, &bound) == 0) count = bound + 1;
          counts.push_back(count);
        } while (dwarf_siblingof(&child, &child) == 0);
      if (counts.empty()) counts.push_back(0);
      uint64_t each = size_of(&element);
      std::string inner;
      describe(&element, depth + 1, inner);
      for (size_t i = counts.size(); i-- > 0;) {
        inner = fmt::format("[{}*{}{}]", each, counts[i], inner);
        each *= counts[i];
      }
      out += inner;
      return;
    }
    case DW_TAG_structure_type: case DW_TAG_class_type: case DW_TAG_union_type: {
      if (dwarf_child(type, &child) != 0) return;
      std::string members;
      do {
        int tag = dwarf_tag(&child);
        if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
        Dwarf_Die inner;
        int64_t offset = member_offset(&child);
        if (dwarf_hasattr(&child, DW_AT_external) || dwarf_hasattr(&child, DW_AT_declaration) || offset < 0 || !peel(&child, &inner)) continue;
        const char* name = tag == DW_TAG_member ? dwarf_diename(&child) : nullptr;
        members += fmt::format("{}{}@{}+{}", members.empty() ? "" : ",", name ? name : "", offset, size_of(&inner));
        describe(&inner, depth + 1, members);
      } while (dwarf_siblingof(&child, &child) == 0);
      out += "{" + members + "}";
      return;
    }
    default: return;
  }
}

std::string layout_of(Dwarf_Die* type) {
  std::string text = std::to_string(size_of(type));
  describe(type, 0, text);
  return text.size() > kMaxLayout ? std::to_string(size_of(type)) : text;
}

// One simple location: the address of a global, or the distance from the frame's address.
bool location(Dwarf_Die* die, unsigned atom, Dwarf_Op* out) {
  Dwarf_Attribute attribute;
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (!dwarf_attr_integrate(die, DW_AT_location, &attribute)) return false;
  if (dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1) return false;
  *out = ops[0];
  if (atom == DW_OP_addr && ops[0].atom == DW_OP_addrx) {  // clang keeps addresses in a table of their own
    Dwarf_Attribute indexed;
    Dwarf_Addr address = 0;
    if (dwarf_getlocation_attr(&attribute, &ops[0], &indexed) != 0 || dwarf_formaddr(&indexed, &address) != 0) return false;
    out->number = address;
    return true;
  }
  return ops[0].atom == atom;
}

bool is_system(const std::string& file) { return file.starts_with("/usr/include/") || file.find("/include/c++/") != std::string::npos; }

// The line of an instruction; one that the compiler made up for itself (line 0) belongs to what stands before it.
Dwarf_Line* line_at(Dwarf_Die* unit, Dwarf_Addr address, int* number) {
  Dwarf_Line* line = nullptr;
  for (Dwarf_Addr back = 0; back < 64 && back <= address; ++back) {
    Dwarf_Line* before = dwarf_getsrc_die(unit, address - back);
    if (!before || dwarf_lineno(before, number) != 0) break;
    line = before;
    if (*number) return line;
  }
  *number = 0;
  return line;
}

std::string function_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  const char* linkage = nullptr;
  if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute)) linkage = dwarf_formstring(&attribute);
  if (linkage) return plain_name(linkage);
  const char* name = dwarf_diename(die);
  return name ? name : "";
}

}  // namespace

struct DebugInfo::Reader {
  std::optional<Scopes> scopes;
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
  Dwarf_Addr bias = 0;
  bool present = false;
  mutable bool globals_read = false;
  mutable std::vector<trace::ProgramVariable> globals;
  mutable std::map<std::string, std::string> declared;  // layouts of variables that are defined elsewhere, by linkage name

  // How far the canonical frame address lies above what a function's variables are counted from: itself, or a register (clang).
  std::optional<int64_t> above(Dwarf_Die* function, uint64_t address) const {
    Dwarf_Attribute attribute;
    Dwarf_Op* base = nullptr;
    size_t count = 0;
    if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) || dwarf_getlocation(&attribute, &base, &count) != 0 || count != 1) return std::nullopt;
    if (base[0].atom == DW_OP_call_frame_cfa) return 0;
    if (base[0].atom < DW_OP_reg0 || base[0].atom > DW_OP_reg31) return std::nullopt;
    Dwarf_Addr cfi_bias = 0;
    for (Dwarf_CFI* cfi : {dwfl_module_eh_cfi(module, &cfi_bias), dwfl_module_dwarf_cfi(module, &cfi_bias)}) {
      Dwarf_Frame* frame = nullptr;
      if (!cfi || dwarf_cfi_addrframe(cfi, address, &frame) != 0) continue;
      Dwarf_Op* cfa = nullptr;
      const bool known = dwarf_frame_cfa(frame, &cfa, &count) == 0 && count == 1 && cfa[0].atom == DW_OP_bregx && cfa[0].number + DW_OP_reg0 == base[0].atom;
      const auto distance = known ? std::optional(static_cast<int64_t>(cfa[0].number2)) : std::nullopt;
      std::free(frame);
      if (distance) return distance;
    }
    return std::nullopt;
  }

  // Looks for variables at fixed addresses below `die`.
  void walk(Dwarf_Die* die, const std::string& prefix, int depth) const {
    Dwarf_Die child;
    if (depth > 20 || dwarf_child(die, &child) != 0) return;
    do {
      const char* name = dwarf_diename(&child);
      switch (dwarf_tag(&child)) {
        case DW_TAG_variable: global(&child, prefix); break;
        case DW_TAG_namespace: walk(&child, prefix + (name ? name : "(anonymous)") + "::", depth + 1); break;
        case DW_TAG_structure_type: case DW_TAG_class_type: break;
        case DW_TAG_subprogram:
          walk(&child, function_name(&child) + "::", depth + 1);
          break;
        case DW_TAG_lexical_block: case DW_TAG_inlined_subroutine: walk(&child, prefix, depth + 1); break;
        default: break;
      }
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  void global(Dwarf_Die* die, const std::string& prefix) const {
    Dwarf_Op op;
    Dwarf_Die type;
    const char* name = dwarf_diename(die);
    if (!name || !peel(die, &type)) return;
    Dwarf_Attribute attribute;
    const char* linkage = nullptr;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute)) linkage = dwarf_formstring(&attribute);
    if (dwarf_hasattr(die, DW_AT_declaration)) declared.emplace(linkage ? linkage : name, layout_of(&type));
    if (!location(die, DW_OP_addr, &op)) return;
    trace::ProgramVariable v;
    v.display = linkage ? plain_name(linkage) : prefix + name;
    v.name = linkage ? linkage : prefix + name;
    v.address = op.number;
    v.size = size_of(&type);
    v.layout = layout_of(&type);
    const char* file = dwarf_decl_file(die);
    int line = 0;
    v.file = file ? file : "";
    if (dwarf_decl_line(die, &line) == 0) v.line = static_cast<uint32_t>(line);
    if (v.size) globals.push_back(std::move(v));
  }

  // What only the symbol table knows: a library's variable of which the program keeps the copy (a copy relocation), assembly.
  void symbols() const {
    const int count = dwfl_module_getsymtab(module);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Addr address = 0;
      const char* name = dwfl_module_getsym_info(module, i, &symbol, &address, nullptr, nullptr, nullptr);
      if (!name || !*name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
      trace::ProgramVariable v;
      v.name = name;
      v.name = v.name.substr(0, v.name.find('@'));
      v.display = plain_name(v.name.c_str());
      v.address = address;
      v.size = symbol.st_size;
      auto known = declared.find(v.name);
      v.layout = known != declared.end() && known->second.starts_with(std::to_string(v.size)) ? known->second : std::to_string(v.size);
      globals.push_back(std::move(v));
    }
  }
};

DebugInfo::DebugInfo(const std::string& path) : reader_(std::make_unique<Reader>()) {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address, &debug_path};
  reader_->dwfl = dwfl_begin(&callbacks);
  if (!reader_->dwfl) return;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  dwfl_report_begin(reader_->dwfl);
  reader_->module = dwfl_report_elf(reader_->dwfl, path.c_str(), path.c_str(), fd, 0, true);  // takes the descriptor
  dwfl_report_end(reader_->dwfl, nullptr, nullptr);
  if (!reader_->module) {
    ::close(fd);
    return;
  }
  reader_->present = dwfl_module_getdwarf(reader_->module, &reader_->bias) != nullptr;
  reader_->scopes.emplace(reader_->module);
}

DebugInfo::~DebugInfo() {
  if (reader_->dwfl) dwfl_end(reader_->dwfl);
}

bool DebugInfo::present() const { return reader_->present; }

trace::ProgramSite DebugInfo::place(uint64_t address) const {
  trace::ProgramSite site;
  Dwfl_Module* module = reader_->module;
  if (!module) return site;
  if (const char* symbol = dwfl_module_addrname(module, address)) {
    site.linkage = symbol;
    site.function = plain_name(symbol);
  }
  if (!reader_->present) return site;
  auto found = reader_->scopes->find(address);
  if (!found) return site;
  int number = 0;
  if (Dwarf_Line* line = line_at(found->unit, found->address, &number)) {
    int column = 0;
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    Dwarf_Attribute attribute;
    const char* folder = dwarf_attr(found->unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : nullptr;
    if (file) site.file = file[0] == '/' || !folder ? file : std::string(folder) + "/" + file;
    site.line = static_cast<uint32_t>(number);
    if (dwarf_linecol(line, &column) == 0) site.column = static_cast<uint32_t>(column);
  }
  // The function whose text this is: the innermost, inlined or not.
  if (found->functions.empty()) return site;
  if (std::string name = function_name(&found->functions.back()); !name.empty()) site.function = name;
  site.frame = function_name(&found->functions.front());
  std::string file = site.file;
  uint32_t in_file = site.line;
  for (size_t i = found->functions.size(); i-- > 0;) {
    Dwarf_Die* function = &found->functions[i];
    if (!is_system(file)) {
      site.where = fmt::format("{}:{}", function_name(function), in_file);
      break;
    }
    // Where it was inlined.
    Dwarf_Attribute attribute;
    Dwarf_Files* files = nullptr;
    Dwarf_Word called = 0, line = 0;
    size_t count = 0;
    if (!dwarf_attr(function, DW_AT_call_file, &attribute) || dwarf_formudata(&attribute, &called) != 0 || dwarf_getsrcfiles(found->unit, &files, &count) != 0) break;
    const char* name = dwarf_filesrc(files, called, nullptr, nullptr);
    if (dwarf_attr(function, DW_AT_call_line, &attribute)) dwarf_formudata(&attribute, &line);
    file = name ? name : "";
    in_file = static_cast<uint32_t>(line);
  }
  return site;
}

const std::vector<trace::ProgramVariable>& DebugInfo::globals() const {
  Reader& r = *reader_;
  if (r.globals_read || !r.present) return r.globals;
  r.globals_read = true;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(r.module, unit, &bias)) != nullptr;) r.walk(unit, "", 0);
  r.symbols();
  std::stable_sort(r.globals.begin(), r.globals.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  // An inline variable is described by every unit that has it.
  auto same = [](const auto& a, const auto& b) { return a.address == b.address; };
  r.globals.erase(std::unique(r.globals.begin(), r.globals.end(), same), r.globals.end());
  return r.globals;
}

std::vector<DebugInfo::Local> DebugInfo::locals(uint64_t address) const {
  std::vector<Local> result;
  if (!reader_->present) return result;
  auto found = reader_->scopes->find(address);
  if (!found || found->functions.empty()) return result;
  Dwarf_Die* function = &found->functions.front();
  const std::optional<int64_t> above = reader_->above(function, address);
  if (!above) return result;
  // Its own variables and those of what was inlined into it.
  auto walk = [&](auto&& self, Dwarf_Die* die, const std::string& name, int depth) -> void {
    Dwarf_Die child;
    if (depth > 20 || dwarf_child(die, &child) != 0) return;
    do {
      int tag = dwarf_tag(&child);
      if (tag == DW_TAG_lexical_block) self(self, &child, name, depth + 1);
      if (tag == DW_TAG_inlined_subroutine) self(self, &child, function_name(&child), depth + 1);
      if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) continue;
      Dwarf_Op op;
      Dwarf_Die type;
      const char* variable = dwarf_diename(&child);
      if (!variable || !location(&child, DW_OP_fbreg, &op) || !peel(&child, &type) || size_of(&type) == 0) continue;
      result.push_back({name + "::" + variable, layout_of(&type), static_cast<int64_t>(op.number) - *above, size_of(&type)});
    } while (dwarf_siblingof(&child, &child) == 0);
  };
  walk(walk, function, function_name(function), 0);
  return result;
}

}  // namespace stem::collect
