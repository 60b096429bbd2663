# Run by stem_embed at build time: writes each file as an array of bytes (a raw string would have a limit and a delimiter).
string(REPLACE "," ";" names "${NAMES}")
set(arrays "")
set(table "")
set(index 0)
foreach(name ${names})
  file(READ ${FOLDER}/${name} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char file${index}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", {reinterpret_cast<const char*>(file${index}), sizeof file${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT_HEADER} "#pragma once\n\n#include <span>\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n
struct EmbeddedFile {\n  std::string_view name, text;\n};\n
std::span<const EmbeddedFile> embedded_files();\nstd::string_view embedded_file(std::string_view name);\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUT_SOURCE} "#include \"${HEADER}\"\n\n#include <stdexcept>\n\nnamespace ${NAMESPACE} {\nnamespace {\n${arrays}
const EmbeddedFile files[] = {\n${table}};\n}  // namespace\n
std::span<const EmbeddedFile> embedded_files() { return files; }\n
std::string_view embedded_file(std::string_view name) {\n  for (const EmbeddedFile& file : files) {\n    if (file.name == name) return file.text;\n  }\n  throw std::logic_error(\"no embedded file \" + std::string(name));\n}\n\n}  // namespace ${NAMESPACE}\n")
