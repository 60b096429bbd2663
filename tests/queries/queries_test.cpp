// Every named query runs on the running example and says what it should.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "db/store.h"
#include "queries/catalog.h"
#include "tests/db/running_example.h"
#include "tests/db/scratch.h"
#include "util/text.h"

using namespace stem;
using namespace stem::db;

namespace {

const std::map<std::string, Value> kValues{{"variable", "x"}, {"file", "example.c"}, {"line", int64_t{19}}, {"function", "T1"},
                                           {"a", int64_t{1}}, {"b", int64_t{2}},     {"pair", "p1"}};

Parameters parameters_of(const queries::Query& query) {
  Parameters parameters;
  for (const auto& parameter : query.parameters) parameters[parameter.name] = kValues.at(parameter.name);
  return parameters;
}

class Example {
 public:
  Example() { example::fill(store); }
  // One line a row, of the named columns.
  std::set<std::string> ask(const std::string& name, const std::vector<std::string>& columns, Parameters parameters = {}) {
    const queries::Query* query = queries::find(name);
    REQUIRE(query);
    std::map<std::string, size_t> index;
    std::set<std::string> lines;
    store.database().query(
        query->sql, parameters,
        [&](const std::vector<std::string>& header) {
          for (size_t i = 0; i < header.size(); ++i) index[header[i]] = i;
        },
        [&](const Row& row) {
          std::string line;
          for (const std::string& column : columns) line += to_text(row.at(index.at(column))) + " ";
          lines.insert(line.substr(0, line.size() - 1));
        });
    return lines;
  }
  Scratch folder;
  Store store{folder / "stem.db"};
};

using Lines = std::set<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Example, "every query has a title, documents its parameters, and runs") {
  CHECK(queries::catalog().size() > 25);
  {
    Store other(folder / "other.db");
    other.import_run(example::run("pi1", {2, 2, 3}, {{"x", 0, 2}, {"x", 5, 2}}, {}));
  }
  store.database().attach(folder / "other.db", "other");
  for (const queries::Query& query : queries::catalog()) {
    CAPTURE(query.name);
    CHECK_FALSE(query.title.empty());
    std::set<std::string> documented, used;
    for (const auto& parameter : query.parameters) {
      documented.insert(parameter.name);
      CHECK_FALSE(parameter.help.empty());
    }
    for (const std::string& name : parameter_names(store.database(), query.sql)) used.insert(name);
    CHECK(documented == used);
    CHECK_NOTHROW(store.database().rows(query.sql, parameters_of(query)));
  }
}

TEST_CASE_FIXTURE(Example, "pairs of a variable, a line, a function") {
  CHECK(ask("pairs", {"pair"}).size() == 12);
  CHECK(ask("pairs-of-variable", {"def_line", "use_line"}, {{"variable", "x"}}) == Lines{" 7", " 9", " 19", "10 19", "22 7", "22 9"});
  CHECK(ask("pairs-of-variable", {"pair"}, {{"variable", "*"}}).size() == 12);
  CHECK(ask("pairs-of-line", {"here", "def_line", "use_line"}, {{"file", "example.c"}, {"line", int64_t{22}}}) ==
        Lines{"definition 22 7", "definition 22 9", "use  22", "use 7 22", "use 9 22"});
  CHECK(ask("pairs-of-function", {"pair"}, {{"function", "T0"}}).size() == 8);
}

TEST_CASE_FIXTURE(Example, "flows between threads, predictions, several definitions, unused ones") {
  CHECK(ask("cross-thread", {"variable", "def_line", "use_line", "relation"}) ==
        Lines{"x 10 19 data race", "x 22 7 data race", "x 22 9 data race", "z 7 22 data race", "z 9 20 data race", "z 9 22 data race"});
  CHECK(ask("implicit", {"variable", "def_line", "use_line"}) == Lines{"x 22 7", "x 22 9", "z  22"});
  CHECK(ask("reads-with-several-definitions", {"variable", "line", "definitions"}) == Lines{"x 7 2", "x 9 2", "x 19 2", "z 22 3"});
  CHECK(ask("unused-definitions", {"variable", "line", "fate"}) == Lines{"y 20 unused"});
  CHECK(ask("data-races", {"pair"}).size() == 6);
}

TEST_CASE_FIXTURE(Example, "differences between runs, versions and databases") {
  CHECK(ask("diff-runs", {"difference", "variable", "def_line", "use_line"}, {{"a", int64_t{2}}, {"b", "r4"}}) ==
        Lines{"only in r2 y  18", "only in r4 y  16"});
  auto next = example::run("next", {1, 2, 3}, {{"x", 0, 4}, {"x", 13, 4}}, {});
  next.names.version.build_id = "b2";
  next.names.sources[0].bytes += "\n";
  store.import_run(next);
  const Lines changes = ask("diff-versions", {"difference", "variable", "def_line", "use_line", "before", "after"}, {{"a", int64_t{1}}, {"b", int64_t{2}}});
  CHECK(changes.size() == 11);
  CHECK(changes.count("changed x 22 9 implicit confirmed explicit") == 1);
  CHECK(changes.count("lost y  16 explicit ") == 1);
  {
    Store other(folder / "other.db");
    example::fill(other);
    auto more = example::run("more", {2, 2, 3}, {{"x", 13, 2}}, {});
    other.import_run(more);
  }
  Database mine(folder / "other.db", Mode::Read);
  mine.attach(folder / "stem.db", "other");
  std::set<std::string> found;
  for (const Row& row : mine.rows(queries::find("diff-databases")->sql)) found.insert(to_text(row[0]) + " " + to_text(row[1]));
  CHECK(found == Lines{"only here x", "only here y", "only here z", "state x"});
}

TEST_CASE_FIXTURE(Example, "coverage by file, function, variable, thread pair") {
  CHECK(ask("coverage", {"covered", "predicted", "unknown", "infeasible", "total", "percent"}) == Lines{"9 3 0 0 12 75"});
  CHECK(ask("coverage-by-file", {"file", "covered", "total"}) == Lines{"example.c 9 12"});
  CHECK(ask("coverage-by-function", {"function", "covered", "total"}) == Lines{"T0 2 4", "T1 7 8"});
  CHECK(ask("coverage-by-variable", {"variable", "covered", "total"}) == Lines{"x 4 6", "y 2 2", "z 3 4"});
  CHECK(ask("coverage-by-thread-pair", {"def_thread", "use_thread", "covered", "predicted"}) ==
        Lines{"(initial) main/1 2 0", "(initial) main/2 3 1", "main/1 main/2 4 0", "main/2 main/1 0 2"});
}

TEST_CASE_FIXTURE(Example, "a witness, step by step, and the relation of a pair") {
  const std::string name = to_text(store.database().value("SELECT name FROM defuse WHERE def_line = 22 AND use_line = 7"));
  CHECK(ask("witness", {"step", "thread", "kind", "line", "mark"}, {{"pair", name}}) ==
        Lines{"0 main/2 write 22 definition", "1 main/1 read 7 use"});
  CHECK(ask("relation-of-pair", {"def_thread", "use_thread", "relation", "state"}, {{"pair", name}}) ==
        Lines{"main/2 main/1 data race implicit confirmed"});
}

TEST_CASE("text is made harmless, and globs match") {
  CHECK(valid_utf8("a\xff\xc3(\xc3\xa4\n") == "a\\xff\\xc3(\xc3\xa4\n");
  CHECK(printable("a\n\x1b[31m\t\x7f\xc2\x9b") == "a\\n\\x1b[31m\\t\\x7f\\x9b");
  CHECK(valid_utf8("\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf") == "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xc0\\xaf");
  CHECK(matches_glob("src/*.c", "src/a/b.c"));
  CHECK(matches_glob("q?[]*", "q1[].next"));
  CHECK_FALSE(matches_glob("*.h", "a.c"));
  CHECK(split_lines("a\r\nb\n\nc") == std::vector<std::string_view>{"a", "b", "", "c"});
}
