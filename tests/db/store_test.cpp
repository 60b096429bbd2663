#include "db/store.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "tests/db/running_example.h"
#include "tests/db/scratch.h"
#include "util/error.h"

using namespace stem;
using namespace stem::db;

namespace {

std::set<std::string> flows(Database& database, const std::string& where = "true") {
  std::set<std::string> found;
  for (const Row& row : database.rows("SELECT variable || ' ' || ifnull(def_line, 0) || '-' || use_line || ' ' || state FROM defuse WHERE " + where)) {
    found.insert(to_text(row[0]));
  }
  return found;
}

int64_t count(Database& database, const std::string& what) { return std::get<int64_t>(database.value("SELECT count(*) FROM " + what)); }

// Everything in the database as text, to compare two of them.
std::string dump(Database& database) {
  std::string all;
  for (const Row& table : database.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")) {
    all += to_text(table[0]) + "\n";
    for (const Row& row : database.rows("SELECT * FROM \"" + to_text(table[0]) + "\" ORDER BY 1, 2")) {
      for (const Value& value : row) all += to_text(value) + "|";
      all += "\n";
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the running example gives its twelve pairs, each in its best state") {
  Scratch folder;
  Store store(folder / "stem.db");
  example::fill(store);
  CHECK(flows(store.database()) == std::set<std::string>{
            "x 0-7 explicit", "x 22-7 implicit confirmed", "x 0-9 explicit", "x 22-9 implicit confirmed", "x 0-19 explicit",
            "x 10-19 explicit", "z 7-22 explicit", "z 0-22 implicit confirmed", "z 9-22 explicit", "z 9-20 explicit", "y 0-18 explicit",
            "y 0-16 explicit"});
  CHECK(flows(store.database(), "cross_thread").size() == 6);
  CHECK(store.database().problems().empty());
  const auto coverage = store.database().rows("SELECT covered, predicted, confirmed, infeasible_in_bound, unknown, infeasible, total FROM coverage");
  REQUIRE(coverage.size() == 1);
  CHECK(coverage[0] == Row{int64_t{9}, int64_t{3}, int64_t{3}, int64_t{0}, int64_t{0}, int64_t{0}, int64_t{12}});
}

TEST_CASE("a definition that nothing takes is unused, and dead once static analysis says so") {
  Scratch folder;
  Store store(folder / "stem.db");
  example::fill(store);
  const std::string fate = "SELECT fate FROM definitions WHERE variable = 'y' AND line = 20";
  CHECK(to_text(store.database().value(fate)) == "unused");
  CHECK(count(store.database(), "definitions WHERE fate = 'unused'") == 1);

  example::Builder builder;
  ProgramData program;
  program.static_done = true;
  program.potential = {builder.pair("x", 5, 10), builder.pair("x", 13, 2), builder.pair("z", 2, 13), builder.pair("z", 2, 11)};
  program.definitions = {{builder.site(11, "y", true), builder.variable("y")}};
  program.names = builder.names;
  store.import_program(program);
  CHECK(to_text(store.database().value(fate)) == "dead");
  CHECK(flows(store.database(), "state = 'potential'") == std::set<std::string>{"z 7-20 potential"});
}

TEST_CASE("importing the same trace twice changes nothing") {
  Scratch folder;
  Store store(folder / "stem.db");
  example::fill(store);
  const std::string before = dump(store.database());
  const auto again = store.import_run(example::run("pi1", {2, 2, 3}, {{"x", 0, 2}}, {}));
  CHECK_FALSE(again.fresh);
  CHECK(dump(store.database()) == before);
}

TEST_CASE("over several traces the first state in the order wins, and a bound is told") {
  Scratch folder;
  Store store(folder / "stem.db");
  const std::vector<State> order{State::Infeasible, State::Unknown, State::Diverged, State::Implicit, State::Confirmed};
  std::vector<std::string> seen;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string hash = "t" + std::to_string(i);
    store.import_run(example::run(hash, {1, 1, static_cast<uint8_t>(i)}, {{"y", 0, 9}}, {}));
    example::Builder builder;
    AnalysisData data;
    data.trace_hash = hash;
    Verdict v;
    v.pair = builder.pair("x", 13, 2);
    v.state = order[i];
    if (v.state == State::Infeasible) v.bound = Bound::Trace;
    data.verdicts = {v};
    data.names = builder.names;
    store.import_analysis(data);
    seen.push_back(to_text(store.database().value("SELECT state || ifnull(':' || bound, '') FROM defuse WHERE variable = 'x'")));
  }
  CHECK(seen == std::vector<std::string>{"infeasible:trace", "unknown", "diverged", "implicit", "implicit confirmed"});
  store.import_run(example::run("t9", {1, 1, 9}, {{"x", 13, 2}}, {}));
  CHECK(to_text(store.database().value("SELECT state FROM defuse WHERE variable = 'x'")) == "explicit");
}

TEST_CASE("only a program-wide infeasible pair leaves the denominator") {
  Scratch folder;
  Store store(folder / "stem.db");
  example::Builder builder;
  store.import_run(example::run("t", {1, 1, 1}, {{"y", 0, 9}}, {}));
  AnalysisData data;
  data.trace_hash = "t";
  for (const auto& [use, bound] : {std::pair{2, Bound::Window}, std::pair{4, Bound::Trace}}) {
    Verdict v;
    v.pair = builder.pair("x", 13, use);
    v.state = State::Infeasible;
    v.bound = bound;
    data.verdicts.push_back(v);
  }
  data.names = builder.names;
  store.import_analysis(data);
  const auto counts = [&] { return store.database().rows("SELECT covered, infeasible_in_bound, infeasible, total FROM coverage")[0]; };
  CHECK(counts() == Row{int64_t{1}, int64_t{2}, int64_t{0}, int64_t{3}});
  CHECK(count(store.database(), "uncovered") == 2);

  ProgramData program;
  Verdict wide = data.verdicts[1];
  wide.bound = Bound::Program;
  program.verdicts = {wide};
  program.names = builder.names;
  store.import_program(program);
  CHECK(counts() == Row{int64_t{1}, int64_t{1}, int64_t{1}, int64_t{2}});
  CHECK(to_text(store.database().value("SELECT bound FROM defuse WHERE use_line = 9 AND variable = 'x'")) == "program");
}

TEST_CASE("an answer that says less does not replace one that says more") {
  Scratch folder;
  Store store(folder / "stem.db");
  store.import_run(example::run("t", {1, 1, 1}, {{"y", 0, 9}}, {}));
  const auto analyse = [&](State state, Bound bound = Bound::None) {
    example::Builder builder;
    AnalysisData data;
    data.trace_hash = "t";
    data.verdicts = {example::implicit(builder, {"x", 13, 2}, state)};
    data.verdicts[0].bound = bound;
    if (state == State::Unknown || state == State::Infeasible) data.verdicts[0].witness.reset();
    data.names = builder.names;
    store.import_analysis(data);
    return to_text(store.database().value("SELECT state || ifnull(':' || bound, '') FROM defuse WHERE variable = 'x'"));
  };
  CHECK(analyse(State::Unknown) == "unknown");
  CHECK(analyse(State::Infeasible, Bound::Window) == "infeasible:window");
  CHECK(analyse(State::Unknown) == "infeasible:window");
  CHECK(analyse(State::Infeasible, Bound::Trace) == "infeasible:trace");
  CHECK(analyse(State::Implicit) == "implicit");
  CHECK(analyse(State::Confirmed) == "implicit confirmed");
  CHECK(analyse(State::Unknown) == "implicit confirmed");
  CHECK(count(store.database(), "witness") == 1);
  CHECK(count(store.database(), "verdict") == 1);
  CHECK(store.database().problems().empty());
}

TEST_CASE("pairs of sources that changed are not current, and come back with them") {
  Scratch folder;
  Store store(folder / "stem.db");
  auto first = example::run("old", {1, 1, 1}, {{"x", 13, 2}, {"y", 0, 9}}, {});
  auto second = example::run("new", {1, 1, 1}, {{"y", 0, 9}}, {});
  second.names.version.build_id = "b2";
  second.names.sources[0].bytes += "// changed\n";
  second.names.sites[0].line += 1;
  store.import_run(first);
  store.import_run(second);
  CHECK(flows(store.database(), "current") == std::set<std::string>{"y 0-19 explicit"});
  CHECK(flows(store.database(), "NOT current") == std::set<std::string>{"x 22-7 explicit"});
  first.run.trace_hash = "old again";
  store.import_run(first);
  CHECK(flows(store.database(), "current").size() == 2);
}

TEST_CASE("invariants: what passing runs taught, and who breaks it") {
  Scratch folder;
  Store store(folder / "stem.db");
  auto passing = example::run("ok", {1, 1, 1}, {{"x", 5, 10}, {"z", 2, 13}}, {});
  example::Builder names;
  names.names = passing.names;
  passing.followers.push_back({names.variable("x"), names.site(2, "x", false), names.site(10, "x", false), 5, 0});
  passing.names = names.names;
  store.import_run(passing);
  CHECK(count(store.database(), "invariants") == 0);

  auto failing = example::run("bad", {1, 1, 1}, {{"x", 13, 10}}, {});
  failing.run.outcome = "signalled";
  failing.run.exit_code = 6;
  names.names = failing.names;
  failing.followers.push_back({names.variable("x"), names.site(2, "x", false), names.site(10, "x", false), 1, 1});
  failing.names = names.names;
  store.import_run(failing);
  std::set<std::string> broken;
  for (const Row& row : store.database().rows("SELECT invariant || ' ' || variable || ' ' || use_line || ' ' || source FROM invariants")) {
    broken.insert(to_text(row[0]));
  }
  // W5 is of another thread than R10, W13 of the same one.
  CHECK(broken == std::set<std::string>{"Local/Remote x 19 run", "Definition set x 19 run", "Follower x 19 run"});
}

TEST_CASE("ids name what can be replayed") {
  Scratch folder;
  Store store(folder / "stem.db");
  example::fill(store);
  const std::string pair = to_text(store.database().value("SELECT name FROM defuse WHERE def_line = 22 AND use_line = 7"));
  CHECK(store.replayable(pair).test_json == R"({"stem_test":1,"pair":"x13-2"})");
  CHECK(store.replayable("r1").trace_path == ".stem/traces/pi1.stem");
  CHECK_THROWS_WITH_AS(store.replayable("p999"), doctest::Contains("there is no pair p999"), UserError);
  CHECK_THROWS_WITH_AS(store.replayable("x"), doctest::Contains("is not an id"), UserError);
  CHECK(store.find_run("pi2") == store.find_run("r2"));
}

TEST_CASE("the tables in the schema are those in the code") {
  Scratch folder;
  Store store(folder / "stem.db");
  std::vector<std::string> expected, found;
#define STEM_STATE(Name, text, cls) expected.push_back(std::string(text) + "/" + cls);
#include "db/states.def"
#define STEM_RELATION(Name, text) expected.push_back(text);
#include "db/relations.def"
  for (const Row& row : store.database().rows("SELECT name || '/' || class FROM state ORDER BY rank")) found.push_back(to_text(row[0]));
  for (const Row& row : store.database().rows("SELECT name FROM relation ORDER BY rank")) found.push_back(to_text(row[0]));
  CHECK(found == expected);
}

TEST_CASE("a million observed pairs, ten thousand distinct, import in under ten seconds") {
  Scratch folder;
  Store store(folder / "stem.db");
  const auto start = std::chrono::steady_clock::now();
  RunData data;
  data.names.version = {"big", "b", "", false};
  data.names.threads = {{"main", "main"}, {"main/1", "worker"}};
  for (uint32_t i = 0; i < 200; ++i) data.names.sites.push_back({i + 1, "big.c", i + 1, 1, "f", "v"});
  for (uint32_t i = 0; i < 64; ++i) data.names.variables.push_back("v" + std::to_string(i));
  for (uint32_t i = 0; i < 1000000; ++i) {
    Observation o;
    o.pair = {i % 50, DefKind::Write, i / 50 % 100, 100 + i / 5000 % 2};
    o.def_thread = i % 2;
    o.use_thread = 1;
    data.observations.add(o);
  }
  REQUIRE(data.observations.rows().size() == 10000);
  data.run = {};
  data.run.trace_hash = "big";
  data.run.outcome = "exited";
  store.import_run(data);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("1,000,000 observed pairs in " << seconds << " s");
  CHECK(count(store.database(), "pair") == 10000);
  CHECK(std::get<int64_t>(store.database().value("SELECT sum(count) FROM observation")) == 1000000);
  CHECK(seconds < 10);
  const auto view = std::chrono::steady_clock::now();
  CHECK(store.database().rows("SELECT * FROM defuse").size() == 10000);
  const double read = std::chrono::duration<double>(std::chrono::steady_clock::now() - view).count();
  MESSAGE("10,000 rows of defuse in " << read << " s");
  CHECK(read < 5);
}
