// lcov: def-use coverage for viewers of line coverage. A line with reads is a line, hit as often as flows into it were
// seen; each definition that can reach it is a branch of that line, taken as often as it was seen to. So the branch
// coverage that a viewer shows is def-use coverage, with the same denominator as every other format.
#include <fmt/core.h>

#include "report/formats.h"
#include "util/text.h"

namespace stem::report {
namespace {

// One record a line: names must not contain newlines.
std::string field(const std::string& raw) { return printable(raw); }

struct Function {
  int64_t line = 0;
  int64_t hits = 0;
};

}  // namespace

std::string lcov(const Model& model) {
  std::map<std::string, std::vector<const Pair*>> by_file;
  for (const Pair& pair : model.pairs) {
    if (!pair.use.known() || pair.impossible() || (pair.suppressed != Suppressed::No && !pair.covered())) continue;
    by_file[pair.use.file].push_back(&pair);
  }
  std::string out;
  for (const auto& [file, pairs] : by_file) {
    const bool absolute = file.starts_with('/');
    out += "TN:defuse\nSF:" + field(absolute || model.project.empty() ? file : model.project + "/" + file) + "\n";
    std::map<int64_t, int64_t> lines;
    std::map<int64_t, int> branches;
    std::map<std::string, Function> functions;
    std::string branch_records;
    int64_t taken = 0;
    for (const Pair* pair : pairs) {
      int64_t count = 0;
      for (const Flow& flow : pair->flows) count += flow.state == "explicit" ? flow.count : 0;
      if (pair->covered() && count == 0) count = 1;
      lines[pair->use.line] += count;
      Function& function = functions[pair->use.function];
      if (!function.line || pair->use.line < function.line) function.line = pair->use.line;
      function.hits += count;
      branch_records += fmt::format("BRDA:{},0,{},{}\n", pair->use.line, branches[pair->use.line]++, count);
      taken += count > 0;
    }
    int64_t functions_hit = 0, lines_hit = 0, named = 0;
    for (const auto& [name, function] : functions) {
      if (name.empty()) continue;
      ++named;
      out += fmt::format("FN:{},{}\n", function.line, field(name));
    }
    for (const auto& [name, function] : functions) {
      if (name.empty()) continue;
      out += fmt::format("FNDA:{},{}\n", function.hits, field(name));
      functions_hit += function.hits > 0;
    }
    out += fmt::format("FNF:{}\nFNH:{}\n", named, functions_hit) + branch_records;
    out += fmt::format("BRF:{}\nBRH:{}\n", pairs.size(), taken);
    for (const auto& [line, hits] : lines) {
      out += fmt::format("DA:{},{}\n", line, hits);
      lines_hit += hits > 0;
    }
    out += fmt::format("LF:{}\nLH:{}\nend_of_record\n", lines.size(), lines_hit);
  }
  return out;
}

}  // namespace stem::report
