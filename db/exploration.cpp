#include "db/exploration.h"

#include <cstdlib>

#include "db/statement.h"

namespace stem::db {
namespace {

std::string text(const Value& value) { return std::holds_alternative<std::monostate>(value) ? "" : to_text(value); }
int64_t number(const Value& value) { return std::holds_alternative<int64_t>(value) ? std::get<int64_t>(value) : 0; }
double real(const Value& value) {
  return std::holds_alternative<double>(value) ? std::get<double>(value) : static_cast<double>(number(value));
}
uint64_t key(const Value& value) { return std::strtoull(text(value).c_str(), nullptr, 16); }

}  // namespace

Exploration::Exploration(Store& store, const Version& version) : store_(store) {
  ProgramData none;
  none.names.version = version;
  store.import_program(none);
  const Row row = store.database().rows(
      "SELECT v.id, v.program_id FROM version v JOIN program g ON g.id = v.program_id WHERE g.path = :path AND v.build_id = :build",
      {{"path", version.program}, {"build", version.build_id}}).at(0);
  version_ = number(row[0]);
  program_ = number(row[1]);
}

std::vector<StoredRun> Exploration::runs() {
  std::vector<StoredRun> all;
  for (const Row& r : store_.database().rows("SELECT id, trace_path, trace_hash, paths, visible, outcome, analysed_at IS NOT NULL FROM run "
                                             "WHERE version_id = :version ORDER BY id", {{"version", version_}}))
    all.push_back({number(r[0]), text(r[1]), text(r[2]), text(r[3]), text(r[4]), text(r[5]), number(r[6]) != 0});
  return all;
}

std::vector<StoredPair> Exploration::pairs() {
  std::vector<StoredPair> all;
  const auto definition = [](const Value& value) { return text(value).empty() ? 0 : key(value) ? key(value) : 1; };
  for (const Row& r : store_.database().rows(
           "SELECT d.key, u.key, v.name, e.seen, e.predicted, e.test FROM ("
           "  SELECT pair_id, max(seen) AS seen, max(predicted) AS predicted, max(test) AS test FROM ("
           "    SELECT o.pair_id, 1 AS seen, 0 AS predicted, 0 AS test FROM observation o JOIN run r ON r.id = o.run_id WHERE r.version_id = :version"
           "    UNION ALL SELECT w.pair_id, 0, 1, ifnull(n.test_id, 0) FROM verdict w LEFT JOIN witness n ON n.id = w.witness_id"
           "      WHERE w.version_id = :version AND w.state IN ('implicit confirmed', 'implicit', 'diverged'))"
           "  GROUP BY pair_id) e JOIN pair p ON p.id = e.pair_id JOIN variable v ON v.id = p.variable_id "
           "JOIN site u ON u.id = p.use_site_id LEFT JOIN site d ON d.id = p.def_site_id WHERE p.def_kind <> 'external'",
           {{"version", version_}}))
    all.push_back({definition(r[0]), key(r[1]), text(r[2]), number(r[3]) != 0, number(r[4]) != 0, number(r[5])});
  return all;
}

std::vector<StoredNegation> Exploration::negations() {
  std::vector<StoredNegation> all;
  for (const Row& r : store_.database().rows("SELECT n.run_id, n.event, n.ask, n.state, n.bounded, n.detail, n.test_id FROM negation n "
                                             "JOIN run r ON r.id = n.run_id WHERE r.version_id = :version", {{"version", version_}}))
    all.push_back({number(r[0]), static_cast<uint32_t>(number(r[1])), static_cast<uint32_t>(number(r[2])), text(r[3]), number(r[4]) != 0,
                   text(r[5]), number(r[6])});
  return all;
}

std::vector<StoredTest> Exploration::pending() {
  std::vector<StoredTest> all;
  for (const Row& r : store_.database().rows("SELECT id, json, origin, priority, detail FROM test WHERE program_id = :program "
                                             "AND status = 'pending' ORDER BY priority DESC, id", {{"program", program_}}))
    all.push_back({number(r[0]), {text(r[1]), text(r[2]), real(r[3]), text(r[4])}});
  return all;
}

bool Exploration::static_done() {
  return number(store_.database().value("SELECT static_done FROM version WHERE id = :version", {{"version", version_}})) != 0;
}

int64_t Exploration::find_test(const std::string& json) {
  return number(store_.database().value("SELECT id FROM test WHERE program_id = :program AND hash = :hash",
                                        {{"program", program_}, {"hash", hash_of(json)}}));
}

int64_t Exploration::add_test(const Test& test, bool* fresh) {
  const int64_t known = find_test(test.json);
  if (fresh) *fresh = known == 0;
  if (known) return known;
  int64_t id = 0;
  in_transaction(store_.database(), [&] {
    Insert insert(store_.database().raw(),
                  "INSERT INTO test(program_id, hash, origin, priority, json, created, detail) VALUES (?, ?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT DO UPDATE SET hash = hash RETURNING id");
    id = insert(program_, hash_of(test.json), test.origin, test.priority, test.json, now(), text_or_null(test.detail));
  });
  return id;
}

void Exploration::end_test(int64_t test, bool followed, const std::string& detail, const std::string& failure) {
  in_transaction(store_.database(), [&] {
    SQLite::Database& raw = store_.database().raw();
    Insert(raw, "UPDATE test SET status = ? WHERE id = ?")(followed ? "done" : "diverged", test);
    Insert(raw, "UPDATE witness SET status = ?, detail = ?, outcome = ? WHERE test_id = ?")(followed ? "confirmed" : "diverged",
                                                                                           text_or_null(detail), text_or_null(failure), test);
    Insert(raw, "UPDATE verdict SET state = ? WHERE state IN ('implicit', 'diverged') AND witness_id IN "
                "(SELECT id FROM witness WHERE test_id = ?)")(followed ? "implicit confirmed" : "diverged", test);
  });
}

void Exploration::drop_test(int64_t test) {
  in_transaction(store_.database(), [&] {
    Insert(store_.database().raw(), "UPDATE test SET status = 'done' WHERE id = ? AND status = 'pending'")(test);
  });
}

void Exploration::add_negation(const StoredNegation& n) {
  in_transaction(store_.database(), [&] {
    Insert(store_.database().raw(), "INSERT INTO negation VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state, "
                                    "bounded = excluded.bounded, detail = excluded.detail, test_id = excluded.test_id")(
        n.run, n.event, n.ask, n.state, n.bounded, text_or_null(n.detail), n.test ? Id(n.test) : Id());
  });
}

void Exploration::set_finding_test(const std::string& fingerprint, const Test& test, int64_t switches) {
  const int64_t id = add_test(test);
  in_transaction(store_.database(), [&] {
    SQLite::Database& raw = store_.database().raw();
    Insert(raw, "UPDATE test SET status = 'done' WHERE id = ?")(id);
    Insert(raw, "UPDATE finding SET test_id = ?, switches = ? WHERE version_id = ? AND fingerprint = ?")(id, switches, version_, fingerprint);
  });
}

bool Exploration::known(Figures& f) {
  const auto rows = store_.database().rows("SELECT goal, executions, repeated, minimising, diverged, seconds, solver_seconds, memory_kb, ended "
                                           "FROM exploration WHERE version_id = :version", {{"version", version_}});
  if (rows.empty()) return false;
  const Row& r = rows[0];
  f = {text(r[0]), number(r[1]), number(r[2]), number(r[3]), number(r[4]), real(r[5]), real(r[6]), number(r[7]), text(r[8])};
  return true;
}

void Exploration::set(const Figures& f) {
  in_transaction(store_.database(), [&] {
    Insert(store_.database().raw(),
           "INSERT INTO exploration VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET goal = excluded.goal, "
           "executions = excluded.executions, repeated = excluded.repeated, minimising = excluded.minimising, diverged = excluded.diverged, "
           "seconds = excluded.seconds, solver_seconds = excluded.solver_seconds, memory_kb = max(memory_kb, excluded.memory_kb), "
           "ended = excluded.ended, updated = excluded.updated")(version_, f.goal, f.executions, f.repeated, f.minimising, f.diverged, f.seconds,
                                                                 f.solver_seconds, f.memory_kb, text_or_null(f.ended), now());
  });
}

}  // namespace stem::db
