// Text: a summary that fits a screen, then what nobody has seen and what looks wrong, with source lines.
#include <algorithm>
#include <fmt/core.h>

#include "report/formats.h"
#include "util/text.h"

namespace stem::report {
namespace {

constexpr size_t kShown = 50;  // pairs listed of each sort; `stem query` and the other formats have all

class Writer {
 public:
  Writer(const Model& model, const Change* change) : model_(model), change_(change) {}

  std::string run() {
    summary();
    if (change_) this->change();
    findings();
    violations();
    open_pairs("Predicted, but never exercised", [](const Pair& p) { return p.predicted(); });
    unused();
    open_pairs("Not decided", [](const Pair& p) { return p.state == db::State::Unknown || p.state == db::State::Potential; });
    suppressed();
    return out_;
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) { out_ += fmt::format(format, std::forward<Args>(args)...) + "\n"; }

  void summary() {
    const Coverage all = model_.coverage();
    std::string programs;
    for (const std::string& program : model_.programs) programs += (programs.empty() ? "" : ", ") + printable(program);
    line("Def-use coverage of {}: {}", programs.empty() ? "(no program)" : programs, all.percent_text());
    if (all.total()) bar(all);
    line("");
    line("  covered                    {:6}  seen in {} recorded run{}", all.covered, model_.runs.size(), model_.runs.size() == 1 ? "" : "s");
    line("  predicted, not exercised   {:6}  {} confirmed by replay", all.predicted, all.confirmed);
    line("  infeasible within a bound  {:6}  another trace may show them", all.infeasible_in_bound);
    line("  unknown                    {:6}  not decided, or only allowed by static analysis", all.unknown);
    line("  total                      {:6}  what the percentage is of", all.total());
    line("  infeasible                 {:6}  for the whole program: not counted", all.infeasible);
    line("  suppressed                 {:6}  not counted", all.suppressed);
    const auto files = model_.by_file();
    if (files.size() > 1) {
      line("");
      std::vector<std::pair<std::string, Coverage>> worst(files.begin(), files.end());
      std::stable_sort(worst.begin(), worst.end(), [](const auto& a, const auto& b) {
        return a.second.percent().value_or(101) < b.second.percent().value_or(101);
      });
      for (size_t i = 0; i < std::min<size_t>(worst.size(), 6); ++i) {
        const Coverage& c = worst[i].second;
        line("  {:>8}  {} ({} of {})", c.percent_text(), printable(worst[i].first), c.covered, c.total());
      }
      if (worst.size() > 6) line("            and {} more files (stem query coverage-by-file)", worst.size() - 6);
    }
    for (const std::string& note : model_.notes) line("\n  Note: {}", printable(note));
  }

  void bar(const Coverage& all) {
    constexpr int64_t width = 60;
    const auto part = [&](int64_t n) { return static_cast<size_t>((n * width + all.total() / 2) / all.total()); };
    std::string drawn = std::string(part(all.covered), '#') + std::string(part(all.predicted), '!') +
                        std::string(part(all.infeasible_in_bound), '-') + std::string(part(all.unknown), '?');
    drawn.resize(width, ' ');
    line("  [{}]  # covered  ! predicted  - infeasible here  ? unknown", drawn);
  }

  void heading(const std::string& text, size_t count) {
    line("");
    line("{} ({})", text, count);
    line("{}", std::string(columns(text) + 3 + std::to_string(count).size(), '='));
  }

  void access(const char* what, const Place& place, const std::string& otherwise = "") {
    const std::string source = printable(model_.source_line(place));
    line("    {}  {}", what, otherwise.empty() ? describe(place) : otherwise);
    if (!source.empty() && otherwise.empty()) line("             | {}", source);
  }

  void pair(const Pair& pair) {
    std::string about = state_sentence(pair);
    if (pair.cross_thread) about += ", across threads";
    if (pair.relation == "data race") about += ", data race";
    else if (pair.cross_thread && pair.relation != "unknown") about += ", " + pair.relation;
    line("");
    line("  {}  {}: {}", pair.name, printable(pair.variable), printable(about));
    access("written", pair.def, pair.def_kind == "write" ? "" : describe_definition(pair));
    access("read   ", pair.use);
    if (!threads_sentence(pair).empty()) line("    threads  {}", printable(threads_sentence(pair)));
    if (pair.witness) line("    replay   stem replay {}", pair.name);
  }

  template <typename Filter>
  void open_pairs(const std::string& title, Filter filter) {
    std::vector<const Pair*> chosen;
    for (const Pair& p : model_.pairs) {
      if (p.open() && filter(p)) chosen.push_back(&p);
    }
    list(title, chosen);
  }

  void list(const std::string& title, std::vector<const Pair*> chosen) {
    if (chosen.empty()) return;
    std::stable_sort(chosen.begin(), chosen.end(), [](const Pair* a, const Pair* b) {
      return std::pair(a->state, !a->cross_thread) < std::pair(b->state, !b->cross_thread);
    });
    heading(title, chosen.size());
    for (size_t i = 0; i < std::min(chosen.size(), kShown); ++i) pair(*chosen[i]);
    if (chosen.size() > kShown) line("\n  ... and {} more (stem query uncovered)", chosen.size() - kShown);
  }

  void change() {
    const auto of = [&](const std::vector<size_t>& indices) {
      std::vector<const Pair*> chosen;
      for (size_t i : indices) chosen.push_back(&model_.pairs[i]);
      return chosen;
    };
    line("");
    line("Since {}: {} pairs added, {} lost, {} covered no more, {} left untested", printable(change_->base), change_->added.size(),
         change_->base_known ? std::to_string(change_->lost.size()) : "?", change_->uncovered_since.size(), change_->untested.size());
    if (!change_->base_known) {
      line("  No run of {} is recorded here, so \"added\" means: on a changed line; what was lost is not known.", printable(change_->base));
    }
    list("Left untested by this change", of(change_->untested));
    std::vector<const Pair*> tested;
    for (size_t i : change_->added) {
      if (!model_.pairs[i].open()) tested.push_back(&model_.pairs[i]);
    }
    list("Added and tested", tested);
    std::vector<const Pair*> lost;
    for (const Pair& p : change_->lost) lost.push_back(&p);
    list("Lost", lost);
  }

  void findings() {
    if (model_.findings.empty()) return;
    heading("Findings", model_.findings.size());
    for (const Finding& f : model_.findings) {
      line("\n  {}  {}: {}", f.name, printable(f.kind), printable(f.message));
      if (f.place.known()) access("at     ", f.place);
      line("    replay   stem replay {}", f.name);
    }
  }

  void violations() {
    std::vector<const Violation*> shown;
    for (const Violation& v : model_.violations) {
      if (v.suppressed == Suppressed::No && v.invariant != "Definition set") shown.push_back(&v);
    }
    if (shown.empty()) return;
    heading("Suspicious", shown.size());
    for (size_t i = 0; i < std::min(shown.size(), kShown); ++i) {
      const Violation& v = *shown[i];
      const Pair* p = v.pair ? model_.pair(v.pair) : nullptr;
      line("\n  {}{}: this read of {} {}; in {} it does not", p ? p->name + "  " : "", v.invariant, printable(v.variable), v.learned,
           v.source == "run" ? "run " + v.run : "a prediction");
      access("read   ", v.use);
      if (p) access("written", p->def, p->def_kind == "write" ? "" : describe_definition(*p));
    }
    if (shown.size() > kShown) line("\n  ... and {} more (stem query invariants)", shown.size() - kShown);
  }

  void unused() {
    if (model_.definitions.empty()) return;
    heading("Definitions that nobody uses", model_.definitions.size());
    for (size_t i = 0; i < std::min(model_.definitions.size(), kShown); ++i) {
      const Definition& d = model_.definitions[i];
      line("\n  {}: {}", printable(d.variable), d.fate == "dead" ? "dead: static analysis proves that no read can take it"
                                                                  : "never used in any trace or prediction");
      access("written", d.place);
    }
    if (model_.definitions.size() > kShown) line("\n  ... and {} more (stem query unused-definitions)", model_.definitions.size() - kShown);
  }

  void suppressed() {
    std::map<std::string, int> reasons;
    int all = 0;
    for (const Pair& p : model_.pairs) {
      if (p.suppressed == Suppressed::No || p.covered() || p.impossible()) continue;
      ++reasons[p.reason];
      ++all;
    }
    if (!all) return;
    heading("Suppressed", static_cast<size_t>(all));
    for (const auto& [reason, count] : reasons) line("  {:4}  {}", count, printable(reason));
  }

  const Model& model_;
  const Change* change_;
  std::string out_;
};

}  // namespace

std::string state_sentence(const Pair& pair) {
  switch (pair.state) {
    case db::State::Explicit: return "covered, " + pair.evidence;
    case db::State::Confirmed: return "predicted, confirmed by replay";
    case db::State::Implicit: return "predicted";
    case db::State::Diverged: return "predicted, but its replay diverged";
    case db::State::Unknown: return pair.evidence.empty() ? "not decided" : pair.evidence;
    case db::State::Infeasible: return "infeasible within this " + pair.bound;
    case db::State::Potential: return "allowed by static analysis";
  }
  return "";
}

std::string threads_sentence(const Pair& pair) {
  std::string all;
  size_t shown = 0;
  const auto name = [](const std::string& path, const std::string& start) {
    return start.empty() || start == path ? path : start + " (" + path + ")";
  };
  for (const Flow& flow : pair.flows) {
    if (++shown > 3) {
      all += ", ...";
      break;
    }
    all += all.empty() ? "" : ", ";
    if (!flow.def_thread.empty()) all += name(flow.def_thread, flow.def_start) + " to ";
    all += name(flow.use_thread, flow.use_start);
  }
  return all;
}

std::string text(const Model& model, const Change* change) { return Writer(model, change).run(); }

}  // namespace stem::report
