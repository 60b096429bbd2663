#include "tracer/launch/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace stem::launch {

using nlohmann::json;

namespace {

// What a thread does or waits for, as a person says it. Kinds not named are said as they are called.
std::string phrase(const std::string& op) {
  static const std::pair<const char*, const char*> phrases[] = {
      {"lock", "lock"},           {"rdlock", "read-lock"},       {"wrlock", "write-lock"},
      {"wait", "wait on"},        {"wake", "be woken on"},       {"sem-wait", "take the semaphore"},
      {"join", "join"},           {"barrier-leave", "pass the barrier"}, {"once-pass", "pass the once"},
      {"read", "read"},           {"write", "write"},            {"rmw", "update"},
      {"atomic-begin", "enter the atomic section"},
  };
  for (auto [name, text] : phrases)
    if (op == name) return text;
  return op;
}

class Renderer {
 public:
  explicit Renderer(const trace::Trace& names) : names_(names) {}

  std::string render(const json& message) const {
    std::string kind = text(message, "kind");
    if (kind == "deadlock") return "deadlock: no thread can go on" + threads(message);
    if (kind == "livelock") return "livelock: every thread that can run only repeats what it did" + threads(message);
    if (kind == "divergence") return divergence(message);
    if (kind == "blocked") return fmt::format("{} was blocked in a call that STEM does not know{}{}", thread(text(message, "thread")), at(message), why(message));
    if (kind == "refused") return fmt::format("refused{}{}", why(message), at(message));
    std::string sentence = text(message, "why");
    return (sentence.empty() ? kind : sentence) + at(message);
  }

 private:
  static std::string text(const json& object, const char* member) {
    auto it = object.find(member);
    if (it == object.end()) return "";
    if (it->is_string()) return it->get<std::string>();
    return it->is_number() ? it->dump() : "";
  }

  std::string thread(const std::string& path) const {
    for (const trace::Thread& one : names_.threads)
      if (one.path == path && !one.start.empty() && path != "main") return fmt::format("thread {} ({})", path, one.start);
    return path.empty() ? "a thread" : "thread " + path;
  }

  const trace::Site* site(const json& object) const {
    std::string key = text(object, "site");
    if (key.empty()) return nullptr;
    uint64_t wanted = std::strtoull(key.c_str(), nullptr, 16);
    for (size_t i = 1; i < names_.sites.size(); ++i)
      if (names_.sites[i].key == wanted && wanted) return &names_.sites[i];
    return nullptr;
  }

  // An access's site says what is accessed; a call's says only which function is called.
  std::string variable(const json& object) const {
    std::string op = text(object, "op"), address = text(object, "addr");
    bool access = op == "read" || op == "write" || op == "rmw";
    if (const trace::Site* where = site(object); where && access && !where->text.empty()) return where->text;
    if (address.empty()) return "";
    uint64_t wanted = std::strtoull(address.c_str(), nullptr, 16);
    for (auto it = names_.objects.rbegin(); it != names_.objects.rend(); ++it)
      if (it->base <= wanted && wanted - it->base < std::max<uint64_t>(it->size, 1) && !it->name.empty()) return it->name;
    if (const trace::Site* where = site(object)) return where->text;
    return "";
  }

  std::string at(const json& object) const {
    const trace::Site* where = site(object);
    if (!where) return "";
    return fmt::format(" at {}{}", source_line(*where), where->function.empty() ? "" : " in " + where->function);
  }

  static std::string why(const json& object) {
    std::string sentence = text(object, "why");
    return sentence.empty() ? "" : ": " + sentence;
  }

  // "lock m at prog.c:12 in worker"
  std::string operation(const json& object) const {
    std::string op = text(object, "op"), name = variable(object);
    return phrase(op.empty() ? "go on" : op) + (name.empty() ? "" : " " + name) + at(object);
  }

  std::string threads(const json& message) const {
    std::string lines;
    auto list = message.find("threads");
    if (list == message.end() || !list->is_array()) return "";
    for (const json& one : *list) {
      if (!one.is_object()) continue;
      std::string holder = text(one, "holder");
      lines += fmt::format("\n  {} waits to {}{}", thread(text(one, "thread")), operation(one),
                           holder.empty() ? "" : fmt::format(", held by {}{}", thread(holder), one.contains("ended") ? ", which has ended" : ""));
    }
    return lines;
  }

  std::string divergence(const json& message) const {
    std::string line = "the run left the schedule";
    if (std::string step = text(message, "step"); !step.empty()) line += fmt::format(" at step {}", step);
    line += why(message);
    auto wanted = message.find("wanted"), found = message.find("found");
    if (wanted != message.end() && wanted->is_object())
      line += fmt::format("\n  the schedule wants {} to {}", thread(text(message, "thread")), operation(*wanted));
    if (found != message.end() && found->is_object()) line += fmt::format("\n  but it is about to {}", operation(*found));
    return line + threads(message);
  }

  const trace::Trace& names_;
};

std::optional<json> parse(const std::string& text) {
  json message = json::parse(text, nullptr, false);
  if (message.is_discarded() || !message.is_object() || !message.contains("kind") || !message["kind"].is_string()) return std::nullopt;
  return message;
}

}  // namespace

std::string render_message(const std::string& text, const trace::Trace& names) {
  auto message = parse(text);
  return message ? Renderer(names).render(*message) : text;
}

std::string message_kind(const std::string& text) {
  auto message = parse(text);
  return message ? (*message)["kind"].get<std::string>() : "note";
}

std::string source_line(const trace::Site& site) {
  if (site.file.empty()) return "an unknown line";
  namespace fs = std::filesystem;
  std::error_code error;
  std::string file = site.file;
  fs::path here = fs::current_path(error);
  if (!error) {
    fs::path relative = fs::path(file).lexically_relative(here);
    if (!relative.empty() && *relative.begin() != "..") file = relative.string();
  }
  return fmt::format("{}:{}", file, site.line);
}

}  // namespace stem::launch
