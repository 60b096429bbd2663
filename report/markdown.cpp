// Markdown: a comment on a pull request. Names come from other people's code, so everything that Markdown or HTML could
// take for markup is escaped, and code stands in spans and fences longer than any run of backticks in it.
#include <algorithm>
#include <fmt/core.h>

#include "report/formats.h"
#include "util/text.h"

namespace stem::report {
namespace {

constexpr size_t kShown = 20;

std::string plain(std::string_view raw) {
  std::string out;
  for (char c : printable(raw)) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '@') out += "@<!-- -->";  // mentions nobody
    else if (std::string_view("\\`*_{}[]()#+-.!|~:").find(c) != std::string_view::npos) out += std::string("\\") + c;
    else out += c;
  }
  return out;
}

size_t longest_backticks(std::string_view text) {
  size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// A code span; '|' would end a table's cell even there.
std::string code(std::string_view raw) {
  std::string text = printable(raw);
  if (text.empty()) return "";
  const std::string ticks(longest_backticks(text) + 1, '`');
  std::string escaped;
  for (char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  const bool edge = escaped.front() == '`' || escaped.back() == '`' || escaped.front() == ' ' || escaped.back() == ' ';
  return ticks + (edge ? " " : "") + escaped + (edge ? " " : "") + ticks;
}

std::string where(const Place& place) {
  if (!place.known()) return place.function.empty() ? "no source" : code(place.function);
  return code(place.file + ":" + std::to_string(place.line));
}

std::string definition(const Pair& pair) {
  return pair.def_kind == "write" ? where(pair.def) : pair.def_kind == "initial" ? "initial value" : "outside what was recorded";
}

class Writer {
 public:
  Writer(const Model& model, const Change* change) : model_(model), change_(change) {}

  std::string run() {
    const Coverage all = model_.coverage();
    out_ += fmt::format("### Def-use coverage: {}\n\n", all.percent_text());
    out_ += "| covered | predicted, not exercised | infeasible within a bound | unknown | **total** | infeasible (not counted) | suppressed (not counted) |\n";
    out_ += "|--:|--:|--:|--:|--:|--:|--:|\n";
    out_ += fmt::format("| {} | {} ({} confirmed by replay) | {} | {} | **{}** | {} | {} |\n\n", all.covered, all.predicted, all.confirmed,
                        all.infeasible_in_bound, all.unknown, all.total(), all.infeasible, all.suppressed);
    if (change_) changes();
    findings();
    std::vector<const Pair*> predicted;
    for (const Pair& pair : model_.pairs) {
      if (pair.open() && pair.predicted()) predicted.push_back(&pair);
    }
    std::stable_sort(predicted.begin(), predicted.end(), [](const Pair* a, const Pair* b) {
      return std::pair(!a->cross_thread, a->state) < std::pair(!b->cross_thread, b->state);
    });
    table("Flows that can happen and no test has shown", predicted, false);
    if (!change_ && !predicted.empty()) witness(*predicted.front());
    violations();
    unused();
    for (const std::string& note : model_.notes) out_ += "> " + plain(note) + "\n\n";
    return out_;
  }

 private:
  void table(const std::string& title, const std::vector<const Pair*>& pairs, bool open) {
    if (pairs.empty()) return;
    out_ += fmt::format("<details{}><summary>{} ({})</summary>\n\n", open ? " open" : "", title, pairs.size());
    out_ += "| | variable | written | read | state |\n|--|--|--|--|--|\n";
    for (size_t i = 0; i < std::min(pairs.size(), kShown); ++i) {
      const Pair& p = *pairs[i];
      std::string state = plain(state_sentence(p));
      if (p.cross_thread) state += ", across threads";
      if (p.relation == "data race") state += ", **data race**";
      out_ += fmt::format("| {} | {} | {} | {} | {} |\n", p.name, code(p.variable), definition(p), where(p.use), state);
    }
    if (pairs.size() > kShown) out_ += fmt::format("\n... and {} more.\n", pairs.size() - kShown);
    out_ += "\n</details>\n\n";
  }

  void changes() {
    const Change& c = *change_;
    out_ += fmt::format("**Since {}:** {} pairs added, {} lost, {} covered no more, **{} left untested**\n\n", code(c.base), c.added.size(),
                        c.base_known ? std::to_string(c.lost.size()) : "?", c.uncovered_since.size(), c.untested.size());
    if (!c.base_known) out_ += "> No run of the base is recorded: *added* means on a changed line, what was lost is not known.\n\n";
    const auto of = [&](const std::vector<size_t>& indices) {
      std::vector<const Pair*> pairs;
      for (size_t i : indices) pairs.push_back(&model_.pairs[i]);
      return pairs;
    };
    table("Left untested by this change", of(c.untested), true);
    if (!c.untested.empty()) witness(model_.pairs[c.untested.front()]);
    table("Added by this change", of(c.added), false);
    std::vector<const Pair*> lost;
    for (const Pair& pair : c.lost) lost.push_back(&pair);
    table("Lost by this change", lost, false);
  }

  // The first pair's story: who writes what when.
  void witness(const Pair& pair) {
    const auto found = model_.witnesses.find(pair.witness);
    if (found == model_.witnesses.end()) return;
    const Witness& w = found->second;
    std::string body;
    const size_t from = w.steps.size() > 12 ? w.steps.size() - 12 : 0;
    if (from) body += fmt::format("... {} steps before\n", from);
    for (size_t i = from; i < w.steps.size(); ++i) {
      const Step& s = w.steps[i];
      const char* mark = static_cast<int64_t>(i) == w.def_step ? "  <- definition" : static_cast<int64_t>(i) == w.use_step ? "  <- use" : "";
      const std::string at = s.place.known() ? printable(s.place.file) + ":" + std::to_string(s.place.line) : "";
      body += fmt::format("{:12} {:10} {:24} {}{}\n", printable(w.threads[s.thread]), printable(s.kind), at,
                          printable(s.detail.empty() ? model_.source_line(s.place) : s.detail), mark);
    }
    const std::string fence(std::max<size_t>(3, longest_backticks(body) + 1), '`');
    out_ += fmt::format("How {} happens (`stem replay {}`):\n\n{}text\n{}{}\n\n", pair.name, pair.name, fence, body, fence);
  }

  void findings() {
    if (model_.findings.empty()) return;
    out_ += fmt::format("**Findings ({})**\n\n", model_.findings.size());
    for (const Finding& f : model_.findings) {
      out_ += fmt::format("- {} {}: {} {} — `stem replay {}`\n", f.name, plain(f.kind), plain(f.message), f.place.known() ? where(f.place) : "", f.name);
    }
    out_ += "\n";
  }

  void violations() {
    std::vector<const Violation*> shown;
    for (const Violation& v : model_.violations) {
      if (v.suppressed == Suppressed::No && v.invariant != "Definition set") shown.push_back(&v);
    }
    if (shown.empty()) return;
    out_ += fmt::format("<details><summary>Suspicious: broken invariants ({})</summary>\n\n", shown.size());
    for (size_t i = 0; i < std::min(shown.size(), kShown); ++i) {
      const Violation& v = *shown[i];
      out_ += fmt::format("- **{}**: the read of {} at {} {}\n", v.invariant, code(v.variable), where(v.use), plain(v.learned));
    }
    out_ += "\n</details>\n\n";
  }

  void unused() {
    if (model_.definitions.empty()) return;
    out_ += fmt::format("<details><summary>Definitions that nobody uses ({})</summary>\n\n", model_.definitions.size());
    for (size_t i = 0; i < std::min(model_.definitions.size(), kShown); ++i) {
      const Definition& d = model_.definitions[i];
      out_ += fmt::format("- {} at {}: {}\n", code(d.variable), where(d.place), d.fate == "dead" ? "dead" : "never used in any trace or prediction");
    }
    out_ += "\n</details>\n\n";
  }

  const Model& model_;
  const Change* change_;
  std::string out_;
};

}  // namespace

std::string markdown(const Model& model, const Change* change) { return Writer(model, change).run(); }

}  // namespace stem::report
