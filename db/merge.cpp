#include "db/merge.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/embedded.h"

namespace stem::db {
namespace {

Merged count(Database& database) {
  const auto number = [&](const char* table) {
    return std::get<int64_t>(database.value(std::string("SELECT count(*) FROM main.") + table));
  };
  return {number("run"), number("pair"), number("verdict"), number("finding")};
}

}  // namespace

Merged merge(Database& into, const std::filesystem::path& from) {
  into.attach(from, "other");
  const Merged before = count(into);
  SQLite::Database& raw = into.raw();
  try {
    raw.exec("PRAGMA temp_store = MEMORY");
    SQLite::Transaction transaction(raw, SQLite::TransactionBehavior::IMMEDIATE);
    raw.exec(std::string(embedded_file("merge.sql")));
    SQLite::Statement temporary(raw, "SELECT name FROM temp.sqlite_master WHERE type = 'table'");
    std::string drop;
    while (temporary.executeStep()) drop += "DROP TABLE temp." + temporary.getColumn(0).getString() + ";";
    temporary.reset();
    raw.exec(drop);
    transaction.commit();
    raw.exec("DETACH other");
  } catch (const SQLite::Exception& exception) {
    throw_database_error(into.path(), exception.getErrorCode(), exception.what());
  }
  const Merged after = count(into);
  return {after.runs - before.runs, after.pairs - before.pairs, after.verdicts - before.verdicts, after.findings - before.findings};
}

}  // namespace stem::db
