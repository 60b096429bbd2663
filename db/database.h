// A STEM database that is open: the file is there, is ours, and has the schema of this version.
//
// Opening is where things go wrong for people, so it is done in one place: a missing file, one of a newer version, one that
// is not ours, a folder that cannot be written and a database that somebody holds locked are user errors that say what to
// do. An older database is copied to <name>.v<N>.bak and then migrated in one transaction. WAL keeps readers and one writer
// apart, and a kill at any moment leaves the last committed state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace SQLite {
class Database;
}

namespace stem::db {

enum class Mode {
  Create,    // read and write; made with its folder if it is not there
  Write,     // read and write; must be there
  Read,      // nothing can be changed
};

struct Migration {
  int to = 0;             // the version it leads to, from the one before
  std::string_view sql;
};

struct Options {
  int busy_timeout_ms = 5000;
  int version = 0;                             // 0: this version's. Tests set their own, with migrations to match.
  std::span<const Migration> migrations = {};  // empty with version 0: the ones in db/migrations
};

using Blob = std::vector<uint8_t>;
using Value = std::variant<std::monostate, int64_t, double, std::string, Blob>;
using Row = std::vector<Value>;
using Parameters = std::map<std::string, Value>;

class Database {
 public:
  Database(std::filesystem::path path, Mode mode, const Options& options = {});
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  const std::filesystem::path& path() const { return path_; }

  // Runs SQL with named parameters (:name), a row at a time; the header comes first. A parameter that the statement does
  // not have, or one that is not given, is a user error, as is a mistake in the SQL.
  using OnHeader = std::function<void(const std::vector<std::string>&)>;
  using OnRow = std::function<void(const Row&)>;
  void query(std::string_view sql, const Parameters& parameters, const OnHeader& header, const OnRow& row);
  std::vector<Row> rows(std::string_view sql, const Parameters& parameters = {});
  Value value(std::string_view sql, const Parameters& parameters = {});  // first column of the first row

  // Makes another database readable as schema `name` (other.defuse).
  void attach(const std::filesystem::path& other, const std::string& name);

  // PRAGMA integrity_check and foreign_key_check: what is wrong, or nothing.
  std::vector<std::string> problems();

  SQLite::Database& raw() { return *raw_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<SQLite::Database> raw_;
};

// The names of a statement's parameters, without the colon.
std::vector<std::string> parameter_names(Database& database, std::string_view sql);

// Converts a value as a person would write it; bytes that are not text come as hex.
std::string to_text(const Value& value);

// A user error that says what happened to the database at `path`, from SQLite's own code and message.
[[noreturn]] void throw_database_error(const std::filesystem::path& path, int code, const std::string& message);

}  // namespace stem::db
