// What is written into the database, as plain values: filled by whoever learned something, stored by db/store.h.
//
// Rows refer to each other by index into the vectors of `Names`, never by database id, so that they can be made without a
// database and stored in one short transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stem::db {

constexpr uint32_t kNone = UINT32_MAX;

enum class State : uint8_t {
#define STEM_STATE(Name, text, cls) Name,
#include "db/states.def"
};
const char* state_name(State state);
State state_from(const std::string& name);  // throws InternalError

enum class Relation : uint8_t {
#define STEM_RELATION(Name, text) Name,
#include "db/relations.def"
};
const char* relation_name(Relation relation);

enum class DefKind : uint8_t { Write, Initial, External };
const char* def_kind_name(DefKind kind);

enum class Bound : uint8_t { None, Window, Trace, Program };
const char* bound_name(Bound bound);  // nullptr for None

struct Version {
  std::string program;   // path below the project's folder, absolute if outside it
  std::string build_id;
  std::string git_commit;  // empty: none
  bool git_dirty = false;
};

struct Source {
  std::string path;
  std::string bytes;  // empty with missing set: the file could not be read
  bool missing = false;
};

struct Site {
  uint64_t key = 0;
  std::string file;
  uint32_t line = 0;  // 0: unknown
  uint32_t column = 0;
  std::string function;
  std::string text;
};

struct Thread {
  std::string path;
  std::string start;
};

// What the rows of one import refer to.
struct Names {
  Version version;
  std::vector<Source> sources;
  std::vector<Site> sites;
  std::vector<std::string> variables;
  std::vector<Thread> threads;
};

struct Pair {
  uint32_t variable = 0;
  DefKind def_kind = DefKind::Write;
  uint32_t def_site = kNone;  // of a Write
  uint32_t use_site = 0;
  bool operator==(const Pair&) const = default;
};

struct Observation {
  Pair pair;
  uint32_t def_thread = kNone;  // of a Write
  uint32_t use_thread = 0;
  Relation relation = Relation::Unknown;
  uint64_t count = 1;
  int64_t first_event = -1;
};

// Observations counted: a million of the same few flows is a few rows.
class Observations {
 public:
  void add(const Observation& observation);
  const std::vector<Observation>& rows() const { return rows_; }

 private:
  struct Key {
    uint64_t a, b, c;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, size_t, Hash> index_;
  std::vector<Observation> rows_;
};

struct Access {
  uint32_t site = 0, variable = 0;
  enum Kind : uint8_t { Read, Write, Rmw } kind = Read;
  uint64_t count = 0;
};

struct Branch {
  uint32_t site = 0;
  int64_t outcome = 0;
  uint64_t count = 0;
};

struct Follower {
  uint32_t variable = 0, first_site = 0, second_site = 0;
  uint64_t same = 0, different = 0;
};

struct Input {
  std::string name;
  std::vector<uint8_t> bytes;
};

struct Test {
  std::string json;
  std::string origin;  // witness, branch, finding, random, user, ... (schema.sql)
  double priority = 0;
  std::string detail{};  // what it is meant to show
};

struct Finding {
  std::string kind;  // as Run::outcome
  std::string message;
  uint32_t site = kNone, thread = kNone;
  std::optional<Test> test;
  int64_t execution = -1, switches = -1;  // of an exploration
};

struct Run {
  int64_t id = 0;  // the number it should have, if that is free; 0: any
  std::string trace_hash;
  std::string trace_path;
  std::string recorder;
  bool semantics = true;
  std::string mode;
  uint64_t seed = 0;
  std::vector<std::string> argv;
  std::string cwd;
  std::vector<std::pair<uint32_t, uint64_t>> schedule;  // thread, visible events; empty: not kept
  std::string outcome;
  int exit_code = 0;
  uint64_t events = 0;
  std::string recorded_at;  // UTC, ISO 8601
  std::string paths, visible;  // signatures, see schema.sql; empty: not known
  std::optional<Test> test;    // that it ran
};

struct RunData {
  Names names;
  Run run;
  std::vector<Input> inputs;
  std::vector<Access> accesses;
  std::vector<Branch> branches;
  std::vector<Follower> followers;
  Observations observations;
  std::vector<Finding> findings;
  uint32_t failed_site = kNone, failed_thread = kNone;  // of the last access or assertion that failed
};

struct WitnessStep {
  uint32_t thread = 0;
  uint32_t site = kNone;
  std::string kind;
  std::string detail;
  uint32_t skipped = 0;  // events left out before this one
};

struct Witness {
  std::optional<Test> test;
  std::string detail;   // of a divergence
  std::string outcome;  // how the replayed run failed, if it did
  std::vector<WitnessStep> steps;
  uint32_t def_step = kNone, use_step = kNone;  // indices into steps
  uint64_t total_steps = 0;
  uint32_t follower_site = kNone;
  bool follower_breaks = false;
};

struct Verdict {
  Pair pair;
  State state = State::Unknown;
  Bound bound = Bound::None;  // of an infeasible one
  std::string layer, reason;
  int64_t tried = -1, total = -1;
  uint32_t def_thread = kNone, use_thread = kNone;
  Relation relation = Relation::Unknown;
  double millis = 0;
  std::optional<Witness> witness;
};

// What an analysis of one recorded run says. Verdicts about pairs that the analysis did not reach stay as they are.
struct AnalysisData {
  Names names;
  std::string trace_hash;
  bool complete = true;  // false: interrupted, or out of time
  std::vector<Verdict> verdicts;
  std::vector<std::pair<std::string, double>> stats;
  std::vector<Finding> findings;
};

struct Escort {
  uint32_t def_site = kNone;  // kNone: an initial definition
  int64_t def_outcome = 0;
  uint32_t use_site = 0;
  int64_t use_outcome = 0;
  std::string state = "open";  // open, covered, infeasible, not found
  std::string detail;
  std::optional<Pair> pair;    // that covered it
};

// What static analysis, or an exploration, says of a whole version.
struct ProgramData {
  Names names;
  bool static_done = false;  // `potential` and `definitions` are complete
  std::vector<Pair> potential;
  std::vector<std::pair<uint32_t, uint32_t>> definitions;  // site, variable
  std::vector<Escort> escorts;
  std::vector<Verdict> verdicts;  // program-wide
  std::vector<Finding> findings;
};

}  // namespace stem::db
