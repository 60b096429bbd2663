// Opening: what is refused, what is migrated, and that a kill leaves a consistent database.
#include "db/database.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "db/embedded.h"
#include "db/store.h"
#include "db/version.h"
#include "tests/db/running_example.h"
#include "tests/db/scratch.h"
#include "util/error.h"

using namespace stem;
using namespace stem::db;
namespace fs = std::filesystem;

namespace {

std::string open_error(const fs::path& path, Mode mode, const Options& options = {}) {
  try {
    Database database(path, mode, options);
    return "opened";
  } catch (const UserError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Root may write anywhere: the tests of permissions run as somebody else.
class Unprivileged {
 public:
  Unprivileged() {
    if (geteuid() == 0) was_root_ = seteuid(65534) == 0;
  }
  ~Unprivileged() {
    if (was_root_ && seteuid(0) != 0) abort();
  }

 private:
  bool was_root_ = false;
};

}  // namespace

TEST_CASE("what is not a STEM database is refused, and left alone") {
  Scratch folder;
  CHECK(contains(open_error(folder / "none.db", Mode::Read), "Record a run first"));
  std::ofstream(folder / "text.db") << "this is not a database, it is only a text that is long enough to be read as a header";
  CHECK(contains(open_error(folder / "text.db", Mode::Write), "not an SQLite file"));
  { Database(folder / "ours.db", Mode::Create); }
  Database ours(folder / "ours.db", Mode::Write);
  ours.rows("PRAGMA application_id = 7");
  CHECK(contains(open_error(folder / "ours.db", Mode::Create), "another program made it"));
  CHECK(contains(open_error(folder.path(), Mode::Create), "is a folder"));
}

TEST_CASE("a database of a newer version is refused") {
  Scratch folder;
  {
    Store store(folder / "stem.db");
    example::fill(store);
    store.database().rows("PRAGMA user_version = 1000");
  }
  for (Mode mode : {Mode::Create, Mode::Write, Mode::Read}) {
    const std::string error = open_error(folder / "stem.db", mode);
    CHECK(contains(error, "newer version of STEM"));
    CHECK(contains(error, "1000"));
  }
}

TEST_CASE("an older database is backed up, then migrated") {
  Scratch folder;
  const fs::path path = folder / "stem.db";
  {
    Store store(path);
    example::fill(store);
  }
  const int next = kSchemaVersion + 1;
  const Migration migrations[] = {{next, "ALTER TABLE run ADD COLUMN host TEXT; UPDATE run SET host = 'here'"}};
  Options options;
  options.version = next;
  options.migrations = migrations;
  SUBCASE("by a command that writes") { Database(path, Mode::Write, options); }
  SUBCASE("by a command that only reads") { Database(path, Mode::Read, options); }
  Database migrated(path, Mode::Read, options);
  CHECK(to_text(migrated.value("SELECT DISTINCT host FROM run")) == "here");
  CHECK(std::get<int64_t>(migrated.value("SELECT count(*) FROM defuse")) == 12);
  CHECK(std::get<int64_t>(migrated.value("PRAGMA user_version")) == next);
  const fs::path backup = path.string() + ".v" + std::to_string(kSchemaVersion) + ".bak";
  REQUIRE(fs::exists(backup));
  Database old(backup, Mode::Read);
  CHECK(std::get<int64_t>(old.value("SELECT count(*) FROM defuse")) == 12);
  CHECK(old.problems().empty());
}

TEST_CASE("a migration that fails changes nothing") {
  Scratch folder;
  const fs::path path = folder / "stem.db";
  {
    Store store(path);
    example::fill(store);
  }
  const Migration migrations[] = {{kSchemaVersion + 1, "ALTER TABLE run ADD COLUMN host TEXT; SELECT broken"}};
  Options options;
  options.version = kSchemaVersion + 1;
  options.migrations = migrations;
  CHECK_THROWS(Database(path, Mode::Write, options));
  Database same(path, Mode::Read);
  CHECK(same.problems().empty());
  CHECK(std::get<int64_t>(same.value("SELECT count(*) FROM pragma_table_info('run') WHERE name = 'host'")) == 0);
}

TEST_CASE("the migrations lead from every older version to the schema") {
  for (int from = 1; from < kSchemaVersion; ++from) {
    bool found = false;
    for (const EmbeddedFile& file : embedded_files()) {
      found |= file.name.starts_with("migrations/" + fmt::format("{:04}", from + 1));
    }
    CHECK_MESSAGE(found, "no migration to version " << from + 1);
  }
}

TEST_CASE("a locked database and a read-only folder are clear errors") {
  Scratch folder;
  const fs::path path = folder / "state" / "stem.db";
  {
    Store store(path);
    example::fill(store);
  }
  SUBCASE("locked") {
    Database holder(path, Mode::Write);
    holder.rows("BEGIN IMMEDIATE");
    Options options;
    options.busy_timeout_ms = 50;
    Store store(path, Mode::Write, options);
    try {
      store.import_run(example::run("locked", {1, 2, 3}, {{"x", 0, 2}}, {}));
      FAIL("imported into a locked database");
    } catch (const UserError& error) {
      CHECK(contains(error.what(), "is locked"));
      CHECK(contains(error.what(), "Try again"));
    }
    CHECK(Database(path, Mode::Read).rows("SELECT * FROM defuse").size() == 12);  // readers go on
  }
  SUBCASE("read-only folder") {
    fs::permissions(folder.path(), static_cast<fs::perms>(0755));
    fs::permissions(path.parent_path(), static_cast<fs::perms>(0555));
    fs::permissions(path, static_cast<fs::perms>(0444));
    {
      Unprivileged somebody;
      const std::string error = open_error(path, Mode::Create);
      CHECK_MESSAGE(contains(error, "read-only"), error);
      CHECK(contains(open_error(path.parent_path() / "new" / "stem.db", Mode::Create), "cannot make the folder"));
      CHECK(contains(open_error(path.parent_path() / "new.db", Mode::Create), "Choose another place"));
      CHECK(Database(path, Mode::Read).rows("SELECT * FROM defuse").size() == 12);  // reading needs no writable folder
    }
    fs::permissions(path.parent_path(), fs::perms::owner_all);
  }
}

TEST_CASE("a database that is read cannot be changed") {
  Scratch folder;
  Store store(folder / "stem.db");
  example::fill(store);
  Database reader(folder / "stem.db", Mode::Read);
  for (const char* sql : {"DELETE FROM pair", "DROP TABLE pair", "SELECT 1; DELETE FROM pair", "PRAGMA user_version = 9",
                          "INSERT INTO state VALUES ('x', 99, 'y')"}) {
    CHECK_THROWS_AS(reader.rows(sql), UserError);
  }
  CHECK(store.database().rows("SELECT * FROM pair").size() == 12);
}

TEST_CASE("SQL of a person: mistakes and parameters are told by name") {
  Scratch folder;
  Store store(folder / "stem.db");
  Database& database = store.database();
  const auto error = [&](const char* sql, const Parameters& parameters = {}) {
    try {
      database.rows(sql, parameters);
      return std::string("ran");
    } catch (const UserError& e) {
      return std::string(e.what());
    }
  };
  CHECK(contains(error("SELECT nothing FROM defuse"), "nothing"));
  CHECK(contains(error("SELECT * FROM defuse WHERE use_line = :line"), "--param line=VALUE"));
  CHECK(contains(error("SELECT 1", {{"line", int64_t{1}}}), "no parameter line"));
  CHECK(contains(error("  -- only a comment"), "no SQL"));
  CHECK(parameter_names(database, "SELECT :a, :b") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("kill -9 in the middle of a hundred imports leaves a consistent database, and a rerun completes it") {
  Scratch folder;
  const fs::path path = folder / "stem.db";
  const auto import_all = [&](Store& store) {
    for (int i = 0; i < 100; ++i) {
      auto data = example::run("run" + std::to_string(i), {1, 2, static_cast<uint8_t>(i)}, {{"x", 0, 4}, {"x", 5, 10}, {"z", 4, 11}}, {{"z", 4}});
      for (uint32_t k = 0; k < 300; ++k) {  // enough rows that a kill falls inside a transaction
        data.names.sites.push_back({1000 + k, "example.c", k, 1, "f", "v"});
        data.accesses.push_back({static_cast<uint32_t>(data.names.sites.size() - 1), 0, Access::Write, 1});
      }
      store.import_run(data);
      store.import_analysis(example::analysis(data.run.trace_hash, {{"x", 13, 4}}));
    }
  };
  int killed_midway = 0;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        Store store(path);
        import_all(store);
        _exit(0);
      } catch (...) {
        _exit(1);
      }
    }
    usleep(static_cast<useconds_t>(3000 + 9000 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) CHECK(WEXITSTATUS(status) == 0);
    if (!fs::exists(path)) continue;
    Database check(path, Mode::Create);
    CHECK(check.problems().empty());
    const auto runs = std::get<int64_t>(check.value("SELECT count(*) FROM run"));
    killed_midway += runs > 0 && runs < 100;
    // Each run is there as a whole or not at all.
    CHECK(std::get<int64_t>(check.value("SELECT count(*) FROM run WHERE (SELECT count(*) FROM observation o WHERE o.run_id = run.id) <> 3")) == 0);
    CHECK(std::get<int64_t>(check.value("SELECT count(*) FROM run WHERE (SELECT count(*) FROM access a WHERE a.run_id = run.id) <> 304")) == 0);
  }
  CHECK(killed_midway > 0);
  Store store(path);
  import_all(store);
  CHECK(store.database().problems().empty());
  CHECK(store.database().rows("SELECT * FROM run WHERE analysed_at IS NOT NULL").size() == 100);
  CHECK(store.database().rows("SELECT * FROM observation").size() == 300);
}
