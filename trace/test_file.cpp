#include "trace/test_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "util/error.h"

namespace stem::trace {

using nlohmann::json;

namespace {

constexpr int kVersion = 1;

std::optional<Kind> kind_of(const std::string& name) {
  static const Kind kinds[] = {
#define STEM_EVENT(Name, text, visible) Kind::Name,
#include "trace/events.def"
  };
  for (Kind kind : kinds)
    if (name == kind_name(kind)) return kind;
  return std::nullopt;
}

// Reads one JSON object member by member; what is wrong is said with the file and the member's place.
class Fields {
 public:
  Fields(const json& object, std::string file, std::string where) : object_(object), file_(std::move(file)), where_(std::move(where)) {
    if (!object_.is_object()) fail("", "must be an object");
  }

  template <typename... Args>
  [[noreturn]] void fail(const std::string& member, fmt::format_string<Args...> format, Args&&... args) const {
    std::string place = where_.empty() ? member : member.empty() ? where_ : where_ + "." + member;
    user_error("{}: {} {}", file_, place.empty() ? "the file" : place, fmt::format(format, std::forward<Args>(args)...));
  }

  const json* find(const char* member) const {
    auto it = object_.find(member);
    return it == object_.end() ? nullptr : &*it;
  }

  std::string text(const char* member, bool required) const {
    const json* value = find(member);
    if (!value) {
      if (required) fail(member, "is missing");
      return "";
    }
    if (!value->is_string()) fail(member, "must be a string");
    return value->get<std::string>();
  }

  uint32_t count(const char* member, uint32_t missing) const {
    const json* value = find(member);
    if (!value) return missing;
    if (!value->is_number_unsigned() || value->get<uint64_t>() == 0 || value->get<uint64_t>() > UINT32_MAX)
      fail(member, "must be a number from 1 to {}", UINT32_MAX);
    return value->get<uint32_t>();
  }

  std::vector<uint8_t> bytes(const char* member) const {
    auto bytes = unhex(text(member, true));
    if (!bytes) fail(member, "must be hexadecimal bytes, two digits each, in memory order: \"02000000\" is the int 2");
    return *bytes;
  }

  // Calls use(fields, json) for each element of the list.
  template <typename Use>
  void each(const char* member, Use use) const {
    const json* list = find(member);
    if (!list) return;
    if (!list->is_array()) fail(member, "must be a list");
    for (size_t i = 0; i < list->size(); ++i) {
      std::string place = fmt::format("{}{}{}[{}]", where_, where_.empty() ? "" : ".", member, i);
      use((*list)[i], place);
    }
  }

 private:
  const json& object_;
  std::string file_;
  std::string where_;
};

Step parse_step(const Fields& fields) {
  Step step;
  step.thread = fields.text("thread", true);
  step.count = fields.count("count", 1);
  if (std::string site = fields.text("site", false); !site.empty()) {
    char* end = nullptr;
    step.site = std::strtoull(site.c_str(), &end, 16);
    if (site.size() > 16 || *end) fields.fail("site", "must be a site's key: 16 hexadecimal digits");
  }
  if (std::string kind = fields.text("kind", false); !kind.empty()) {
    step.kind = kind_of(kind);
    if (!step.kind) fields.fail("kind", "is not a kind of event: {}", kind);
    if (!is_visible(*step.kind)) fields.fail("kind", "is never scheduled: {}", kind);
  }
  step.wakes = fields.text("wakes", false);
  return step;
}

std::string read_file(const std::string& file_name) {
  std::ifstream in(file_name, std::ios::binary);
  if (!in) user_error("cannot read {}: {}", file_name, std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

std::optional<std::vector<uint8_t>> unhex(const std::string& text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() % 2) return std::nullopt;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return bytes;
}

void extend(std::vector<Step>& schedule, const std::string& thread, const Site* site, Kind kind, const std::string& wakes) {
  uint64_t key = site ? site->key : 0;
  bool join = !schedule.empty() && schedule.back().thread == thread && schedule.back().wakes.empty() &&
              schedule.back().count < UINT32_MAX;
  if (join) {
    Step& step = schedule.back();
    ++step.count;
    step.site = key;
    step.kind = kind;
    step.wakes = wakes;
  } else {
    schedule.push_back({thread, 1, key, kind, wakes});
  }
}

Test test_of(const Trace& trace, size_t last) {
  Test test;
  test.program = trace.meta.program;
  test.build_id = trace.meta.build_id;
  test.argv = trace.meta.argv;
  test.cwd = trace.meta.cwd;
  test.inputs = trace.inputs;
  test.options = trace.meta.options;
  for (size_t i = 0; i < trace.events.size() && i <= last; ++i) {
    const Event& event = trace.events[i];
    const std::string& thread = trace.threads.at(event.thread).path;
    if (event.kind == Kind::Nondet && event.value < trace.nondets.size())
      test.feed.push_back({thread, trace.nondets[event.value].what, trace.nondets[event.value].bytes});
    if (!is_visible(event.kind)) continue;
    std::string wakes;
    if (event.kind == Kind::Signal && event.value != 0 && event.value <= trace.threads.size())
      wakes = trace.threads[event.value - 1].path;
    extend(test.schedule, thread, event.site ? &trace.sites.at(event.site) : nullptr, event.kind, wakes);
  }
  return test;
}

std::string to_json(const Test& test) {
  json root = {{"stem_test", kVersion}, {"program", {{"path", test.program}}}};
  if (!test.build_id.empty()) root["program"]["build_id"] = test.build_id;
  if (!test.argv.empty()) root["argv"] = test.argv;
  if (!test.cwd.empty()) root["cwd"] = test.cwd;
  for (const Input& input : test.inputs) root["inputs"].push_back({{"name", input.name}, {"bytes", hex(input.bytes)}});
  for (const Step& step : test.schedule) {
    json object = {{"thread", step.thread}, {"count", step.count}};
    if (step.site) object["site"] = fmt::format("{:016x}", step.site);
    if (step.kind) object["kind"] = kind_name(*step.kind);
    if (!step.wakes.empty()) object["wakes"] = step.wakes;
    root["schedule"].push_back(std::move(object));
  }
  for (const Answer& answer : test.feed)
    root["feed"].push_back({{"thread", answer.thread}, {"what", answer.what}, {"bytes", hex(answer.bytes)}});
  if (!test.options.empty()) root["options"] = test.options;
  return root.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Test parse_test(const std::string& text, const std::string& file_name) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::exception& error) {
    user_error("{}: not a test file: {}", file_name, error.what());
  }
  Fields fields(root, file_name, "");
  const json* version = fields.find("stem_test");
  if (!version) user_error("{}: not a test file: it has no \"stem_test\" member", file_name);
  if (*version != kVersion)
    user_error("{}: a test file of version {}; this STEM reads version {}", file_name, version->dump(), kVersion);

  Test test;
  const json* program = fields.find("program");
  if (!program) fields.fail("program", "is missing");
  Fields program_fields(*program, file_name, "program");
  test.program = program_fields.text("path", true);
  test.build_id = program_fields.text("build_id", false);
  test.cwd = fields.text("cwd", false);
  fields.each("argv", [&](const json& element, const std::string& where) {
    if (!element.is_string()) user_error("{}: {} must be a string", file_name, where);
    test.argv.push_back(element.get<std::string>());
  });
  fields.each("inputs", [&](const json& element, const std::string& where) {
    Fields input(element, file_name, where);
    test.inputs.push_back({input.text("name", true), input.bytes("bytes")});
  });
  fields.each("schedule", [&](const json& element, const std::string& where) {
    test.schedule.push_back(parse_step(Fields(element, file_name, where)));
  });
  fields.each("feed", [&](const json& element, const std::string& where) {
    Fields answer(element, file_name, where);
    test.feed.push_back({answer.text("thread", true), answer.text("what", true), answer.bytes("bytes")});
  });
  if (const json* options = fields.find("options")) {
    Fields option_fields(*options, file_name, "options");
    for (const auto& [key, value] : options->items()) test.options[key] = option_fields.text(key.c_str(), true);
  }
  return test;
}

Test load_test(const std::string& file_name) { return parse_test(read_file(file_name), file_name); }

void save_test(const Test& test, const std::string& file_name) {
  std::string part = fmt::format("{}.{}.part", file_name, getpid());
  {
    std::ofstream out(part, std::ios::binary);
    out << to_json(test);
    out.flush();
    if (!out) {
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      user_error("cannot write {}: {}", file_name, std::strerror(errno));
    }
  }
  std::error_code error;
  std::filesystem::rename(part, file_name, error);
  if (error) user_error("cannot write {}: {}", file_name, error.message());
}

bool is_test_file(const std::string& file_name) {
  std::ifstream in(file_name, std::ios::binary);
  char c = 0;
  while (in.get(c))
    if (!std::isspace(static_cast<unsigned char>(c))) return c == '{';
  return false;
}

}  // namespace stem::trace
