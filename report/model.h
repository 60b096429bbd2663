// What a report is about: everything the database knows of the programs as they are now, in one value that every format
// renders. Loading it is the only part that asks the database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/database.h"
#include "db/rows.h"

namespace stem::report {

struct Place {
  std::string file;
  int64_t line = 0;  // 0: unknown
  int64_t column = 0;
  std::string function;
  std::string text;
  bool known() const { return line > 0 && !file.empty(); }
};

// From which thread to which a pair flowed, or would.
struct Flow {
  std::string def_thread, def_start, use_thread, use_start;  // def_thread is empty for an initial definition
  std::string state;
  int64_t count = 0;
  std::vector<int64_t> runs;
};

struct Step {
  size_t thread = 0;  // index into Witness::threads
  Place place;
  std::string kind, detail;
  int64_t skipped = 0;
};

struct Witness {
  int64_t id = 0, run = 0;
  std::string status, detail, outcome;
  int64_t def_step = -1, use_step = -1;
  int64_t total = 0;
  std::vector<std::string> threads, starts;  // one column each
  std::vector<Step> steps;
};

enum class Suppressed { No, InSource, External };

struct Pair {
  int64_t id = 0;
  std::string name, program, variable, fingerprint, def_kind;
  Place def, use;  // def is empty unless def_kind is "write"
  bool cross_thread = false;
  db::State state = db::State::Unknown;
  std::string bound, evidence, relation;
  int64_t witness = 0;
  std::vector<Flow> flows;
  Suppressed suppressed = Suppressed::No;
  std::string reason;  // of the suppression

  bool covered() const { return state == db::State::Explicit; }
  bool predicted() const { return state == db::State::Confirmed || state == db::State::Implicit || state == db::State::Diverged; }
  bool impossible() const { return state == db::State::Infeasible && bound == "program"; }
  // Counts, was not seen, and nobody said that this is fine.
  bool open() const { return !covered() && !impossible() && suppressed == Suppressed::No; }
};

struct Coverage {
  int64_t covered = 0, predicted = 0, confirmed = 0, infeasible_in_bound = 0, unknown = 0;  // the denominator, in parts
  int64_t infeasible = 0, suppressed = 0;                                                    // not in it
  void add(const Pair& pair);
  int64_t total() const { return covered + predicted + infeasible_in_bound + unknown; }
  std::optional<double> percent() const;  // nothing: there is nothing to cover
  std::string percent_text() const;       // "75.0 %", "nothing to cover"
};

struct Definition {
  std::string program, variable, fate;
  Place place;
  int64_t executed = 0;
};

struct Violation {  // of a DefUse invariant
  std::string invariant, program, variable, learned, source, run;
  Place use, def;
  int64_t pair = 0;  // 0: none
  int64_t witness = 0;
  Suppressed suppressed = Suppressed::No;
};

struct Finding {
  std::string name, program, kind, message, thread, run, fingerprint;
  Place place;
};

struct Run {
  int64_t id = 0;
  std::string name, program, recorder, mode, outcome, argv, inputs, commit;
  int64_t exit_code = 0, events = 0, pairs = 0;
  bool analysed = false, semantics = true;
};

struct Model {
  std::vector<std::string> programs;
  std::vector<Pair> pairs;  // by place of the use
  std::map<int64_t, Witness> witnesses;
  std::vector<Definition> definitions;  // that nothing uses
  std::vector<Violation> violations;
  std::vector<Finding> findings;
  std::vector<Run> runs;
  std::map<std::string, std::string> sources;  // by path; as they were recorded
  std::vector<std::string> notes;              // what a reader should know about these results
  int64_t stale_pairs = 0;                     // known only of sources that have changed since
  std::string project;                         // absolute path of the folder that file names are relative to

  Coverage coverage() const;
  std::map<std::string, Coverage> by_file() const;
  std::map<std::string, Coverage> by_function() const;  // "file: function"
  std::map<std::string, Coverage> by_variable() const;
  const Pair* pair(int64_t id) const;
  // A line of the source without surrounding space, "" if it is not known.
  std::string source_line(const Place& place) const;
};

Model load(db::Database& database, const std::filesystem::path& project);

// "queue.c:12 in push", "(initial value)", "(outside what was recorded)"; printable.
std::string describe(const Place& place);
std::string describe_definition(const Pair& pair);

}  // namespace stem::report
