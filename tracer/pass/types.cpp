// The part of DWARF's type graph that naming and layouts need.
#include "tracer/pass/naming.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/Support/Path.h>

using namespace llvm;

namespace stem::pass {

TypeRef strip(TypeRef type) {
  for (int i = 0; i < 64 && type; ++i) {
    auto* derived = dyn_cast<DIDerivedType>(type.type);
    if (!derived) return type;
    switch (derived->getTag()) {
      case dwarf::DW_TAG_typedef:
      case dwarf::DW_TAG_const_type:
      case dwarf::DW_TAG_volatile_type:
      case dwarf::DW_TAG_restrict_type:
      case dwarf::DW_TAG_atomic_type:
      case dwarf::DW_TAG_member:
        type.type = derived->getBaseType();
        break;
      default:
        return type;
    }
  }
  return type;
}

bool is_array(TypeRef type) {
  type = strip(type);
  return type && type.type->getTag() == dwarf::DW_TAG_array_type && isa<DICompositeType>(type.type);
}

static uint64_t dimension_count(const DICompositeType* array, unsigned dimension) {
  const auto elements = array->getElements();
  if (dimension >= elements.size()) return 0;
  if (const auto* range = dyn_cast_or_null<DISubrange>(elements[dimension])) {
    if (auto count = range->getCount(); auto* constant = dyn_cast_if_present<ConstantInt*>(count))
      return constant->getSExtValue() > 0 ? static_cast<uint64_t>(constant->getSExtValue()) : 0;
  }
  return 0;
}

TypeRef element_of(TypeRef array, uint64_t& count) {
  array = strip(array);
  auto* composite = cast<DICompositeType>(array.type);
  count = dimension_count(composite, array.dimension);
  if (array.dimension + 1 < composite->getElements().size()) return {composite, array.dimension + 1};
  return strip({composite->getBaseType(), 0});
}

uint64_t size_of(TypeRef type) {
  type = strip(type);
  if (!type) return 0;
  if (is_array(type)) {
    uint64_t count = 0;
    const TypeRef element = element_of(type, count);
    return count * size_of(element);
  }
  return type.type->getSizeInBits() / 8;
}

TypeRef pointee_of(TypeRef pointer, bool& reference) {
  pointer = strip(pointer);
  reference = false;
  auto* derived = dyn_cast_or_null<DIDerivedType>(pointer.type);
  if (!derived) return {};
  switch (derived->getTag()) {
    case dwarf::DW_TAG_reference_type:
    case dwarf::DW_TAG_rvalue_reference_type:
      reference = true;
      [[fallthrough]];
    case dwarf::DW_TAG_pointer_type:
      return strip({derived->getBaseType(), 0});
    default:
      return {};
  }
}

DICompositeType* record_of(TypeRef type) {
  type = strip(type);
  auto* composite = dyn_cast_or_null<DICompositeType>(type.type);
  if (!composite) return nullptr;
  switch (composite->getTag()) {
    case dwarf::DW_TAG_structure_type:
    case dwarf::DW_TAG_class_type:
    case dwarf::DW_TAG_union_type:
      return composite;
    default:
      return nullptr;
  }
}

std::string qualified_name(const DIScope* scope, StringRef name) {
  std::string text = name.str();
  for (int i = 0; scope && i < 32; ++i, scope = scope->getScope()) {
    if (isa<DIFile>(scope) || isa<DICompileUnit>(scope)) break;
    if (isa<DILexicalBlockBase>(scope)) continue;
    const StringRef part = scope->getName();
    if (const auto* space = dyn_cast<DINamespace>(scope); space && (space->getExportSymbols() || part.empty())) {
      if (part.empty()) text = "(anonymous)::" + text;
      continue;
    }
    if (!part.empty()) text = part.str() + "::" + text;
  }
  return text;
}

std::string function_name(const Function& function) {
  if (const DISubprogram* subprogram = function.getSubprogram(); subprogram && !subprogram->getName().empty()) {
    const DIScope* scope = subprogram->getScope();
    if (const DISubprogram* declaration = subprogram->getDeclaration()) scope = declaration->getScope();
    return qualified_name(scope, subprogram->getName());
  }
  std::string name = demangle(function.getName());
  if (const size_t open = name.find('('); open != std::string::npos && open > 0) name.resize(open);
  return name;
}

std::string file_name(const DIFile* file) {
  if (!file) return {};
  SmallString<256> path(file->getFilename());
  if (!sys::path::is_absolute(path)) {
    path = file->getDirectory();
    sys::path::append(path, file->getFilename());
  }
  sys::path::remove_dots(path, true);
  return std::string(path);
}

}  // namespace stem::pass
