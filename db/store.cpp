#include "db/store.h"

#include <xxhash.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "db/statement.h"
#include "util/error.h"

namespace stem::db {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string hex16(uint64_t key) { return fmt::format("{:016x}", key); }

// The database ids of what one import refers to, made on first use so that unused names leave no rows.
class Writer {
 public:
  Writer(SQLite::Database& raw, const Names& names) : raw_(raw), names_(names) {
    Insert program(raw, "INSERT INTO program(path) VALUES (?1) ON CONFLICT DO UPDATE SET path = path RETURNING id");
    program_ = program(names.version.program);
    Insert version(raw,
                   "INSERT INTO version(program_id, build_id, git_commit, git_dirty, first_seen, last_seen) "
                   "VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO UPDATE SET git_commit = ifnull(git_commit, excluded.git_commit), "
                   "last_seen = max(last_seen, excluded.last_seen) RETURNING id");
    version_ = version(program_, names.version.build_id, text_or_null(names.version.git_commit), names.version.git_dirty, now());
    sites_.resize(names.sites.size());
    variables_.resize(names.variables.size());
    threads_.resize(names.threads.size());
  }

  int64_t program() const { return program_; }
  int64_t version() const { return version_; }

  void write_sources() {
    Insert text(raw_, "INSERT INTO source_text VALUES (?, ?) ON CONFLICT DO NOTHING");
    Insert source(raw_, "INSERT INTO source VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
    for (const Source& file : names_.sources) {
      if (file.missing) continue;
      const std::string hash = hash_of(file.bytes);
      text(hash, std::vector<uint8_t>(file.bytes.begin(), file.bytes.end()));
      source(version_, file.path, hash);
    }
    // Versions whose sources differ from the newest one's describe code that is gone.
    Insert current(raw_,
                   "UPDATE version SET current = NOT EXISTS (SELECT 1 FROM source a JOIN source b ON a.path = b.path "
                   "WHERE a.version_id = version.id AND b.version_id = ?2 AND a.hash <> b.hash) WHERE program_id = ?1");
    Insert newest(raw_, "SELECT id FROM version WHERE program_id = ? ORDER BY last_seen DESC, id DESC");
    current(program_, newest(program_));
  }

  int64_t site(uint32_t index) {
    STEM_CHECK(index < sites_.size());
    int64_t& id = sites_[index];
    if (id) return id;
    const Site& s = names_.sites[index];
    id = site_(program_, hex16(s.key));
    place_(id, version_, text_or_null(s.file), s.line ? Id(s.line) : Id(), s.line ? Id(s.column) : Id(), text_or_null(s.function),
           text_or_null(s.text));
    return id;
  }
  Id site_or_null(uint32_t index) { return index == kNone ? Id() : Id(site(index)); }

  int64_t variable(uint32_t index) {
    STEM_CHECK(index < variables_.size());
    int64_t& id = variables_[index];
    if (!id) id = variable_(program_, names_.variables[index]);
    return id;
  }

  int64_t thread(uint32_t index) {
    STEM_CHECK(index < threads_.size());
    int64_t& id = threads_[index];
    if (!id) id = thread_(program_, names_.threads[index].path, text_or_null(names_.threads[index].start));
    return id;
  }
  Id thread_or_null(uint32_t index) { return index == kNone ? Id() : Id(thread(index)); }

  int64_t pair(const Pair& p) {
    STEM_CHECK((p.def_kind == DefKind::Write) == (p.def_site != kNone));
    const int64_t v = variable(p.variable), use = site(p.use_site);
    const Id def = site_or_null(p.def_site);
    const int64_t known = find_pair_(v, use, def_kind_name(p.def_kind), def.or_zero());
    if (known) return known;
    return pair_(v, def_kind_name(p.def_kind), def, use,
                 pair_fingerprint(names_.version.program, names_.variables[p.variable], p.def_kind,
                                  def ? names_.sites[p.def_site].key : 0, names_.sites[p.use_site].key));
  }

  Id test(const std::optional<Test>& test) {
    if (!test) return {};
    return Id(test_(program_, hash_of(test->json), test->origin, test->priority, test->json, now(), text_or_null(test->detail)));
  }

  void finding(const Finding& f, Id run) {
    finding_(version_, run, test(f.test), f.kind, f.message, site_or_null(f.site), thread_or_null(f.thread),
             finding_fingerprint(f.kind, f.site == kNone ? 0 : names_.sites[f.site].key, f.message), now(),
             f.execution < 0 ? Id() : Id(f.execution), f.switches < 0 ? Id() : Id(f.switches));
  }

  void verdict(const Verdict& v, Id run) {
    const int64_t p = pair(v.pair);
    const int strength = strength_of(state_name(v.state), bound_name(v.bound));
    SQLite::Statement old(raw_, "SELECT state, bound, witness_id FROM verdict WHERE pair_id = ? AND version_id = ? AND ifnull(run_id, 0) = ?");
    old.bind(1, p);
    old.bind(2, version_);
    old.bind(3, run.or_zero());
    if (old.executeStep()) {
      const char* bound = old.getColumn(1).isNull() ? nullptr : old.getColumn(1).getText();
      if (strength_of(old.getColumn(0).getText(), bound) > strength) return;
      const Id stale = old.getColumn(2).isNull() ? Id() : Id(old.getColumn(2).getInt64());
      old.reset();
      drop_verdict_(p, version_, run.or_zero());
      if (stale) drop_witness_(stale.number);
    }
    const Id witness = v.witness && run ? Id(write_witness(*v.witness, v.state, p, run.number)) : Id();
    verdict_(p, version_, run, state_name(v.state), bound_name(v.bound), text_or_null(v.layer), text_or_null(v.reason),
             v.tried < 0 ? Id() : Id(v.tried), v.total < 0 ? Id() : Id(v.total), thread_or_null(v.def_thread),
             thread_or_null(v.use_thread), relation_name(v.relation), witness, v.millis);
  }

 private:
  static int strength_of(std::string_view state, const char* bound) {
    switch (state_from(std::string(state))) {
      case State::Confirmed: return 9;
      case State::Diverged: return 8;
      case State::Implicit: return 7;
      case State::Infeasible: return bound && *bound == 'p' ? 6 : bound && *bound == 't' ? 5 : 4;
      case State::Unknown: return 1;
      case State::Explicit:
      case State::Potential: break;
    }
    throw InternalError("a verdict cannot be " + std::string(state));
  }

  int64_t write_witness(const Witness& w, State state, int64_t pair, int64_t run) {
    const char* status = state == State::Confirmed ? "confirmed" : state == State::Diverged ? "diverged" : "predicted";
    const int64_t id = witness_(pair, run, test(w.test), status, text_or_null(w.detail), text_or_null(w.outcome),
                                w.def_step == kNone ? Id() : Id(w.def_step), w.use_step == kNone ? Id() : Id(w.use_step),
                                w.total_steps ? w.total_steps : w.steps.size(), site_or_null(w.follower_site), w.follower_breaks);
    int64_t ordinal = 0;
    for (const WitnessStep& s : w.steps) {
      step_(id, ordinal++, thread(s.thread), site_or_null(s.site), s.kind, text_or_null(s.detail), s.skipped);
    }
    return id;
  }

  SQLite::Database& raw_;
  const Names& names_;
  int64_t program_ = 0, version_ = 0;
  std::vector<int64_t> sites_, variables_, threads_;
  Insert site_{raw_, "INSERT INTO site(program_id, key) VALUES (?, ?) ON CONFLICT DO UPDATE SET key = key RETURNING id"};
  Insert place_{raw_, "INSERT INTO site_at VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"};
  Insert variable_{raw_, "INSERT INTO variable(program_id, name) VALUES (?, ?) ON CONFLICT DO UPDATE SET name = name RETURNING id"};
  Insert thread_{raw_,
                 "INSERT INTO thread(program_id, path, start) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
                 "start = ifnull(excluded.start, start) RETURNING id"};
  Insert find_pair_{raw_, "SELECT id FROM pair WHERE variable_id = ? AND use_site_id = ? AND def_kind = ? AND ifnull(def_site_id, 0) = ?"};
  Insert pair_{raw_,
               "INSERT INTO pair(variable_id, def_kind, def_site_id, use_site_id, fingerprint) VALUES (?, ?, ?, ?, ?) RETURNING id"};
  Insert test_{raw_,
               "INSERT INTO test(program_id, hash, origin, priority, json, created, detail) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
               "hash = hash RETURNING id"};
  Insert finding_{raw_,
                  "INSERT INTO finding(version_id, run_id, test_id, kind, message, site_id, thread_id, fingerprint, found_at, execution, "
                  "switches) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET test_id = ifnull(test_id, excluded.test_id)"};
  Insert drop_verdict_{raw_, "DELETE FROM verdict WHERE pair_id = ? AND version_id = ? AND ifnull(run_id, 0) = ?"};
  Insert drop_witness_{raw_, "DELETE FROM witness WHERE id = ?"};
  Insert witness_{raw_,
                  "INSERT INTO witness(pair_id, run_id, test_id, status, detail, outcome, def_step, use_step, steps, follower_site_id, "
                  "follower_breaks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"};
  Insert step_{raw_, "INSERT INTO witness_step VALUES (?, ?, ?, ?, ?, ?, ?)"};
  Insert verdict_{raw_,
                  "INSERT INTO verdict(pair_id, version_id, run_id, state, bound, layer, reason, tried, total, def_thread_id, "
                  "use_thread_id, relation, witness_id, millis) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
};

int64_t run_with_hash(SQLite::Database& raw, const std::string& hash) {
  Insert find(raw, "SELECT id FROM run WHERE trace_hash = ?");
  return find(hash);
}

int64_t insert_run(SQLite::Database& raw, Writer& writer, const RunData& data) {
  Json schedule = Json::array();
  for (const auto& [thread, count] : data.run.schedule) schedule.push_back({data.names.threads.at(thread).path, count});
  Insert insert(raw,
                "INSERT INTO run(id, version_id, trace_hash, trace_path, recorder, semantics, mode, seed, argv, cwd, schedule, outcome, "
                "exit_code, events, recorded_at, imported_at, paths, visible, test_id) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id");
  const Run& r = data.run;
  Insert taken(raw, "SELECT count(*) FROM run WHERE id = ?");
  const Id id = r.id > 0 && taken(r.id) == 0 ? Id(r.id) : Id();
  return insert(id, writer.version(), r.trace_hash, text_or_null(r.trace_path), r.recorder, r.semantics, r.mode, r.seed, dump(Json(r.argv)),
                text_or_null(r.cwd), schedule.empty() ? std::nullopt : std::optional(dump(schedule)), r.outcome, r.exit_code, r.events,
                text_or_null(r.recorded_at), now(), text_or_null(r.paths), text_or_null(r.visible), writer.test(r.test));
}

}  // namespace

bool Store::has_run(const std::string& trace_hash) {
  return !database_.rows("SELECT 1 FROM run WHERE trace_hash = :hash", {{"hash", trace_hash}}).empty();
}

Imported Store::import_run(const RunData& data) {
  Imported imported;
  in_transaction(database_, [&] {
    SQLite::Database& raw = database_.raw();
    imported.run = run_with_hash(raw, data.run.trace_hash);
    if (imported.run) return;
    imported.fresh = true;
    Writer writer(raw, data.names);
    writer.write_sources();
    const int64_t run = imported.run = insert_run(raw, writer, data);

    Insert input(raw, "INSERT INTO run_input VALUES (?, ?, ?, ?)");
    for (size_t i = 0; i < data.inputs.size(); ++i) input(run, i, data.inputs[i].name, data.inputs[i].bytes);
    Insert access(raw, "INSERT INTO access VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count");
    static constexpr const char* kinds[] = {"read", "write", "rmw"};
    for (const Access& a : data.accesses) access(run, writer.site(a.site), writer.variable(a.variable), kinds[a.kind], a.count);
    Insert branch(raw, "INSERT INTO branch VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count");
    for (const Branch& b : data.branches) branch(run, writer.site(b.site), b.outcome, b.count);
    Insert follower(raw, "INSERT INTO follower VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET same = same + excluded.same, "
                    "different = different + excluded.different");
    for (const Follower& f : data.followers) {
      follower(run, writer.variable(f.variable), writer.site(f.first_site), writer.site(f.second_site), f.same, f.different);
    }
    Insert observation(raw,
                       "INSERT INTO observation(pair_id, run_id, def_thread_id, use_thread_id, count, relation, first_event) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count");
    for (const Observation& o : data.observations.rows()) {
      observation(writer.pair(o.pair), run, writer.thread_or_null(o.def_thread), writer.thread(o.use_thread), o.count,
                  relation_name(o.relation), o.first_event < 0 ? Id() : Id(o.first_event));
    }
    for (const Finding& f : data.findings) writer.finding(f, Id(run));
  });
  return imported;
}

void Store::import_analysis(const AnalysisData& data) {
  in_transaction(database_, [&] {
    SQLite::Database& raw = database_.raw();
    const int64_t run = run_with_hash(raw, data.trace_hash);
    if (!run) user_error("the trace of this analysis was not imported; import it first.");
    Writer writer(raw, data.names);
    for (const Verdict& v : data.verdicts) writer.verdict(v, Id(run));
    Insert stat(raw, "INSERT INTO solver_stat VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value");
    for (const auto& [name, value] : data.stats) stat(run, name, value);
    for (const Finding& f : data.findings) writer.finding(f, Id(run));
    if (data.complete) Insert(raw, "UPDATE run SET analysed_at = ? WHERE id = ?")(now(), run);
  });
}

void Store::import_program(const ProgramData& data) {
  in_transaction(database_, [&] {
    SQLite::Database& raw = database_.raw();
    Writer writer(raw, data.names);
    writer.write_sources();
    Insert potential(raw, "INSERT INTO potential VALUES (?, ?) ON CONFLICT DO NOTHING");
    for (const Pair& pair : data.potential) potential(writer.pair(pair), writer.version());
    Insert definition(raw, "INSERT INTO definition VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
    for (const auto& [site, variable] : data.definitions) definition(writer.site(site), writer.variable(variable), writer.version());
    Insert escort(raw,
                  "INSERT INTO escort(version_id, def_site_id, def_outcome, use_site_id, use_outcome, state, pair_id, detail) "
                  "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state, pair_id = excluded.pair_id, "
                  "detail = excluded.detail WHERE state <> 'covered'");
    for (const Escort& e : data.escorts) {
      escort(writer.version(), writer.site_or_null(e.def_site), e.def_outcome, writer.site(e.use_site), e.use_outcome, e.state,
             e.pair ? Id(writer.pair(*e.pair)) : Id(), text_or_null(e.detail));
    }
    for (const Verdict& v : data.verdicts) writer.verdict(v, {});
    for (const Finding& f : data.findings) writer.finding(f, {});
    if (data.static_done) Insert(raw, "UPDATE version SET static_done = 1 WHERE id = ?")(writer.version());
  });
}

int64_t Store::find_run(const std::string& id) {
  const std::string digits = id.starts_with('r') ? id.substr(1) : id;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool numeric = error == std::errc() && end == digits.data() + digits.size();
  const Value found = database_.value("SELECT id FROM run WHERE id = :number OR trace_hash = :id OR trace_path = :id",
                                      {{"number", numeric ? Value(number) : Value()}, {"id", id}});
  if (!std::holds_alternative<int64_t>(found)) user_error("there is no run {}; `stem query runs` lists them.", id);
  return std::get<int64_t>(found);
}

Store::Replayable Store::replayable(const std::string& id) {
  int64_t number = 0;
  const char* digits = id.c_str() + 1;
  const char* last = id.c_str() + id.size();
  const bool well_formed = id.size() > 1 && std::from_chars(digits, last, number).ptr == last;
  const auto text = [&](const char* sql) { return to_text(database_.value(sql, {{"id", number}})); };
  const auto exists = [&](const char* table) {
    return !database_.rows(fmt::format("SELECT 1 FROM {} WHERE id = :id", table), {{"id", number}}).empty();
  };
  Replayable result;
  if (well_formed && id[0] == 'p') {
    if (!exists("pair")) user_error("there is no pair {}; `stem query pairs` lists them.", id);
    result.test_json = text(
        "SELECT t.json FROM witness w JOIN test t ON t.id = w.test_id WHERE w.pair_id = :id ORDER BY w.status = 'confirmed' DESC, w.id DESC");
    if (!result.test_json.empty()) return result;
    result.trace_path = text(
        "SELECT r.trace_path FROM observation o JOIN run r ON r.id = o.run_id WHERE o.pair_id = :id AND r.trace_path IS NOT NULL ORDER BY r.id DESC");
    if (result.trace_path.empty()) user_error("pair {} was neither seen in a run nor predicted: there is nothing to replay.", id);
  } else if (well_formed && id[0] == 'f') {
    if (!exists("finding")) user_error("there is no finding {}; `stem query findings` lists them.", id);
    result.test_json = text("SELECT t.json FROM finding f JOIN test t ON t.id = f.test_id WHERE f.id = :id");
    if (!result.test_json.empty()) return result;
    result.trace_path = text("SELECT r.trace_path FROM finding f JOIN run r ON r.id = f.run_id WHERE f.id = :id");
    if (result.trace_path.empty()) user_error("finding {} has neither a test nor a trace to replay.", id);
  } else if (well_formed && id[0] == 't') {
    result.test_json = text("SELECT json FROM test WHERE id = :id");
    if (result.test_json.empty()) user_error("there is no test {}; `stem query tests` lists them.", id);
  } else if (well_formed && id[0] == 'r') {
    if (!exists("run")) user_error("there is no run {}; `stem query runs` lists them.", id);
    result.trace_path = text("SELECT trace_path FROM run WHERE id = :id");
    if (result.trace_path.empty()) user_error("the trace of run {} was not kept.", id);
  } else {
    user_error("{} is not an id: p12 is a pair, f3 a finding, r5 a run, t7 a test.", id);
  }
  return result;
}

std::string hash_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) user_error("cannot read {}.", file.string());
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount()) {
    XXH3_128bits_update(state.get(), buffer.data(), static_cast<size_t>(in.gcount()));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string finding_fingerprint(const std::string& kind, uint64_t site_key, const std::string& message) {
  const std::string where = site_key ? hex16(site_key) : "";
  return hash_of(kind + '\0' + where + '\0' + (where.empty() ? message : "")).substr(0, 16);
}

std::string pair_fingerprint(const std::string& program, const std::string& variable, DefKind kind, uint64_t def_key, uint64_t use_key) {
  std::string all = program;
  for (const std::string& part : {variable, std::string(def_kind_name(kind)), hex16(def_key), hex16(use_key)}) all += '\0' + part;
  return hash_of(all).substr(0, 16);
}

}  // namespace stem::db
