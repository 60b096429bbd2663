#include "util/text.h"

#include <fmt/core.h>

namespace stem {
namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 if there is none (RFC 3629: no overlong forms, no surrogates).
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return 4;
  }
  return 0;
}

std::string escape(std::string_view text, bool controls) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", c);
    } else if (controls && c == '\n') {
      out += "\\n";
    } else if (controls && c == '\t') {
      out += "\\t";
    } else if (controls && c == '\r') {
      out += "\\r";
    } else if (controls && (c < 0x20 || c == 0x7f)) {
      out += fmt::format("\\x{:02x}", c);
    } else if (controls && c == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) {  // C1 controls
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[1]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length ? length : 1);
  }
  return out;
}

}  // namespace

std::string valid_utf8(std::string_view text) { return escape(text, false); }
std::string printable(std::string_view text) { return escape(text, true); }

size_t columns(std::string_view utf8) {
  size_t count = 0;
  for (char c : utf8) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace stem
