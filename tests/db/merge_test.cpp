#include "db/merge.h"

#include <doctest/doctest.h>

#include "db/store.h"
#include "tests/db/running_example.h"
#include "tests/db/scratch.h"

using namespace stem;
using namespace stem::db;

namespace {

std::string defuse(Database& database) {
  std::string all;
  for (const Row& row : database.rows("SELECT program, variable, def_line, use_line, cross_thread, state, relation, fingerprint FROM defuse ORDER BY fingerprint")) {
    for (const Value& value : row) all += to_text(value) + "|";
    all += "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("two halves merge into the whole, in either order") {
  Scratch folder;
  Store whole(folder / "whole.db");
  example::fill(whole);
  const auto half = [&](const std::string& name, bool first) {
    Store store(folder / name);
    if (first) {
      store.import_run(example::run("pi1", {2, 2, 3}, {{"x", 0, 2}, {"x", 0, 10}, {"z", 2, 13}, {"y", 0, 9}}, {{"z", 2}, {"x", 13}}));
      store.import_analysis(example::analysis("pi1", {{"x", 13, 2}, {"z", 0, 13}}));
      store.import_run(example::run("pi3", {1, 2, 3}, {{"x", 0, 4}, {"x", 0, 10}, {"z", 4, 13}, {"y", 0, 9}}, {{"z", 4}, {"x", 5}, {"x", 13}}));
    } else {
      store.import_run(example::run("pi4", {1, 6, 3}, {{"x", 0, 4}, {"z", 4, 11}, {"x", 5, 10}, {"y", 0, 7}}, {{"z", 4}, {"x", 5}, {"y", 11}}));
      store.import_run(example::run("pi3", {1, 2, 3}, {{"x", 0, 4}, {"x", 0, 10}, {"z", 4, 13}, {"y", 0, 9}}, {{"z", 4}, {"x", 5}, {"x", 13}}));
      store.import_analysis(example::analysis("pi3", {{"x", 13, 4}, {"z", 0, 13}, {"x", 5, 10}}));
      store.import_run(example::run("pi2", {1, 2, 3}, {{"x", 0, 4}, {"z", 4, 11}, {"x", 5, 10}, {"y", 0, 9}}, {{"z", 4}, {"x", 5}, {"y", 11}}));
      for (const char* trace : {"pi2", "pi4"}) store.import_analysis(example::analysis(trace, {{"x", 0, 10}}));
    }
  };
  for (bool order : {true, false}) {
    const std::string into = order ? "a.db" : "c.db", from = order ? "b.db" : "d.db";
    half(into, order);
    half(from, !order);
    Database database(folder / into, Mode::Write);
    const Merged merged = merge(database, folder / from);
    CHECK(merged.runs == (order ? 2 : 1));
    CHECK(database.problems().empty());
    CHECK(defuse(database) == defuse(whole.database()));
    CHECK(database.rows("SELECT 1 FROM run WHERE trace_hash = 'pi3' AND analysed_at IS NOT NULL").size() == 1);
    CHECK(database.rows("SELECT * FROM witness_step").size() == whole.database().rows("SELECT * FROM witness_step").size());

    const Merged again = merge(database, folder / from);
    CHECK(again.runs + again.pairs + again.verdicts + again.findings == 0);
    CHECK(database.problems().empty());
  }
}
