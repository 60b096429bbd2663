#include "explorer/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace stem::explorer {

std::string place_text(const std::string& file, uint32_t line, bool brief) {
  if (brief) return std::to_string(line);
  return fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
}

std::string site_text(const Knowledge& known, uint64_t key, bool brief) {
  const uint32_t site = known.site(key);
  if (site == trace::kNone) return "?";
  return place_text(known.program().sites[site].file, known.program().sites[site].line, brief);
}

bool one_file(const Knowledge& known) {
  const auto& sites = known.program().sites;
  return std::all_of(sites.begin(), sites.end(),
                     [&](const analysis::StaticSite& site) { return site.file == sites[0].file; });
}

std::string pair_text(const Knowledge& known, const PairKey& pair, bool brief) {
  const bool short_lines = brief && one_file(known);
  std::string def = pair.def == kInitialKey ? (brief ? "0" : "initial value")
                    : pair.def == kInputKey ? "input"
                                            : site_text(known, pair.def, short_lines);
  const std::string use = site_text(known, pair.use, short_lines);
  return brief ? fmt::format("{} W{}->R{}", pair.variable, def, use)
               : fmt::format("{}: {} -> {}", pair.variable, def, use);
}

std::string outcome_text(const Knowledge& known, const analysis::BranchOutcome& outcome, bool brief) {
  if (outcome.site == analysis::kInitial) return brief ? "W0" : "initial value";
  const analysis::StaticSite& site = known.program().sites[outcome.site];
  std::string way = outcome.outcome ? "T" : "F";
  if (site.text == "switch") way = outcome.is_default ? " default" : fmt::format(" case {}", outcome.outcome);
  const std::string place = place_text(site.file, site.line, brief && one_file(known));
  return brief ? fmt::format("b{}{}", place, way) : fmt::format("{} {}", place, way);
}

std::string escort_text(const Knowledge& known, const analysis::EscortPair& pair, bool brief) {
  return fmt::format("{}{}{}", outcome_text(known, pair.def, brief), brief ? "=>" : " => ",
                     outcome_text(known, pair.use, brief));
}

std::string point_text(const trace::Trace& trace, uint32_t event, uint64_t value) {
  const trace::Event& e = trace.events[event];
  const trace::Site& site = trace.sites[e.site];
  const std::string where =
      fmt::format("{} ({}), {}", place_text(site.file, site.line), site.function, trace.threads[e.thread].path);
  if (e.kind == trace::Kind::Assert) return fmt::format("{}: assertion {} fails", where, site.text);
  return fmt::format("{}: {} instead of {}", where, static_cast<int64_t>(value), static_cast<int64_t>(e.value));
}

std::string input_text(const trace::Input& input) {
  const auto& bytes = input.bytes;
  if (!bytes.empty() && bytes.size() <= 8 && (bytes.size() & (bytes.size() - 1)) == 0) {
    uint64_t bits = 0;
    for (size_t k = bytes.size(); k-- > 0;) bits = bits << 8 | bytes[k];
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
    return fmt::format("{}={}", input.name, static_cast<int64_t>(bits << unused) >> unused);
  }
  const auto end = std::find(bytes.begin(), bytes.end(), 0);
  if (std::all_of(bytes.begin(), end, [](uint8_t b) { return b >= 32 && b < 127; }))
    return fmt::format("{}=\"{}\"", input.name, std::string(bytes.begin(), end));
  return fmt::format("{}=hex:{}", input.name, trace::hex(bytes));
}

std::string inputs_text(const std::vector<trace::Input>& inputs) {
  std::string out;
  for (const trace::Input& input : inputs) out += (out.empty() ? "" : ", ") + input_text(input);
  return out;
}

std::string schedule_text(const std::vector<trace::Step>& schedule) {
  std::string out;
  for (size_t i = 0; i < schedule.size();) {
    uint64_t count = 0;
    const std::string& thread = schedule[i].thread;
    for (; i < schedule.size() && schedule[i].thread == thread; ++i) count += schedule[i].count;
    out += fmt::format("{}{} x{}", out.empty() ? "" : ", ", thread, count);
  }
  return out;
}

size_t switches_of(const std::vector<trace::Step>& schedule) {
  size_t count = 0;
  for (size_t i = 1; i < schedule.size(); ++i) count += schedule[i].thread != schedule[i - 1].thread;
  return count;
}

std::string path_text(const Knowledge& known, const trace::Trace& trace) {
  const bool brief = one_file(known);
  std::string out, last;
  for (const trace::Event& e : trace.events) {
    const uint32_t index = e.site ? known.site(trace.sites[e.site].key) : trace::kNone;
    if (index == trace::kNone) continue;
    const analysis::StaticSite& site = known.program().sites[index];
    std::string one;
    if (e.kind == trace::Kind::Branch) {
      if (const auto outcome = known.outcome(site.key, e.value))
        one = outcome_text(known, *outcome, brief).substr(brief ? 1 : 0);
    } else if (known.concerns(index)) {
      // A read that a branch decides by is told with the branch.
      one = place_text(site.file, site.line, brief);
    }
    if (one.empty() || one == last) continue;
    if (!last.empty() && one == last + "T")
      out.erase(out.size() - last.size());
    else if (!last.empty() && one == last + "F")
      out.erase(out.size() - last.size());
    else if (!out.empty())
      out += ", ";
    out += one;
    last = one;
  }
  return out;
}

}  // namespace stem::explorer
