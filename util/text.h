// Names and paths come from other people's programs: any bytes at all. What leaves STEM is made harmless here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stem {

// Valid UTF-8: each byte that is not part of it becomes \xNN; everything else stays.
std::string valid_utf8(std::string_view text);

// One line for a terminal: also newlines, escapes and other control characters become \n, \x1b, ...
std::string printable(std::string_view text);

// How many columns a terminal needs for it (code points; wide characters count as one).
size_t columns(std::string_view utf8);

// Lines without their ends; a last line needs no newline.
std::vector<std::string_view> split_lines(std::string_view text);

std::string_view trim(std::string_view text);

// Characters *, ? and nothing else are special; * also matches '/'.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace stem
