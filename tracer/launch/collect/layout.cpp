#include "tracer/launch/collect/layout.h"

#include <algorithm>
#include <charconv>

namespace stem::collect {

namespace {

bool number(std::string_view& rest, uint64_t& value) {
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}

bool skip(std::string_view& rest, char c) {
  if (rest.empty() || rest.front() != c) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

Layout::Layout(std::string_view text) {
  std::string_view rest = text;
  if (!number(rest, size_)) size_ = 0;
  if (size_ == 0) return;
  parse(rest, 0, 0);
}

bool Layout::parse(std::string_view& rest, uint32_t node, int depth) {
  if (depth > 64 || nodes_.size() > 100000) return false;
  if (skip(rest, '[')) {
    uint64_t stride = 0, count = 0;
    if (!number(rest, stride) || !skip(rest, '*') || !number(rest, count)) return false;
    auto child = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({nodes_[node].path + "[]", 0, 0, {}});
    nodes_[node].stride = stride ? stride : ~0ull;
    nodes_[node].child = child;
    return parse(rest, child, depth + 1) && skip(rest, ']');
  }
  if (!skip(rest, '{')) return true;
  if (skip(rest, '}')) return true;
  do {
    size_t at = rest.find('@');
    if (at == std::string_view::npos) return false;
    std::string name(rest.substr(0, at));
    rest.remove_prefix(at + 1);
    uint64_t offset = 0, size = 0;
    if (!number(rest, offset) || !skip(rest, '+') || !number(rest, size)) return false;
    bool open = size == 0 && !rest.empty() && rest.front() == '[';
    auto child = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({name.empty() ? nodes_[node].path : nodes_[node].path + "." + name, 0, 0, {}});
    nodes_[node].members.push_back({offset, size, open, child});
    if (!parse(rest, child, depth + 1)) return false;
  } while (skip(rest, ','));
  return skip(rest, '}');
}

uint32_t Layout::field(uint64_t offset, uint64_t* begin, uint64_t* end) const {
  uint32_t at = 0;
  uint64_t low = 0, high = size_, whole = offset;  // low: of the node; offset is from there
  while (true) {
    const Node& node = nodes_[at];
    if (node.child) {
      const Node& element = nodes_[node.child];
      uint64_t within = offset % node.stride;
      if (element.child || !element.members.empty()) {
        low += offset - within;
        high = std::min(high, low + node.stride);
      }
      offset = within;
      at = node.child;
      continue;
    }
    uint32_t next = 0;
    for (const Member& m : node.members) {
      if (offset >= m.offset && (m.open || offset - m.offset < m.size)) {
        next = m.node;
        offset -= m.offset;
        low += m.offset;
        if (!m.open) high = std::min(high, low + m.size);
        break;
      }
    }
    if (!next) {
      if (!node.members.empty()) low = whole, high = whole + 1;  // between the members
      if (begin) *begin = low;
      if (end) *end = high;
      return at;
    }
    at = next;
  }
}

}  // namespace stem::collect
