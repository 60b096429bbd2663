// Statements and transactions, for the files of db/ that write: bound in order, and with SQLite's errors turned into ours.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "db/database.h"
#include "util/error.h"

namespace stem::db {

inline std::string now() {
  std::timespec t{};
  std::timespec_get(&t, TIME_UTC);
  std::tm utc{};
  gmtime_r(&t.tv_sec, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", text, t.tv_nsec / 1000000);
}

// A number or NULL. (GCC 12 takes an empty std::optional for an uninitialised read here.)
struct Id {
  Id() = default;
  template <typename Integer>
  explicit Id(Integer number) : present(true), number(static_cast<int64_t>(number)) {}
  explicit operator bool() const { return present; }
  int64_t or_zero() const { return present ? number : 0; }
  bool present = false;
  int64_t number = 0;
};

// Binds in order; an empty Id, an empty optional and nullptr are NULL.
class Insert {
 public:
  Insert(SQLite::Database& database, const char* sql) : statement_(database, sql) {}

  template <typename... Args>
  int64_t operator()(const Args&... args) {
    statement_.reset();
    int index = 0;
    (put(++index, args), ...);
    int64_t result = 0;
    if (statement_.executeStep() && statement_.getColumnCount() > 0) {
      result = statement_.getColumn(0).getInt64();
    }
    statement_.reset();  // RETURNING has done its work by the first row
    return result;
  }

 private:
  void put(int i, std::nullptr_t) { statement_.bind(i); }
  void put(int i, const char* text) { text ? statement_.bind(i, text) : statement_.bind(i); }
  void put(int i, const std::string& text) { statement_.bind(i, text); }
  void put(int i, const std::vector<uint8_t>& bytes) { statement_.bind(i, bytes.data(), static_cast<int>(bytes.size())); }
  void put(int i, double number) { statement_.bind(i, number); }
  template <typename Integer>
    requires std::is_integral_v<Integer>
  void put(int i, Integer number) { statement_.bind(i, static_cast<int64_t>(number)); }
  void put(int i, const Id& id) { id ? statement_.bind(i, id.number) : statement_.bind(i); }
  void put(int i, const std::optional<std::string>& text) { text ? statement_.bind(i, *text) : statement_.bind(i); }

  SQLite::Statement statement_;
};

inline std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Runs `work` in a transaction that takes the write lock at once, and turns SQLite's errors into ours.
template <typename Work>
void in_transaction(Database& database, Work work) {
  try {
    SQLite::Transaction transaction(database.raw(), SQLite::TransactionBehavior::IMMEDIATE);
    work();
    transaction.commit();
  } catch (const SQLite::Exception& exception) {
    throw_database_error(database.path(), exception.getErrorCode(), exception.what());
  }
}

}  // namespace stem::db
