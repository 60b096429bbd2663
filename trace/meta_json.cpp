#include "trace/meta_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace stem::trace {

using nlohmann::json;

namespace {

// The JSON library takes UTF-8 only. Every byte above 127 goes through it as the code point of that number, and back.
std::string to_code_points(const std::string& text) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x80) out += static_cast<char>(c);
    else out += fmt::format("\\u00{:02x}", c);
  }
  return out;
}

std::string from_code_points(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = text[i];
    if ((c == 0xc2 || c == 0xc3) && i + 1 < text.size()) {
      out += static_cast<char>((c & 3) << 6 | (text[++i] & 0x3f));
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

}  // namespace

Meta meta_from_json(const std::string& text) {
  Meta meta;
  json j = json::parse(to_code_points(text), nullptr, false);
  if (!j.is_object()) return meta;
  auto string = [&](const char* key, std::string& to) {
    if (j.contains(key) && j[key].is_string()) to = from_code_points(j[key].get<std::string>());
  };
  string("recorder", meta.recorder);
  string("program", meta.program);
  string("build_id", meta.build_id);
  string("cwd", meta.cwd);
  string("mode", meta.mode);
  if (j.contains("seed") && j["seed"].is_number_integer()) meta.seed = j["seed"].get<uint64_t>();
  if (j.contains("semantics")) meta.semantics = j["semantics"] == true || j["semantics"] == 1;
  if (j.contains("argv") && j["argv"].is_array()) {
    for (const json& arg : j["argv"]) {
      if (arg.is_string()) meta.argv.push_back(from_code_points(arg.get<std::string>()));
    }
  }
  if (j.contains("options") && j["options"].is_object()) {
    for (const auto& [key, value] : j["options"].items())
      if (value.is_string()) meta.options[from_code_points(key)] = from_code_points(value.get<std::string>());
  }
  return meta;
}

}  // namespace stem::trace
