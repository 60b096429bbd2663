// From traces and analyses to rows: what `stem record` and `stem analyze` leave in the database.
#pragma once

#include <string>

#include "db/store.h"
#include "explorer/knowledge.h"
#include "explorer/state.h"
#include "predictor/analysis.h"

namespace stem::explorer {

struct ImportedFinding {  // how the run failed
  std::string kind, message, fingerprint;
  trace::Site site;    // where; key 0: nobody knows
  std::string thread;  // creation path
};

struct ImportedTrace {
  std::string hash;  // what the run is called in db::Store
  int64_t run = 0;
  bool fresh = false;
  uint64_t pairs = 0;             // that the run shows
  std::vector<PairKey> observed;  // the same, by site keys; external definitions are not among them
  std::optional<ImportedFinding> finding;
};

// What an exploration knows of a run besides its trace.
struct RunContext {
  std::optional<db::Test> test;  // that it ran
  std::string paths, visible;    // explorer/paths.h
  int64_t execution = -1;        // which of the exploration
  std::string hang;              // it had to be ended: a finding, told in these words
};

// Streams a trace into the database. A trace that is there already changes nothing. `id` is the number that the run
// should have (0, or one that is taken: the next).
ImportedTrace import_trace(db::Store& store, const State& state, const std::string& trace_file, int64_t id = 0,
                           const RunContext& context = {});

// Stores what an analysis of an imported trace says. Observed pairs are known from the trace already.
void import_analysis(db::Store& store, const State& state, const std::string& trace_hash, const trace::Trace& trace,
                     const predictor::AnalysisResult& result);

// For `stem record`: imports a trace that was just kept, or says on standard error why it could not be. The trace is
// safe either way, and `stem analyze` imports it later.
void store_trace(const State& state, const std::string& trace_file, int64_t id);

// For `stem analyze`: imports trace and results. With FULL, what is refuted or undecided stays out: it says nothing
// about prefixes, which is what the database is about. False: not stored, standard error says why.
bool store_analysis(const State& state, const std::string& trace_file, const trace::Trace& trace,
                    const predictor::AnalysisResult& result, predictor::Meaning meaning);

// The rows of an analysis; for tests.
db::AnalysisData analysis_rows(const State& state, const std::string& trace_hash, const trace::Trace& trace,
                               const predictor::AnalysisResult& result);

}  // namespace stem::explorer
