// Running SQL that a person wrote: on SQLite's own interface, because SQLiteCpp hides what is left after a statement.
#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <set>

#include "db/database.h"
#include "util/error.h"

namespace stem::db {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

[[noreturn]] void fail(Database& database, int code) {
  sqlite3* handle = database.raw().getHandle();
  const std::string message = sqlite3_errmsg(handle);
  const int basic = code & 0xff;
  if (basic == SQLITE_READONLY || basic == SQLITE_AUTH) {
    user_error("this SQL would change the database; add --write if that is what you want.");
  }
  if (basic == SQLITE_ERROR || basic == SQLITE_RANGE || basic == SQLITE_MISMATCH || basic == SQLITE_CONSTRAINT) {
    user_error("SQL: {}. `stem query --schema` shows the tables and views.", message);
  }
  throw_database_error(database.path(), code, message);
}

Statement prepare(Database& database, std::string_view& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(database.raw().getHandle(), sql.data(), static_cast<int>(sql.size()), &statement, &tail);
  if (code != SQLITE_OK) fail(database, code);
  sql.remove_prefix(static_cast<size_t>(tail - sql.data()));
  return Statement(statement);
}

void bind(sqlite3_stmt* statement, int index, const Value& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int index;
    void operator()(std::monostate) const { sqlite3_bind_null(statement, index); }
    void operator()(int64_t number) const { sqlite3_bind_int64(statement, index, number); }
    void operator()(double number) const { sqlite3_bind_double(statement, index, number); }
    void operator()(const std::string& text) const {
      sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    void operator()(const Blob& bytes) const {
      sqlite3_bind_blob64(statement, index, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
    }
  };
  std::visit(Binder{statement, index}, value);
}

Value column(sqlite3_stmt* statement, int index) {
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER: return int64_t{sqlite3_column_int64(statement, index)};
    case SQLITE_FLOAT: return sqlite3_column_double(statement, index);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, index));
      return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, index)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const uint8_t*>(sqlite3_column_blob(statement, index));
      return Blob(bytes, bytes + sqlite3_column_bytes(statement, index));
    }
    default: return std::monostate{};
  }
}

}  // namespace

void Database::query(std::string_view sql, const Parameters& parameters, const OnHeader& header, const OnRow& on_row) {
  std::set<std::string> unused;
  for (const auto& [name, value] : parameters) unused.insert(name);
  bool any = false;
  while (!sql.empty()) {
    Statement statement = prepare(*this, sql);
    if (!statement) continue;  // a comment, or nothing
    any = true;
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement.get()); ++i) {
      const char* name = sqlite3_bind_parameter_name(statement.get(), i);
      const std::string key = name ? name + 1 : "";
      auto found = parameters.find(key);
      if (found == parameters.end()) user_error("the query needs a value for {}: add --param {}=VALUE", key, key);
      bind(statement.get(), i, found->second);
      unused.erase(key);
    }
    const int columns = sqlite3_column_count(statement.get());
    if (columns > 0 && header) {
      std::vector<std::string> names;
      for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(statement.get(), i));
      header(names);
    }
    Row row(static_cast<size_t>(columns));
    int code = sqlite3_step(statement.get());
    for (; code == SQLITE_ROW; code = sqlite3_step(statement.get())) {
      for (int i = 0; i < columns; ++i) row[static_cast<size_t>(i)] = column(statement.get(), i);
      if (on_row) on_row(row);
    }
    if (code != SQLITE_DONE) fail(*this, code);
  }
  if (!any) user_error("there is no SQL to run.");
  if (!unused.empty()) user_error("the query has no parameter {}.", *unused.begin());
}

std::vector<Row> Database::rows(std::string_view sql, const Parameters& parameters) {
  std::vector<Row> all;
  query(sql, parameters, nullptr, [&](const Row& row) { all.push_back(row); });
  return all;
}

Value Database::value(std::string_view sql, const Parameters& parameters) {
  const auto all = rows(sql, parameters);
  return all.empty() || all[0].empty() ? Value{} : all[0][0];
}

std::vector<std::string> parameter_names(Database& database, std::string_view sql) {
  std::vector<std::string> names;
  while (!sql.empty()) {
    Statement statement = prepare(database, sql);
    for (int i = 1; statement && i <= sqlite3_bind_parameter_count(statement.get()); ++i) {
      const char* name = sqlite3_bind_parameter_name(statement.get(), i);
      if (name) names.emplace_back(name + 1);
    }
  }
  return names;
}

std::string to_text(const Value& value) {
  struct Printer {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const Blob& bytes) const {
      std::string hex;
      for (uint8_t byte : bytes) hex += fmt::format("{:02x}", byte);
      return hex;
    }
  };
  return std::visit(Printer{}, value);
}

}  // namespace stem::db
