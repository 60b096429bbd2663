// Options are read the way clang does, as far as the questions of command_line.h need it. What is not known is an option
// without a separate value: the only harm of a mistake is that a value is taken for an input file.
#include "tracer/driver/command_line.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace stem::driver {

namespace {

constexpr int kMaxResponseDepth = 16;

// Options whose value is the next argument.
constexpr std::array<std::string_view, 42> kSeparate = {
    "-o", "-x", "-I", "-L", "-D", "-U", "-l", "-T", "-u", "-z", "-e", "-F", "-B", "-A", "-G", "-arch", "-target", "--target", "-include",
    "-imacros", "-isystem", "-iquote", "-idirafter", "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-isysroot", "--sysroot",
    "-MF", "-MT", "-MQ", "-MJ", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xclang", "-mllvm", "--param", "-rpath", "-resource-dir",
    "-framework", "-wrapper"};

// Questions that a compiler answers without compiling.
constexpr std::array<std::string_view, 12> kNoLink = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--preprocess", "--compile", "--assemble", "-emit-ast", "--analyze", "-cc1"};

template <typename Range>
bool contains(const Range& range, std::string_view value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return name.ends_with(e); });
}

// The words of a response file: blanks separate, quotes and backslashes keep.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote ? c == quote : (c == '"' || c == '\'')) {
      quote = quote ? 0 : c;
      inside = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (!quote && std::isspace(static_cast<unsigned char>(c))) {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  return words;
}

void expand(const std::vector<std::string>& arguments, std::vector<std::string>& out, int depth) {
  for (const std::string& argument : arguments) {
    std::ifstream file;
    if (argument.size() > 1 && argument[0] == '@' && depth < kMaxResponseDepth) file.open(argument.substr(1));
    if (!file.is_open() || !file.good()) {
      out.push_back(argument);
      continue;
    }
    std::stringstream text;
    text << file.rdbuf();
    expand(words_of(text.str()), out, depth + 1);
  }
}

void read_debug(std::string_view a, CommandLine& line) {
  if (a == "-g0" || a == "-g1" || a == "-gline-tables-only" || a == "-gmlt" || a == "-gline-directives-only" || a == "-ggdb0" || a == "-ggdb1") line.debug_info = false;
  else if (a == "-g" || a == "-g2" || a == "-g3" || a.starts_with("-ggdb") || a.starts_with("-gdwarf") || a == "-glldb" || a == "-gfull") line.debug_info = true;
}

void read_input(std::string_view name, std::string_view language, CommandLine& line) {
  line.has_inputs = true;
  if (language.find("header") != std::string_view::npos || (language.empty() && ends_with_any(name, {".h", ".hh", ".hpp", ".hxx", ".H"}))) line.header = true;
  if (!language.empty() || !ends_with_any(name, {".o", ".a", ".so", ".lo", ".obj", ".la"})) line.compiles = line.compiles || name.find(".so.") == std::string_view::npos;
}

}  // namespace

CommandLine read_command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  expand(arguments, all, 0);
  CommandLine line;
  std::string language;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& a = all[i];
    if (a.empty() || a[0] != '-' || a == "-") {
      read_input(a, language, line);
      continue;
    }
    read_debug(a, line);
    if (contains(kNoLink, a)) line.links = false;
    if (a == "-E" || a == "-M" || a == "-MM" || a == "--preprocess") line.preprocesses_only = true;
    if (a == "-shared" || a == "--shared") line.shared = true;
    if (a == "-r" || a == "-Wl,-r") line.relocatable = true;
    if (a == "-static" || a == "--static" || a == "-static-pie") line.is_static = true;
    if (a == "-m32" || a == "-mx32") line.m32 = true;
    if (a.starts_with("-fsanitize=")) line.thread_sanitizer = ("," + a.substr(11) + ",").find(",thread,") != std::string::npos;
    if (a == "-fomit-frame-pointer" || a == "-fno-omit-frame-pointer") line.frame_pointer_given = true;
    if (a.starts_with("-flto")) line.lto = true;
    if (a == "-fno-lto") line.lto = false;
    if (a.starts_with("-fuse-ld=") || a.starts_with("--ld-path=")) line.linker_given = true;
    if (a == "-nostdlib" || a == "-nostartfiles" || a == "-nodefaultlibs") line.bare = true;
    if (a.starts_with("-l") && a.size() > 2) line.has_inputs = true;
    if (a.starts_with("-x") && a.size() > 2) language = a.substr(2);
    if (contains(kSeparate, a) && i + 1 < all.size()) {
      ++i;
      if (a == "-x") language = all[i];
      if (a == "-l") line.has_inputs = true;
    }
    if (language == "none") language.clear();
  }
  if (line.header) line.links = false;
  return line;
}

}  // namespace stem::driver
