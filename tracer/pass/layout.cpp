#include "tracer/pass/layout.h"

#include <llvm/BinaryFormat/Dwarf.h>

using namespace llvm;

namespace stem::pass {

namespace {

constexpr int kMaxDepth = 12;
constexpr size_t kMaxText = 8192;

void write_type(std::string& out, TypeRef type, int depth);

void write_record(std::string& out, const DICompositeType* record, int depth) {
  out += '{';
  bool first = true;
  for (const DINode* node : record->getElements()) {
    const auto* member = dyn_cast_or_null<DIDerivedType>(node);
    if (!member || member->isStaticMember()) continue;
    const bool base = member->getTag() == dwarf::DW_TAG_inheritance;
    if (!base && member->getTag() != dwarf::DW_TAG_member) continue;
    const TypeRef type{member->getBaseType(), 0};
    const uint64_t begin = member->getOffsetInBits() / 8;
    const uint64_t end = (member->getOffsetInBits() + member->getSizeInBits() + 7) / 8;
    const uint64_t size = member->isBitField() ? end - begin : size_of(type);
    if (!first) out += ',';
    first = false;
    const StringRef name = base ? StringRef() : member->getName();
    for (const char c : name)
      if (!strchr("@+{}[],*", c)) out += c;
    out += '@' + std::to_string(begin) + '+' + std::to_string(size);
    if (!member->isBitField()) write_type(out, type, depth + 1);
  }
  out += '}';
}

void write_type(std::string& out, TypeRef type, int depth) {
  type = strip(type);
  if (!type || depth > kMaxDepth || out.size() > kMaxText) return;
  if (const DICompositeType* record = record_of(type)) {
    if (!record->getElements().empty()) write_record(out, record, depth);
  } else if (is_array(type)) {
    uint64_t count = 0;
    const TypeRef element = element_of(type, count);
    out += '[' + std::to_string(size_of(element)) + '*' + std::to_string(count);
    write_type(out, element, depth + 1);
    out += ']';
  }
}

}  // namespace

std::string layout_of(TypeRef type) {
  type = strip(type);
  const uint64_t size = size_of(type);
  if (size == 0) return {};
  std::string out = std::to_string(size);
  const size_t digits = out.size();
  write_type(out, type, 0);
  return out.size() == digits ? std::string() : out;
}

}  // namespace stem::pass
