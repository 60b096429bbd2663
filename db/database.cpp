#include "db/database.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <charconv>

#include "db/embedded.h"
#include "db/version.h"
#include "util/error.h"

namespace stem::db {
namespace fs = std::filesystem;
namespace {

int64_t pragma(SQLite::Database& database, const char* name) {
  return database.execAndGet(std::string("PRAGMA ") + name).getInt64();
}

// db/migrations/0002-what-it-does.sql leads to version 2.
std::vector<Migration> embedded_migrations() {
  std::vector<Migration> found;
  for (const EmbeddedFile& file : embedded_files()) {
    constexpr std::string_view folder = "migrations/";
    if (!file.name.starts_with(folder)) continue;
    const std::string_view number = file.name.substr(folder.size(), 4);
    Migration migration{0, file.text};
    std::from_chars(number.data(), number.data() + number.size(), migration.to);
    found.push_back(migration);
  }
  return found;
}

void make_views(SQLite::Database& database) {
  std::vector<std::string> views;
  SQLite::Statement statement(database, "SELECT name FROM sqlite_master WHERE type = 'view'");
  while (statement.executeStep()) views.push_back(statement.getColumn(0).getString());
  for (const std::string& view : views) database.exec("DROP VIEW \"" + view + "\"");
  database.exec(std::string(embedded_file("views.sql")));
}

void create_schema(SQLite::Database& database, int version) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  if (pragma(database, "user_version") != 0) return;  // another process was first
  database.exec(std::string(embedded_file("schema.sql")));
  make_views(database);
  database.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, version));
  transaction.commit();
}

fs::path back_up(SQLite::Database& database, const fs::path& path, int version) {
  fs::path copy = path;
  copy += fmt::format(".v{}.bak", version);
  for (int n = 2; fs::exists(copy); ++n) copy = path.string() + fmt::format(".v{}.bak{}", version, n);
  SQLite::Database target(copy.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  SQLite::Backup(target, database).executeStep(-1);
  return copy;
}

void migrate(SQLite::Database& database, const fs::path& path, int target, std::span<const Migration> migrations) {
  back_up(database, path, static_cast<int>(pragma(database, "user_version")));
  database.exec("PRAGMA foreign_keys = OFF");  // a migration may rebuild a table; checked before the commit
  {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    for (auto at = pragma(database, "user_version"); at < target; ++at) {
      const Migration* step = nullptr;
      for (const Migration& migration : migrations) {
        if (migration.to == at + 1) step = &migration;
      }
      STEM_CHECK(step != nullptr);
      database.exec(std::string(step->sql));
      database.exec(fmt::format("PRAGMA user_version = {}", at + 1));
    }
    make_views(database);
    SQLite::Statement broken(database, "PRAGMA foreign_key_check");
    STEM_CHECK(!broken.executeStep());
    transaction.commit();
  }
  database.exec("PRAGMA foreign_keys = ON");
}

// A database in WAL mode needs its -shm file even to be read. Where that cannot be made, and no other process can be
// writing (there is no -wal file), the file is opened as immutable instead.
std::unique_ptr<SQLite::Database> open_to_read(const fs::path& path, int timeout) {
  const bool wal_waits = fs::exists(path.string() + "-wal");
  const fs::path folder = path.parent_path().empty() ? "." : path.parent_path();
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) != 0 && !wal_waits) {
    std::string uri = "file:";
    for (unsigned char c : path.string()) {
      if (std::isalnum(c) || c == '/' || c == '.' || c == '-' || c == '_') uri += static_cast<char>(c);
      else uri += fmt::format("%{:02X}", c);
    }
    return std::make_unique<SQLite::Database>(uri + "?immutable=1", SQLite::OPEN_READONLY | SQLite::OPEN_URI, timeout);
  }
  return std::make_unique<SQLite::Database>(path.string(), SQLite::OPEN_READONLY, timeout);
}

std::unique_ptr<SQLite::Database> open_to_write(const fs::path& path, Mode mode, int timeout) {
  if (mode == Mode::Create && !path.parent_path().empty()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      user_error("cannot make the folder {}: {}. Choose another place with --db FILE.", path.parent_path().string(), error.message());
    }
  }
  const int flags = SQLite::OPEN_READWRITE | (mode == Mode::Create ? SQLite::OPEN_CREATE : 0);
  auto raw = std::make_unique<SQLite::Database>(path.string(), flags, timeout);
  raw->exec("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY");
  return raw;
}

void check_is_ours(SQLite::Database& raw, const fs::path& path, int version) {
  const auto application = pragma(raw, "application_id");
  const auto found = pragma(raw, "user_version");
  if (application != kApplicationId) {
    user_error("{} is not a STEM database (another program made it). Choose another file with --db FILE.", path.string());
  }
  if (found > version) {
    user_error("{} was written by a newer version of STEM (schema {}, this one knows {}). Update STEM, or choose another file with --db FILE.",
               path.string(), found, version);
  }
}

bool is_empty(SQLite::Database& raw) {
  return pragma(raw, "user_version") == 0 && pragma(raw, "application_id") == 0 &&
         raw.execAndGet("SELECT count(*) FROM sqlite_master").getInt64() == 0;
}

}  // namespace

void throw_database_error(const fs::path& path, int code, const std::string& message) {
  const std::string name = path.string();
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      user_error("the database {} is locked: another process is writing to it. Try again when it is done.", name);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      user_error("cannot write to the database {}: the file or its folder is read-only. Choose another place with --db FILE.", name);
    case SQLITE_CANTOPEN:
      user_error("cannot open the database {}: its folder is missing or may not be written ({}). Choose another place with --db FILE.", name, message);
    case SQLITE_NOTADB:
      user_error("{} is not a STEM database (not an SQLite file). Choose another file with --db FILE.", name);
    case SQLITE_CORRUPT:
      user_error("the database {} is damaged ({}). `sqlite3 {} .recover` may save what is in it.", name, message, name);
    case SQLITE_FULL:
      user_error("no space left for the database {}. Nothing was changed.", name);
    case SQLITE_IOERR:
      user_error("reading or writing the database {} failed: {}", name, message);
    default:
      throw InternalError(fmt::format("database {}: {}", name, message));
  }
}

Database::Database(fs::path path, Mode mode, const Options& options) : path_(std::move(path)) {
  const int version = options.version ? options.version : kSchemaVersion;
  std::error_code error;
  if (mode != Mode::Create && !fs::exists(path_, error)) {
    user_error("there is no database {}. Record a run first: stem record ./prog", path_.string());
  }
  if (fs::is_directory(path_, error)) user_error("{} is a folder; a database file is needed (--db FILE).", path_.string());
  try {
    raw_ = mode == Mode::Read ? open_to_read(path_, options.busy_timeout_ms) : open_to_write(path_, mode, options.busy_timeout_ms);
    if (is_empty(*raw_)) {
      if (mode != Mode::Create) user_error("{} is empty. Record a run first: stem record ./prog", path_.string());
      raw_->exec("PRAGMA journal_mode = WAL");
      create_schema(*raw_, version);
    }
    check_is_ours(*raw_, path_, version);
    if (pragma(*raw_, "user_version") < version) {
      if (mode == Mode::Read) {
        raw_.reset();
        Database(path_, Mode::Write, options);  // migrates
        raw_ = open_to_read(path_, options.busy_timeout_ms);
      } else {
        const auto embedded = embedded_migrations();
        migrate(*raw_, path_, version, options.version ? options.migrations : embedded);
      }
    }
    if (mode != Mode::Read) raw_->exec("PRAGMA journal_mode = WAL");
    else raw_->exec("PRAGMA query_only = ON");
  } catch (const SQLite::Exception& exception) {
    throw_database_error(path_, exception.getErrorCode(), exception.what());
  }
}

Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

void Database::attach(const fs::path& other, const std::string& name) {
  Database check(other, Mode::Read);  // exists, is ours, has our schema
  try {
    SQLite::Statement statement(*raw_, "ATTACH DATABASE ? AS " + name);
    statement.bind(1, other.string());
    statement.exec();
  } catch (const SQLite::Exception& exception) {
    throw_database_error(other, exception.getErrorCode(), exception.what());
  }
}

std::vector<std::string> Database::problems() {
  std::vector<std::string> found;
  for (const Row& row : rows("PRAGMA integrity_check")) {
    if (to_text(row[0]) != "ok") found.push_back(to_text(row[0]));
  }
  for (const Row& row : rows("PRAGMA foreign_key_check")) {
    found.push_back(fmt::format("row {} of {} refers to a missing row of {}", to_text(row[1]), to_text(row[0]), to_text(row[2])));
  }
  return found;
}

}  // namespace stem::db
