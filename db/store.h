// The typed store: the only way in which rows get into a database.
//
// Every call is one transaction: after a kill at any moment it has happened as a whole or not at all. All work that needs
// no database (counting, hashing) is done before, so the write lock is held for milliseconds and several processes can
// import at once.
#pragma once

#include <optional>

#include "db/database.h"
#include "db/rows.h"

namespace stem::db {

struct Imported {
  int64_t run = 0;
  bool fresh = false;  // false: the same trace was imported before, nothing was changed
};

class Store {
 public:
  explicit Store(std::filesystem::path path, Mode mode = Mode::Create, const Options& options = {})
      : database_(std::move(path), mode, options) {}

  Database& database() { return database_; }

  bool has_run(const std::string& trace_hash);
  Imported import_run(const RunData& data);
  // The run must have been imported. An answer replaces an older one about the same pair and run unless that says more
  // (confirmed > diverged > implicit > infeasible, in a wider bound > unknown).
  void import_analysis(const AnalysisData& data);
  void import_program(const ProgramData& data);

  // What `stem replay` takes: p12 (a pair's witness), f3 (a finding), t7 (a test), as the JSON of a test file;
  // r5 (a run), as the path of its trace. A user error says what is wrong with any other id.
  struct Replayable {
    std::string test_json;
    std::string trace_path;
  };
  Replayable replayable(const std::string& id);

  // A run by "r5", "5", a trace's hash or path.
  int64_t find_run(const std::string& id);

 private:
  Database database_;
};

// The name that a pair has in every database: program, variable and sites.
std::string pair_fingerprint(const std::string& program, const std::string& variable, DefKind kind, uint64_t def_key, uint64_t use_key);
// A failure of the same kind at the same site (where it has none: with the same message) is one finding of a version.
std::string finding_fingerprint(const std::string& kind, uint64_t site_key, const std::string& message);
std::string hash_of(std::string_view bytes);  // 32 hex digits
std::string hash_file(const std::filesystem::path& file);  // the same, of a file's content; throws UserError

}  // namespace stem::db
