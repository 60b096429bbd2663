// An offset into an object as a field path, from the layout string of trace/site_record.h. One pass over the text, no tree.
#include "trace/program.h"

#include <charconv>

namespace stem::trace {

namespace {

constexpr int kMaxDepth = 64;

class Walker {
 public:
  Walker(std::string_view text, uint64_t offset) : rest_(text), offset_(offset) {}

  bool number(uint64_t& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Parses one type. Where `inside`, the offset lies within it and its path is appended; elsewhere it is passed over.
  bool type(bool inside, int depth) {
    if (depth > kMaxDepth) return false;
    if (skip('{')) return members(inside, depth);
    if (skip('[')) {
      uint64_t stride = 0, count = 0;
      if (!number(stride) || !skip('*') || !number(count)) return false;
      if (inside) {
        path += "[]";
        if (stride != 0) offset_ %= stride;
      }
      return type(inside, depth + 1) && skip(']');
    }
    return true;
  }

  std::string path;

 private:
  bool members(bool inside, int depth) {
    bool found = false;
    if (skip('}')) return true;
    do {
      const size_t at = rest_.find('@');
      if (at == std::string_view::npos) return false;
      const std::string_view name = rest_.substr(0, at);
      rest_.remove_prefix(at + 1);
      uint64_t offset = 0, size = 0;
      if (!number(offset) || !skip('+') || !number(size)) return false;
      // A flexible array member has size 0 and takes everything behind it.
      const bool open = size == 0 && !rest_.empty() && rest_.front() == '[';
      const bool here = inside && !found && offset_ >= offset && (open || offset_ - offset < size);
      if (here) {
        found = true;
        offset_ -= offset;
        if (!name.empty()) path.append(".").append(name);
      }
      if (!type(here, depth + 1)) return false;
    } while (skip(','));
    return skip('}');
  }

  std::string_view rest_;
  uint64_t offset_;
};

}  // namespace

std::string field_path(std::string_view layout, uint64_t offset, uint64_t object_size) {
  Walker size_reader(layout, 0);
  uint64_t size = 0;
  if (!size_reader.number(size) || size == 0) return {};
  const size_t digits = layout.find_first_not_of("0123456789");
  const std::string_view type = digits == std::string_view::npos ? std::string_view() : layout.substr(digits);
  std::string prefix;
  if (object_size >= 2 * size && object_size % size == 0) {  // several elements of the type
    prefix = "[]";
    offset %= size;
  }
  Walker walker(type, offset);
  walker.type(true, 0);
  return prefix + walker.path;
}

}  // namespace stem::trace
