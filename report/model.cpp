#include "report/model.h"

#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <set>
#include <sstream>

#include "util/text.h"

namespace stem::report {
namespace {

using db::Row;
using db::to_text;
using db::Value;

int64_t number(const Value& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  return integer ? *integer : 0;
}

Place place(const Row& row, size_t at) {
  return {to_text(row[at]), number(row[at + 1]), number(row[at + 2]), to_text(row[at + 3]), to_text(row[at + 4])};
}

void load_pairs(db::Database& database, Model& model) {
  for (const Row& r : database.rows(
           "SELECT d.pair_id, d.name, d.program, d.variable, d.fingerprint, d.def_kind, d.cross_thread, d.state, d.bound, d.evidence, "
           "d.relation, d.witness_id, d.def_file, d.def_line, a.column, d.def_function, d.def_text, d.use_file, d.use_line, b.column, "
           "d.use_function, d.use_text FROM defuse d LEFT JOIN place a ON a.site_id = d.def_site_id JOIN place b ON b.site_id = d.use_site_id "
           "WHERE d.current ORDER BY d.use_file, d.use_line, b.column, d.variable, d.def_file, d.def_line, d.pair_id")) {
    Pair pair;
    pair.id = number(r[0]);
    pair.name = to_text(r[1]);
    pair.program = to_text(r[2]);
    pair.variable = to_text(r[3]);
    pair.fingerprint = to_text(r[4]);
    pair.def_kind = to_text(r[5]);
    pair.cross_thread = number(r[6]) != 0;
    pair.state = db::state_from(to_text(r[7]));
    pair.bound = to_text(r[8]);
    pair.evidence = to_text(r[9]);
    pair.relation = to_text(r[10]);
    pair.witness = number(r[11]);
    pair.def = place(r, 12);
    pair.use = place(r, 17);
    model.pairs.push_back(std::move(pair));
  }
  model.stale_pairs = number(database.value("SELECT count(*) FROM defuse WHERE NOT current"));
}

void load_flows(db::Database& database, Model& model) {
  std::map<int64_t, Pair*> by_id;
  for (Pair& pair : model.pairs) by_id[pair.id] = &pair;
  for (const Row& r : database.rows(
           "SELECT e.pair_id, a.path, a.start, b.path, b.start, e.state, sum(e.count), group_concat(DISTINCT e.run_id) FROM evidence e "
           "LEFT JOIN thread a ON a.id = e.def_thread_id LEFT JOIN thread b ON b.id = e.use_thread_id "
           "WHERE e.rank < 100 AND e.use_thread_id IS NOT NULL GROUP BY e.pair_id, e.def_thread_id, e.use_thread_id, e.state "
           "ORDER BY e.pair_id, min(e.rank), b.path, a.path")) {
    const auto found = by_id.find(number(r[0]));
    if (found == by_id.end()) continue;
    Flow flow{to_text(r[1]), to_text(r[2]), to_text(r[3]), to_text(r[4]), to_text(r[5]), number(r[6]), {}};
    std::istringstream runs(to_text(r[7]));
    for (std::string run; std::getline(runs, run, ',');) flow.runs.push_back(std::stoll(run));
    found->second->flows.push_back(std::move(flow));
  }
}

void load_witnesses(db::Database& database, Model& model) {
  std::set<int64_t> wanted;
  for (const Pair& pair : model.pairs) wanted.insert(pair.witness);
  for (const Violation& violation : model.violations) wanted.insert(violation.witness);
  for (const Row& r : database.rows("SELECT id, run_id, status, detail, outcome, def_step, use_step, steps FROM witness")) {
    if (!wanted.count(number(r[0]))) continue;
    Witness& w = model.witnesses[number(r[0])];
    w.id = number(r[0]);
    w.run = number(r[1]);
    w.status = to_text(r[2]);
    w.detail = to_text(r[3]);
    w.outcome = to_text(r[4]);
    w.def_step = std::holds_alternative<int64_t>(r[5]) ? number(r[5]) : -1;
    w.use_step = std::holds_alternative<int64_t>(r[6]) ? number(r[6]) : -1;
    w.total = number(r[7]);
  }
  database.query(
      "SELECT s.witness_id, t.path, t.start, s.kind, s.detail, s.skipped, p.file, p.line, p.column, p.function, p.text FROM witness_step s "
      "JOIN thread t ON t.id = s.thread_id LEFT JOIN place p ON p.site_id = s.site_id ORDER BY s.witness_id, s.ordinal",
      {}, nullptr, [&](const Row& r) {
        const auto found = model.witnesses.find(number(r[0]));
        if (found == model.witnesses.end()) return;
        Witness& w = found->second;
        const std::string thread = to_text(r[1]);
        size_t column = 0;
        while (column < w.threads.size() && w.threads[column] != thread) ++column;
        if (column == w.threads.size()) {
          w.threads.push_back(thread);
          w.starts.push_back(to_text(r[2]));
        }
        w.steps.push_back({column, place(r, 6), to_text(r[3]), to_text(r[4]), number(r[5])});
      });
}

void load_rest(db::Database& database, Model& model) {
  for (const Row& r : database.rows("SELECT DISTINCT g.path FROM program g JOIN version v ON v.program_id = g.id WHERE v.current ORDER BY 1")) {
    model.programs.push_back(to_text(r[0]));
  }
  for (const Row& r : database.rows(
           "SELECT program, variable, fate, file, line, NULL, function, text, executed FROM definitions WHERE fate IN ('unused', 'dead') ORDER BY file, line")) {
    model.definitions.push_back({to_text(r[0]), to_text(r[1]), to_text(r[2]), place(r, 3), number(r[8])});
  }
  for (const Row& r : database.rows(
           "SELECT invariant, program, variable, learned, source, run, use_file, use_line, NULL, use_function, NULL, def_file, def_line, NULL, "
           "def_function, NULL, pair_id, witness_id FROM invariants ORDER BY use_file, use_line, invariant, def_file, def_line")) {
    model.violations.push_back({to_text(r[0]), to_text(r[1]), to_text(r[2]), to_text(r[3]), to_text(r[4]), to_text(r[5]), place(r, 6),
                                place(r, 11), number(r[16]), number(r[17]), Suppressed::No});
  }
  for (const Row& r : database.rows(
           "SELECT name, program, kind, message, thread, run, fingerprint, file, line, NULL, function, NULL FROM findings WHERE current ORDER BY finding_id")) {
    model.findings.push_back({to_text(r[0]), to_text(r[1]), to_text(r[2]), to_text(r[3]), to_text(r[4]), to_text(r[5]), to_text(r[6]), place(r, 7)});
  }
  for (const Row& r : database.rows(
           "SELECT run_id, name, program, recorder, mode, outcome, argv, inputs, git_commit, exit_code, events, pairs, analysed_at, semantics "
           "FROM runs WHERE current ORDER BY run_id")) {
    model.runs.push_back({number(r[0]), to_text(r[1]), to_text(r[2]), to_text(r[3]), to_text(r[4]), to_text(r[5]), to_text(r[6]), to_text(r[7]),
                          to_text(r[8]), number(r[9]), number(r[10]), number(r[11]), !to_text(r[12]).empty(), number(r[13]) != 0});
  }
  for (const Row& r : database.rows(
           "SELECT s.path, t.bytes FROM source s JOIN version v ON v.id = s.version_id AND v.current JOIN source_text t ON t.hash = s.hash "
           "ORDER BY v.last_seen")) {
    const auto* bytes = std::get_if<db::Blob>(&r[1]);
    if (bytes) model.sources[to_text(r[0])] = std::string(bytes->begin(), bytes->end());
  }
}

void add_notes(Model& model) {
  const auto count = [&](auto predicate) { return std::count_if(model.runs.begin(), model.runs.end(), predicate); };
  if (const auto waiting = count([](const Run& run) { return !run.analysed; })) {
    model.notes.push_back(fmt::format("{} of {} runs were not analysed: what they predict is not known yet (stem analyze).", waiting, model.runs.size()));
  }
  if (const auto blind = count([](const Run& run) { return !run.semantics; })) {
    model.notes.push_back(fmt::format("{} of {} runs were recorded without semantics: inputs cannot be solved for, reads are held fixed.", blind, model.runs.size()));
  }
  if (model.stale_pairs) {
    model.notes.push_back(fmt::format("{} pairs are known only of sources that have changed since; they are left out.", model.stale_pairs));
  }
}

template <typename Key>
std::map<std::string, Coverage> group(const std::vector<Pair>& pairs, Key key) {
  std::map<std::string, Coverage> groups;
  for (const Pair& pair : pairs) groups[key(pair)].add(pair);
  return groups;
}

}  // namespace

void Coverage::add(const Pair& pair) {
  if (pair.impossible()) {
    ++infeasible;
  } else if (pair.covered()) {
    ++covered;
  } else if (pair.suppressed != Suppressed::No) {
    ++suppressed;
  } else if (pair.predicted()) {
    ++predicted;
    confirmed += pair.state == db::State::Confirmed;
  } else if (pair.state == db::State::Infeasible) {
    ++infeasible_in_bound;
  } else {
    ++unknown;
  }
}

std::optional<double> Coverage::percent() const {
  if (total() == 0) return {};
  return 100.0 * static_cast<double>(covered) / static_cast<double>(total());
}

std::string Coverage::percent_text() const {
  const auto value = percent();
  return value ? fmt::format("{:.1f} %", *value) : "nothing to cover";
}

Coverage Model::coverage() const {
  Coverage all;
  for (const Pair& pair : pairs) all.add(pair);
  return all;
}

std::map<std::string, Coverage> Model::by_file() const {
  return group(pairs, [](const Pair& pair) { return pair.use.file; });
}
std::map<std::string, Coverage> Model::by_function() const {
  return group(pairs, [](const Pair& pair) { return pair.use.file + ": " + pair.use.function; });
}
std::map<std::string, Coverage> Model::by_variable() const {
  return group(pairs, [](const Pair& pair) { return pair.variable; });
}

const Pair* Model::pair(int64_t id) const {
  for (const Pair& pair : pairs) {
    if (pair.id == id) return &pair;
  }
  return nullptr;
}

std::string Model::source_line(const Place& place) const {
  const auto found = sources.find(place.file);
  if (found == sources.end() || place.line <= 0) return "";
  const auto lines = split_lines(found->second);
  if (static_cast<size_t>(place.line) > lines.size()) return "";
  return std::string(trim(lines[static_cast<size_t>(place.line) - 1]));
}

Model load(db::Database& database, const std::filesystem::path& project) {
  Model model;
  model.project = project.string();
  load_pairs(database, model);
  load_flows(database, model);
  load_rest(database, model);
  load_witnesses(database, model);
  // A source that the database does not have may still be on disk.
  std::set<std::string> files;
  for (const Pair& pair : model.pairs) files.insert({pair.use.file, pair.def.file});
  for (const std::string& file : files) {
    if (file.empty() || model.sources.count(file)) continue;
    std::ifstream in(project / file, std::ios::binary);
    std::ostringstream text;
    if (in && text << in.rdbuf()) {
      model.sources[file] = text.str();
      model.notes.push_back(printable(file) + " was not kept when it was recorded; it is shown as it is now.");
    }
  }
  add_notes(model);
  return model;
}

std::string describe(const Place& place) {
  if (!place.known()) return place.function.empty() ? "(no source)" : "(no source) in " + printable(place.function);
  std::string text = printable(place.file) + ":" + std::to_string(place.line);
  if (!place.function.empty()) text += " in " + printable(place.function);
  return text;
}

std::string describe_definition(const Pair& pair) {
  if (pair.def_kind == "initial") return "(initial value)";
  if (pair.def_kind == "external") return "(written outside what was recorded)";
  return describe(pair.def);
}

}  // namespace stem::report
