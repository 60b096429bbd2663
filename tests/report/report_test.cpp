// The running example's report in each format, and what suppressions, changes and hostile names do to it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/formats.h"
#include "report/suppress.h"
#include "tests/db/running_example.h"
#include "tests/db/scratch.h"
#include "tests/report/hostile.h"
#include "util/error.h"
#include "util/text.h"

using namespace stem;
using namespace stem::report;
using Value = nlohmann::json;
namespace fs = std::filesystem;
namespace example = stem::db::example;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

struct Example {
  Example() { example::fill(store); }
  Model model() { return load(store.database(), folder.path()); }
  Scratch folder;
  db::Store store{folder / "stem.db"};
};

bool is_utf8(const std::string& text) { return valid_utf8(text) == text; }

}  // namespace

TEST_CASE_FIXTURE(Example, "the model has the twelve pairs and their coverage") {
  const Model m = model();
  CHECK(m.pairs.size() == 12);
  const Coverage c = m.coverage();
  CHECK(c.covered == 9);
  CHECK(c.predicted == 3);
  CHECK(c.confirmed == 3);
  CHECK(c.total() == 12);
  CHECK(c.percent_text() == "75.0 %");
  REQUIRE(m.definitions.size() == 1);
  CHECK(m.definitions[0].place.line == 20);
  CHECK(m.source_line(m.definitions[0].place) == "y = z + 1;");
}

TEST_CASE_FIXTURE(Example, "text: a summary that fits a screen, then pairs with source lines") {
  const std::string out = text(model());
  CHECK(contains(out, "Predicted, but never exercised (3)"));
  const size_t details = out.find("====");
  REQUIRE(details != std::string::npos);
  CHECK(std::count(out.begin(), out.begin() + static_cast<long>(details), '\n') < 24);
  for (const char* part : {"75.0 %", "covered                         9", "predicted, not exercised        3  3 confirmed by replay", "infeasible within a bound       0",
                           "unknown                         0", "total                          12", "suppressed                      0"}) {
    CHECK_MESSAGE(contains(out, part), part);
  }
  CHECK(contains(out, "written  example.c:22 in T1"));
  CHECK(contains(out, "| x = z - 1;"));
  CHECK(contains(out, "| z = x + 2;"));
  CHECK(contains(out, "stem replay p"));
  CHECK(contains(out, "y: never used in any trace or prediction"));
}

TEST_CASE_FIXTURE(Example, "json: every pair, the denominator, the witnesses") {
  const Value out = Value::parse(report::json(model()));
  CHECK(out["pairs"].size() == 12);
  CHECK(out["coverage"]["covered"] == 9);
  CHECK(out["coverage"]["predicted"] == 3);
  CHECK(out["coverage"]["total"] == 12);
  CHECK(out["unused_definitions"][0]["place"]["line"] == 20);
  size_t initial = 0, witnesses = 0;
  for (const Value& pair : out["pairs"]) {
    initial += pair["def"].is_null();
    if (!pair.contains("witness")) continue;
    ++witnesses;
    const Value& witness = out["witnesses"][std::to_string(pair["witness"].get<int>())];
    CHECK(witness["steps"][witness["use_step"].get<size_t>()]["kind"] == "read");
  }
  CHECK(initial == 6);
  CHECK(witnesses == 3);
}

TEST_CASE_FIXTURE(Example, "sarif: one threadFlow per thread, stable fingerprints") {
  const Value out = Value::parse(sarif(model()));
  CHECK(out["version"] == "2.1.0");
  const Value& run = out["runs"][0];
  size_t flows = 0;
  for (const Value& result : run["results"]) {
    const std::string rule = result["ruleId"];
    CHECK(run["tool"]["driver"]["rules"][result["ruleIndex"].get<size_t>()]["id"] == rule);
    CHECK(result["partialFingerprints"]["stemPair/v1"].get<std::string>().size() == 16);
    if (rule != "stem/unexercised-flow") continue;
    ++flows;
    const Value& threads = result["codeFlows"][0]["threadFlows"];
    std::vector<int> order;
    for (const Value& thread : threads) {
      for (const Value& location : thread["locations"]) order.push_back(location["executionOrder"]);
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<int>(i) + 1);
    if (result.contains("relatedLocations")) CHECK(threads.size() == 2);
  }
  CHECK(flows == 3);
  Scratch elsewhere;  // another database, other ids: the same fingerprints
  db::Store other(elsewhere / "other.db");
  other.import_run(example::run("other", {9, 9, 9}, {{"z", 4, 11}}, {}));
  example::fill(other);
  const Value again = Value::parse(sarif(load(other.database(), folder.path())));
  const auto fingerprints = [](const Value& log) {
    std::set<std::string> all;
    for (const Value& result : log["runs"][0]["results"]) all.insert(result["partialFingerprints"]["stemRule/v1"]);
    return all;
  };
  CHECK(fingerprints(again) == fingerprints(out));
}

TEST_CASE_FIXTURE(Example, "markdown and html carry the pairs and the denominator") {
  const std::string md = markdown(model());
  CHECK(contains(md, "### Def-use coverage: 75.0 %"));
  CHECK(contains(md, "| 9 | 3 (3 confirmed by replay) | 0 | 0 | **12** | 0 | 0 |"));
  CHECK(contains(md, "`example.c:22`"));
  CHECK(contains(md, "How p"));
  CHECK(contains(md, "<- definition"));
  const std::string page = html(model());
  CHECK(count(page, "</script>") == 2);
  CHECK_FALSE(contains(page, "/*DATA*/"));
  CHECK_FALSE(contains(page, "src="));   // nothing is loaded
  CHECK_FALSE(contains(page, "<link"));
  CHECK(contains(page, "\"variable\":\"x\""));
}

TEST_CASE_FIXTURE(Example, "lcov: lines and branches with the same denominator; lcov itself reads it") {
  const std::string out = lcov(model());
  CHECK(count(out, "BRDA:") == 12);
  CHECK(contains(out, "BRF:12\nBRH:9\n"));
  CHECK(contains(out, "SF:" + folder.path().string() + "/example.c\n"));
  CHECK(contains(out, "TN:defuse\n"));
  std::ofstream(folder / "example.c") << example::source_text();
  std::ofstream(folder / "defuse.info") << out;
  if (std::system("command -v lcov >/dev/null 2>&1") != 0) {
    MESSAGE("lcov is not installed: not read back");
    return;
  }
  const std::string at = "cd '" + folder.path().string() + "' && ";
  CHECK(std::system((at + "lcov --rc lcov_branch_coverage=1 --summary defuse.info >summary.txt 2>&1").c_str()) == 0);
  std::ifstream in(folder / "summary.txt");
  const std::string summary((std::istreambuf_iterator<char>(in)), {});
  CHECK_MESSAGE(contains(summary, "75.0% (9 of 12 branches)"), summary);
  CHECK(std::system((at + "genhtml --branch-coverage defuse.info -o html >genhtml.txt 2>&1").c_str()) == 0);
  CHECK(fs::exists(folder / "html/index.html"));
}

TEST_CASE_FIXTURE(Example, "suppressions: with a reason, counted, out of the denominator") {
  SUBCASE("in the file") {
    Model m = model();
    suppress(m, parse_rules("# comment\n\nvariable z   only for show\nfile nothing/*  no match\n", "ignore"));
    CHECK(m.coverage().suppressed == 1);
    CHECK(m.coverage().total() == 11);
    CHECK(m.coverage().covered == 9);
    const std::string out = text(m);
    CHECK(contains(out, "suppressed                      1"));
    CHECK(contains(out, "only for show"));
    const Value log = Value::parse(sarif(m));
    size_t suppressed = 0;
    for (const Value& result : log["runs"][0]["results"]) {
      if (result.contains("suppressions") && result["ruleId"] == "stem/unexercised-flow") {
        ++suppressed;
        CHECK(result["suppressions"][0]["kind"] == "external");
        CHECK(result["suppressions"][0]["justification"] == "only for show");
      }
    }
    CHECK(suppressed == 1);
    CHECK(contains(lcov(m), "BRF:11\n"));
  }
  SUBCASE("by fingerprint") {
    Model m = model();
    const auto predicted = std::find_if(m.pairs.begin(), m.pairs.end(), [](const Pair& p) { return p.predicted(); });
    suppress(m, parse_rules("pair " + predicted->fingerprint + " reviewed", "ignore"));
    CHECK(m.coverage().suppressed == 1);
  }
  SUBCASE("in the source") {
    Model m = model();
    std::string& source = m.sources["example.c"];
    source.replace(source.find("x = z - 1;"), 10, "x = z - 1;  // stem:ignore  the caller waits");
    source.replace(source.find("z = x + 2;"), 10, "z = x + 2;  // stem:ignore");
    suppress(m, {});
    CHECK(m.coverage().suppressed == 3);  // W13 to R2 and R4, and W0 to R13 on the same line
    CHECK(std::any_of(m.notes.begin(), m.notes.end(), [](const std::string& n) { return contains(n, "example.c:7: stem:ignore without a reason"); }));
  }
  SUBCASE("mistakes are told by line") {
    CHECK_THROWS_WITH_AS(parse_rules("variable x", "ignore"), doctest::Contains("ignore:1: the reason is missing"), UserError);
    CHECK_THROWS_WITH_AS(parse_rules("\nfoo x why", "ignore"), doctest::Contains("ignore:2: foo is not a kind"), UserError);
  }
}

TEST_CASE_FIXTURE(Example, "against another database: added, lost, covered no more, untested") {
  Scratch folder2;
  {
    db::Store base(folder2 / "base.db");
    base.import_run(example::run("base", {1, 1, 1}, {{"x", 0, 2}, {"x", 13, 2}, {"z", 2, 11}}, {}));
  }
  const Model m = model();
  const Change change = compare(m, folder2 / "base.db", folder.path());
  CHECK(change.base_known);
  CHECK(change.added.size() == 10);
  REQUIRE(change.lost.size() == 1);
  CHECK(change.lost[0].use.line == 20);
  CHECK(change.uncovered_since.size() == 1);  // x W13 -> R2 was seen there, here it is only predicted
  CHECK(change.untested.size() == 3);
  CHECK(contains(text(m, &change), "10 pairs added, 1 lost, 1 covered no more, 3 left untested"));
  CHECK(contains(markdown(m, &change), "**3 left untested**"));
  CHECK(Value::parse(report::json(m, &change))["change"]["untested"].size() == 3);
}

TEST_CASE("against a git revision: changed lines, and the runs of that commit") {
  Scratch folder;
  const std::string at = "cd '" + folder.path().string() + "' && ";
  const std::string git = at + "git -c user.name=t -c user.email=t@t -c init.defaultBranch=main ";
  std::ofstream(folder / "example.c") << example::source_text();
  REQUIRE(std::system((git + "init -q . && " + git + "add example.c && " + git + "commit -qm base").c_str()) == 0);
  REQUIRE(std::system((git + "rev-parse HEAD > head.txt").c_str()) == 0);
  std::string head;
  std::ifstream(folder / "head.txt") >> head;

  db::Store store(folder / ".stem/stem.db");
  auto old = example::run("old", {1, 1, 1}, {{"x", 0, 2}, {"z", 2, 11}, {"x", 5, 10}}, {});
  SUBCASE("the base was recorded") {
    old.names.version.git_commit = head;
    store.import_run(old);
  }
  SUBCASE("the base was not recorded") {}
  const bool recorded = store.has_run("old");
  std::string changed = example::source_text();
  changed.replace(changed.find("y = z + 1;"), 10, "y = z + 2;");  // line 20
  std::ofstream(folder / "example.c") << changed;
  auto now = example::run("now", {1, 1, 1}, {{"x", 0, 2}, {"x", 5, 10}, {"z", 4, 13}}, {});
  now.names.version.build_id = "b2";
  now.names.sources[0].bytes = changed;
  store.import_run(now);
  db::AnalysisData analysis = example::analysis("now", {{"z", 4, 11}, {"x", 13, 2}});
  analysis.names.version.build_id = "b2";
  store.import_analysis(analysis);

  const Model m = load(store.database(), folder.path());
  const Change change = since(m, store.database(), folder.path(), "HEAD");
  CHECK(change.lines.at("example.c") == std::set<int64_t>{20});
  CHECK(change.base_known == recorded);
  if (recorded) {
    CHECK(change.added.size() == 3);
    CHECK(change.untested.size() == 2);
    REQUIRE(change.lost.size() == 1);
    CHECK(change.lost[0].variable == "z");
  } else {
    REQUIRE(change.untested.size() == 1);  // only what is on the changed line
    CHECK(m.pairs[change.untested[0]].use.line == 20);
    CHECK(contains(text(m, &change), "No run of HEAD is recorded here"));
  }
  CHECK_THROWS_WITH_AS(since(m, store.database(), folder.path(), "no-such-revision"), doctest::Contains("git knows no such revision"), UserError);
}

TEST_CASE("hunks of a diff") {
  const auto lines = changed_lines(
      "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -3,2 +3,3 @@ f()\n-a\n-b\n+++ c\n+d\n+e\n@@ -9,0 +11 @@\n+z\n"
      "--- a/gone.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-q\n--- \"a/we\\303\\244 \\\"x\\\".c\"\n+++ \"b/we\\303\\244 \\\"x\\\".c\"\n@@ -1 +1 @@\n-a\n+b\n");
  CHECK(lines.size() == 2);
  CHECK(lines.at("x.c") == std::set<int64_t>{3, 4, 5, 11});
  CHECK(lines.at("we\xc3\xa4 \"x\".c") == std::set<int64_t>{1});
}

TEST_CASE("hostile names do no harm in any format") {
  Scratch folder;
  db::Store store(folder / "stem.db");
  hostile::fill(store);
  example::fill(store);
  CHECK(store.database().problems().empty());
  CHECK(store.database().rows("SELECT * FROM defuse WHERE variable = :v", {{"v", hostile::kVariable}}).size() == 2);  // byte for byte
  const Model m = load(store.database(), folder.path());
  CHECK(m.pairs.size() == 14);

  const std::string out = text(m);
  CHECK(is_utf8(out));
  CHECK(std::none_of(out.begin(), out.end(), [](char c) { return c == '\x1b' || c == '\r' || c == '\t'; }));

  const std::string md = markdown(m);
  CHECK(is_utf8(md));
  CHECK_FALSE(contains(md, "\x1b"));
  // Outside code spans and fences no markup survives. Spans first: they are delimited by the longest run of backticks.
  std::string rest;
  for (std::string_view line : split_lines(md)) {
    std::string outside;
    for (size_t i = 0; i < line.size();) {
      size_t ticks = 0;
      while (i + ticks < line.size() && line[i + ticks] == '`') ++ticks;
      if (!ticks || (i && line[i - 1] == '\\')) {
        outside += line[i++];
        continue;
      }
      size_t end = i + ticks;
      for (;; ++end) {  // a run of exactly as many
        end = line.find(std::string(ticks, '`'), end);
        if (end == std::string_view::npos) break;
        if ((end + ticks == line.size() || line[end + ticks] != '`') && line[end - 1] != '`') break;
      }
      if (end == std::string_view::npos) break;  // a fence
      i = end + ticks;
    }
    rest += outside + "\n";
  }
  CHECK_FALSE(contains(rest, "<script"));
  CHECK_FALSE(contains(rest, "<img"));
  CHECK_FALSE(contains(rest, "](javascript"));
  CHECK_FALSE(contains(rest, "@everyone"));

  const std::string page = html(m);
  CHECK(is_utf8(page));
  CHECK(count(page, "</script>") == 2);
  CHECK(count(page, "<script") == 2);
  CHECK_FALSE(contains(page, "<img"));

  const Value log = Value::parse(sarif(m));
  bool percent_encoded = false;
  for (const Value& result : log["runs"][0]["results"]) {
    if (!result.contains("locations")) continue;
    const std::string uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    CHECK(uri.find_first_of("<>\"' \n`|") == std::string::npos);
    percent_encoded |= contains(uri, "%FF%FE.c");
  }
  CHECK(percent_encoded);
  CHECK(Value::parse(report::json(m))["pairs"].size() == 14);

  const std::string records = lcov(m);
  for (std::string_view line : split_lines(records)) {
    const std::string_view key = line.substr(0, line.find(':'));
    const std::set<std::string_view> keys{"TN", "SF", "FN", "FNDA", "FNF", "FNH", "BRDA", "BRF", "BRH", "DA", "LF", "LH", "end_of_record"};
    CHECK(keys.count(key) == 1);
  }
}

TEST_CASE("an empty database has a report in every format") {
  Scratch folder;
  db::Store store(folder / "stem.db");
  const Model m = load(store.database(), folder.path());
  CHECK(contains(text(m), "nothing to cover"));
  CHECK(contains(markdown(m), "nothing to cover"));
  CHECK(Value::parse(report::json(m))["coverage"]["percent"].is_null());
  CHECK(Value::parse(sarif(m))["runs"][0]["results"].empty());
  CHECK(lcov(m).empty());
  CHECK(contains(html(m), "<!doctype html>"));
}
