#include "report/suppress.h"

#include <fstream>
#include <sstream>

#include "util/error.h"
#include "util/text.h"

namespace stem::report {
namespace {

constexpr std::string_view kMark = "stem:ignore";

// Lines that a comment excuses, by file: line -> reason.
std::map<std::string, std::map<int64_t, std::string>> comments_of(Model& model) {
  std::map<std::string, std::map<int64_t, std::string>> found;
  for (const auto& [file, text] : model.sources) {
    if (text.find(kMark) == std::string::npos) continue;
    int64_t number = 0;
    for (std::string_view line : split_lines(text)) {
      ++number;
      const size_t at = line.find(kMark);
      const size_t slashes = line.find("//");
      if (at == std::string_view::npos || slashes == std::string_view::npos || slashes > at) continue;
      if (!trim(line.substr(slashes + 2, at - slashes - 2)).empty()) continue;
      const std::string_view reason = trim(line.substr(at + kMark.size()));
      if (reason.empty()) {
        model.notes.push_back(fmt::format("{}:{}: stem:ignore without a reason suppresses nothing; say why after it.", printable(file), number));
        continue;
      }
      const bool alone = trim(line.substr(0, slashes)).empty();
      found[file][alone ? number + 1 : number] = std::string(reason);
    }
  }
  return found;
}

bool applies(const Rule& rule, const Pair& pair) {
  const auto either = [&](const std::string& a, const std::string& b) {
    return (!a.empty() && matches_glob(rule.pattern, a)) || (!b.empty() && matches_glob(rule.pattern, b));
  };
  switch (rule.kind) {
    case Rule::Variable: return either(pair.variable, "");
    case Rule::Function: return either(pair.def.function, pair.use.function);
    case Rule::File: return either(pair.def.file, pair.use.file);
    case Rule::Fingerprint: return rule.pattern == pair.fingerprint;
  }
  return false;
}

}  // namespace

std::vector<Rule> parse_rules(const std::string& text, const std::string& file_name) {
  std::vector<Rule> rules;
  int number = 0;
  for (std::string_view line : split_lines(text)) {
    ++number;
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words{std::string(line)};
    std::string kind, pattern, reason;
    words >> kind >> pattern;
    std::getline(words, reason);
    reason = trim(reason);
    Rule rule{Rule::Variable, pattern, reason};
    if (kind == "variable") rule.kind = Rule::Variable;
    else if (kind == "function") rule.kind = Rule::Function;
    else if (kind == "file") rule.kind = Rule::File;
    else if (kind == "pair") rule.kind = Rule::Fingerprint;
    else user_error("{}:{}: {} is not a kind of suppression; write: variable|function|file|pair PATTERN REASON", file_name, number, printable(kind));
    if (reason.empty()) user_error("{}:{}: the reason is missing; write: {} {} REASON", file_name, number, kind, printable(pattern));
    rules.push_back(rule);
  }
  return rules;
}

std::vector<Rule> read_rules(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  std::ostringstream text;
  text << in.rdbuf();
  return parse_rules(text.str(), file.string());
}

void suppress(Model& model, const std::vector<Rule>& rules) {
  const auto comments = comments_of(model);
  const auto excused = [&](const Place& place) -> const std::string* {
    const auto file = comments.find(place.file);
    if (file == comments.end()) return nullptr;
    const auto line = file->second.find(place.line);
    return line == file->second.end() ? nullptr : &line->second;
  };
  std::map<int64_t, Suppressed> by_id;
  for (Pair& pair : model.pairs) {
    for (const Place* place : {&pair.use, &pair.def}) {
      if (const std::string* reason = excused(*place)) {
        pair.suppressed = Suppressed::InSource;
        pair.reason = *reason;
      }
    }
    for (const Rule& rule : rules) {
      if (pair.suppressed != Suppressed::No || !applies(rule, pair)) continue;
      pair.suppressed = Suppressed::External;
      pair.reason = rule.reason;
    }
    by_id[pair.id] = pair.suppressed;
  }
  for (Violation& violation : model.violations) {
    if (violation.pair) violation.suppressed = by_id[violation.pair];
    else if (excused(violation.use)) violation.suppressed = Suppressed::InSource;
  }
}

}  // namespace stem::report
