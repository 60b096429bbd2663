#include "explorer/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "explorer/flows.h"
#include "explorer/static_check.h"
#include "tracer/launch/message.h"
#include "util/error.h"
#include "util/subprocess.h"
#include "util/text.h"

namespace stem::explorer {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kSourceBytes = 4 << 20;  // larger files are generated, and nobody reads them in a report
constexpr size_t kWholeWitness = 300;        // steps; a longer witness keeps what tells the story
constexpr size_t kTail = 120, kAround = 12;

std::string absolute(const std::string& path, const std::string& folder) {
  if (path.empty() || path[0] == '/') return path;
  return (fs::path(folder) / path).lexically_normal().string();
}

// The commit that the sources are of, and whether they have changes besides.
void add_commit(db::Version& version, const fs::path& folder) {
  const auto commit = run_program({"git", "rev-parse", "--verify", "--quiet", "HEAD"}, folder);
  if (!commit || commit->code != 0) return;
  version.git_commit = trim(commit->output);
  const auto changes = run_program({"git", "status", "--porcelain", "--untracked-files=no"}, folder);
  version.git_dirty = changes && !changes->output.empty();
}

// Site files become names below the project's folder, and their texts come along. A file that is newer than the program
// is not what was compiled: it is left out.
void name_files(db::Names& names, const State& state, const trace::Meta& meta) {
  const std::string program = absolute(meta.program, meta.cwd);
  names.version.program = project_path(state, program);
  names.version.build_id = meta.build_id;
  std::error_code error;
  const auto built = fs::last_write_time(program, error);
  const bool know_built = !error;
  std::set<std::string> seen;
  for (db::Site& site : names.sites) {
    const std::string file = site.file;
    site.file = project_path(state, file, meta.cwd);
    if (file.empty() || !seen.insert(site.file).second) continue;
    const std::string path = absolute(file, meta.cwd);
    db::Source source{site.file, "", true};
    const auto changed = fs::last_write_time(path, error);
    if (!error && (!know_built || changed <= built) && fs::file_size(path, error) <= kSourceBytes && !error) {
      std::ifstream in(path, std::ios::binary);
      std::ostringstream text;
      if (in && text << in.rdbuf()) source = {site.file, text.str(), false};
    }
    names.sources.push_back(std::move(source));
  }
}

// How a run that did not end well ended, as a finding.
void add_finding(db::RunData& data, const trace::Reader& reader, const RunContext& context) {
  db::Finding finding;
  finding.kind = data.run.outcome;
  finding.test = context.test;
  finding.execution = context.execution;
  switch (reader.outcome()) {
    case trace::Outcome::Exited:
    case trace::Outcome::Diverged:
      return;
    case trace::Outcome::Truncated:
      if (context.hang.empty()) return;
      finding.kind = "hang";
      finding.message = context.hang;
      break;
    case trace::Outcome::Signalled:
      finding.message =
          fmt::format("the program was ended by signal {} ({})", data.run.exit_code, strsignal(data.run.exit_code));
      break;
    case trace::Outcome::AssertFailed:
      finding.message = "an assertion failed";
      break;
    case trace::Outcome::Deadlock:
      finding.message = "every thread waits for another";
      break;
    case trace::Outcome::Livelock:
      finding.message = "the threads run in circles";
      break;
  }
  trace::Trace names;
  names.sites = reader.sites();
  names.threads = reader.threads();
  for (const std::string& message : reader.messages()) {
    const std::string kind = launch::message_kind(message);
    if (kind == "deadlock" || kind == "livelock") finding.message = launch::render_message(message, names);
  }
  finding.site = data.failed_site;
  finding.thread = data.failed_thread;
  data.findings.push_back(std::move(finding));
}

std::vector<PairKey> observed_pairs(const db::RunData& data) {
  std::set<PairKey> pairs;
  for (const db::Observation& o : data.observations.rows()) {
    if (o.pair.def_kind == db::DefKind::External) continue;
    uint64_t def = kInitialKey;
    if (o.pair.def_kind == db::DefKind::Write) {
      const uint64_t key = data.names.sites[o.pair.def_site].key;
      def = key ? key : kInputKey;
    }
    pairs.insert({def, data.names.sites[o.pair.use_site].key, data.names.variables[o.pair.variable]});
  }
  return {pairs.begin(), pairs.end()};
}

// Rows of an analysis refer to sites, variables and threads of the trace; each is named once.
class AnalysisRows {
 public:
  AnalysisRows(const State& state, const trace::Trace& trace, const predictor::AnalysisResult& result)
      : state_(state), trace_(trace), result_(result), sites_(trace.sites.size(), db::kNone) {}

  db::AnalysisData run(const std::string& hash) {
    data_.trace_hash = hash;
    data_.complete = !result_.interrupted;
    for (const trace::Thread& thread : trace_.threads) data_.names.threads.push_back({thread.path, thread.start});
    for (const predictor::PairResult& pair : result_.pairs) {
      if (pair.state != predictor::State::Explicit) data_.verdicts.push_back(verdict(pair));
    }
    const predictor::Statistics& s = result_.statistics;
    data_.stats = {{"candidates", static_cast<double>(s.candidates)},
                   {"instances", static_cast<double>(s.instances)},
                   {"queries", static_cast<double>(s.queries)},
                   {"solver.queries", static_cast<double>(s.solver_queries)},
                   {"solver.seconds", s.solver_seconds},
                   {"seconds", s.seconds},
                   {"windows", static_cast<double>(s.windows)},
                   {"witnesses.rejected", static_cast<double>(s.rejected)}};
    for (const auto& [layer, count] : s.decided)
      data_.stats.emplace_back(std::string("decided.") + predictor::layer_name(layer), static_cast<double>(count));
    name_files(data_.names, state_, trace_.meta);
    data_.names.sources.clear();  // the trace's import has them
    return std::move(data_);
  }

 private:
  uint32_t site(trace::SiteId id) {
    if (sites_.at(id) != db::kNone) return sites_[id];
    const trace::Site& s = trace_.sites[id];
    const auto [at, fresh] = keys_.try_emplace(s.key, static_cast<uint32_t>(data_.names.sites.size()));
    if (fresh) data_.names.sites.push_back({s.key, s.file, s.line, s.column, s.function, s.text});
    return sites_[id] = at->second;
  }

  uint32_t variable(const std::string& name) {
    const auto [at, fresh] = variables_.try_emplace(name, static_cast<uint32_t>(data_.names.variables.size()));
    if (fresh) data_.names.variables.push_back(name);
    return at->second;
  }

  uint32_t thread(const std::string& path) const {
    for (uint32_t i = 0; i < trace_.threads.size(); ++i) {
      if (trace_.threads[i].path == path) return i;
    }
    return db::kNone;
  }

  static db::Relation relation(predictor::Relation relation) {
    switch (relation) {
      case predictor::Relation::SameThread:
        return db::Relation::SameThread;
      case predictor::Relation::Ordered:
        return db::Relation::Ordered;
      case predictor::Relation::Locked:
        return db::Relation::CommonLock;
      case predictor::Relation::Atomic:
        return db::Relation::Atomic;
      case predictor::Relation::Race:
        return db::Relation::Race;
    }
    return db::Relation::Unknown;
  }

  db::Verdict verdict(const predictor::PairResult& pair) {
    db::Verdict v;
    const bool external = !pair.def.initial && pair.def.event != trace::kNone &&
                          trace_.events.at(pair.def.event).kind == trace::Kind::External;
    v.pair = {variable(pair.variable),
              pair.def.initial ? db::DefKind::Initial
              : external       ? db::DefKind::External
                               : db::DefKind::Write,
              pair.def.initial || external ? db::kNone : site(pair.def.site), site(pair.use.site)};
    v.layer = predictor::layer_name(pair.layer);
    v.tried = static_cast<int64_t>(pair.tried);
    v.total = static_cast<int64_t>(pair.instances);
    v.use_thread = thread(pair.use.thread);
    v.def_thread = pair.def.initial || external ? db::kNone : thread(pair.def.thread);
    switch (pair.state) {
      case predictor::State::Implicit:
        v.state = db::State::Implicit;
        break;
      case predictor::State::Confirmed:
        v.state = db::State::Confirmed;
        break;
      case predictor::State::Diverged:
        v.state = db::State::Diverged;
        break;
      case predictor::State::Infeasible:
        v.state = db::State::Infeasible;
        v.bound = pair.bound.whole ? db::Bound::Trace : db::Bound::Window;
        break;
      case predictor::State::Explicit:
      case predictor::State::Unknown:
        v.state = db::State::Unknown;
        v.reason = predictor::why_text(pair.why);
        if (!pair.detail.empty()) v.reason += ", " + pair.detail;
        break;
    }
    const bool feasible =
        v.state == db::State::Implicit || v.state == db::State::Confirmed || v.state == db::State::Diverged;
    if (feasible) v.relation = pair.def.initial ? db::Relation::Ordered : relation(pair.relation);
    if (pair.witness) v.witness = witness(*pair.witness, pair);
    if (!pair.failure.empty() && v.witness) {  // the replay of this flow fails: a finding with its test
      const std::string from = pair.def.initial ? "the initial value" : place(pair.def.site);
      data_.findings.push_back({"failure",
                                fmt::format("{} when the read at {} takes {} from {}", pair.failure,
                                            place(pair.use.site), pair.variable, from),
                                v.pair.use_site, v.use_thread, v.witness->test});
    }
    return v;
  }

  std::string place(trace::SiteId id) const {
    const trace::Site& s = trace_.sites[id];
    return s.line ? fmt::format("{}:{}", fs::path(s.file).filename().string(), s.line) : s.function;
  }

  db::Witness witness(const predictor::Witness& w, const predictor::PairResult& pair) {
    db::Witness row;
    row.test = db::Test{trace::to_json(predictor::test_of(trace_, w)), "witness"};
    if (pair.state == predictor::State::Diverged) row.detail = pair.detail;
    row.outcome = pair.failure;
    std::vector<uint32_t> visible;
    for (uint32_t index : w.schedule) {
      if (trace::is_visible(trace_.events[index].kind)) visible.push_back(index);
      if (index == w.pair.read) break;  // FULL goes on
    }
    row.total_steps = w.after + visible.size();
    uint32_t skipped = 0;
    for (size_t i = 0; i < visible.size(); ++i) {
      if (!keeps(visible, i, w)) {
        ++skipped;
        continue;
      }
      const trace::Event& e = trace_.events[visible[i]];
      if (visible[i] == w.pair.write) row.def_step = static_cast<uint32_t>(row.steps.size());
      if (visible[i] == w.pair.read) row.use_step = static_cast<uint32_t>(row.steps.size());
      row.steps.push_back({e.thread, e.site ? site(e.site) : db::kNone, trace::kind_name(e.kind), detail(e), skipped});
      skipped = 0;
    }
    follower(w, row);
    return row;
  }

  // Of a long witness: its end, what is around the two accesses, and where threads take turns.
  bool keeps(const std::vector<uint32_t>& visible, size_t i, const predictor::Witness& w) const {
    if (visible.size() <= kWholeWitness || i + kTail >= visible.size() || visible[i] == w.pair.write) return true;
    for (size_t k = i > kAround ? i - kAround : 0; k <= i + kAround && k < visible.size(); ++k) {
      if (visible[k] == w.pair.write) return true;
    }
    const auto thread_at = [&](size_t k) { return trace_.events[visible[k]].thread; };
    const bool turn = i == 0 || thread_at(i) != thread_at(i - 1) || thread_at(i) != thread_at(i + 1);
    return turn && i + 20 * kTail >= visible.size();
  }

  // A value is told only where nothing can change it: an expression may have another value under the witness.
  std::string detail(const trace::Event& e) const {
    const std::string text = trace_.sites[e.site].text;
    const std::string object =
        e.object != trace::kNone && e.object < trace_.objects.size() ? trace_.objects[e.object].name : "";
    switch (e.kind) {
      case trace::Kind::Write: {
        const std::string name = text.empty() ? variable_name(e) : text;
        return e.expr == 0 && e.size && e.size <= 8 ? fmt::format("{} = {}", name, as_signed(e.value, e.size)) : name;
      }
      case trace::Kind::Read:
      case trace::Kind::Rmw:
        return text.empty() ? variable_name(e) : text;
      case trace::Kind::Create:
      case trace::Kind::Join:
      case trace::Kind::Detach:
        return e.value < trace_.threads.size() ? trace_.threads[e.value].path : "";
      default:
        return object.empty() ? text : object;  // the lock rather than pthread_mutex_lock
    }
  }

  std::string variable_name(const trace::Event& e) const {
    return e.variable < trace_.variables.size() ? trace_.variables[e.variable] : "";
  }

  static int64_t as_signed(uint64_t value, uint8_t size) {
    const unsigned shift = 64 - 8u * size;
    return static_cast<int64_t>(value << shift) >> shift;
  }

  // The read of the same memory before the use in its thread: does it take another definition under the witness?
  void follower(const predictor::Witness& w, db::Witness& row) {
    const trace::Event& use = trace_.events[w.pair.read];
    uint32_t last_write = predictor::kInitial, seen = predictor::kInitial, reader = trace::kNone;
    for (uint32_t index : w.schedule) {
      const trace::Event& e = trace_.events[index];
      if (index == w.pair.read) break;
      if (e.object != use.object || e.addr != use.addr) continue;
      if (e.thread == use.thread && (e.kind == trace::Kind::Read || e.kind == trace::Kind::Rmw)) {
        reader = index;
        seen = last_write;
      }
      if (e.kind == trace::Kind::Write || e.kind == trace::Kind::Rmw || e.kind == trace::Kind::External)
        last_write = index;
    }
    if (reader == trace::kNone || !trace_.events[reader].site) return;
    const auto definition = [&](uint32_t index) {
      return index == predictor::kInitial ? 0 : trace_.sites[trace_.events[index].site].key;
    };
    row.follower_site = site(trace_.events[reader].site);
    row.follower_breaks = definition(seen) != definition(w.pair.write);
  }

  const State& state_;
  const trace::Trace& trace_;
  const predictor::AnalysisResult& result_;
  db::AnalysisData data_;
  std::vector<uint32_t> sites_;
  std::unordered_map<uint64_t, uint32_t> keys_;
  std::unordered_map<std::string, uint32_t> variables_;
};

}  // namespace

ImportedTrace import_trace(db::Store& store, const State& state, const std::string& trace_file, int64_t id,
                           const RunContext& context) {
  ImportedTrace imported;
  imported.hash = db::hash_file(trace_file);
  if (store.has_run(imported.hash)) {
    imported.run = store.find_run(imported.hash);
    return imported;
  }
  trace::Reader reader(trace_file);
  std::optional<StaticCheck> check;
  if (auto facts = static_facts(state, reader.meta(), false)) check.emplace(std::move(*facts));
  db::RunData data = observed_flows(reader, check ? &*check : nullptr);
  if (check) tell_violations(*check, trace_file);
  data.run.id = id;
  data.run.trace_hash = imported.hash;
  data.run.trace_path = project_path(state, trace_file);
  name_files(data.names, state, reader.meta());
  add_commit(data.names.version, state.project);
  data.run.test = context.test;
  data.run.paths = context.paths;
  data.run.visible = context.visible;
  add_finding(data, reader, context);
  const db::Imported stored = store.import_run(data);
  imported.run = stored.run;
  imported.fresh = stored.fresh;
  imported.pairs = data.observations.rows().size();
  imported.observed = observed_pairs(data);
  for (const db::Finding& finding : data.findings) {
    ImportedFinding told{finding.kind, finding.message, "", {}, ""};
    if (finding.site != db::kNone) {
      const db::Site& site = data.names.sites[finding.site];
      told.site = {site.key, site.file, site.line, site.column, site.function, site.text, ""};
    }
    if (finding.thread != db::kNone) told.thread = data.names.threads[finding.thread].path;
    told.fingerprint = db::finding_fingerprint(finding.kind, told.site.key, finding.message);
    imported.finding = std::move(told);
  }
  return imported;
}

db::AnalysisData analysis_rows(const State& state, const std::string& trace_hash, const trace::Trace& trace,
                               const predictor::AnalysisResult& result) {
  return AnalysisRows(state, trace, result).run(trace_hash);
}

void import_analysis(db::Store& store, const State& state, const std::string& trace_hash, const trace::Trace& trace,
                     const predictor::AnalysisResult& result) {
  store.import_analysis(analysis_rows(state, trace_hash, trace, result));
}

void store_trace(const State& state, const std::string& trace_file, int64_t id) {
  try {
    db::Store store(state.database);
    import_trace(store, state, trace_file, id);
  } catch (const UserError& error) {
    fmt::print(stderr, "stem: the run is kept, but not in the database yet: {}\n", error.what());
  }
}

bool store_analysis(const State& state, const std::string& trace_file, const trace::Trace& trace,
                    const predictor::AnalysisResult& result, predictor::Meaning meaning) {
  try {
    db::Store store(state.database);
    const ImportedTrace imported = import_trace(store, state, trace_file);
    predictor::AnalysisResult stored = result;
    if (meaning == predictor::Meaning::Full) {
      std::erase_if(stored.pairs, [](const predictor::PairResult& pair) { return !pair.witness; });
      stored.interrupted = true;  // the prefixes were not looked at
    }
    import_analysis(store, state, imported.hash, trace, stored);
    return true;
  } catch (const UserError& error) {
    fmt::print(stderr, "stem: these results are not in the database: {}\n", error.what());
    return false;
  }
}

}  // namespace stem::explorer
