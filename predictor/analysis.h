// What one trace says about static def-use pairs: which it shows, which it implies, which it excludes, what is unknown.
//
// A static pair is a definition site (or the initial value), a use site and a variable; its instances are event pairs. One
// witness settles it; it is infeasible only when all instances are refuted. The results are plain data, to be stored,
// printed and compared. How it is done: candidates.h, must_order.h, harvest.h, engine.h, and Z3 for what they leave.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/verdict.h"
#include "trace/reader.h"
#include "trace/test_file.h"

namespace stem::predictor {

enum class State : uint8_t {
#define STEM_STATE(Name, text) Name,
#include "predictor/states.def"
};
const char* state_name(State state);

// How the two accesses of a pair stand to one another, in the instance that is shown.
enum class Relation : uint8_t {
  SameThread,  // one thread does both
  Ordered,     // create, join, barriers or other synchronisation put the definition before the use in every execution
  Locked,      // both hold a common lock
  Atomic,      // both are atomic accesses
  Race,        // nothing keeps them apart
};
const char* relation_name(Relation relation);

struct AccessInfo {
  bool initial = false;             // the value that was there from the start: no site, no thread
  trace::SiteId site = 0;           // in the trace
  uint32_t event = trace::kNone;    // of the instance that is shown
  std::string thread;               // creation path
  std::vector<std::string> locks;   // held at the access, by name
};

struct PairResult {
  AccessInfo def, use;
  std::string variable;
  State state = State::Unknown;
  Layer layer = Layer::None;        // who decided
  Why why = Why::NotTried;          // Unknown
  std::string detail;               // Unknown, Diverged: a clause for people
  Bound bound;                      // Infeasible: how far that reaches
  Relation relation = Relation::Race;
  uint64_t instances = 0;           // event pairs of the trace
  uint64_t observed = 0;            // how many of them the recording shows
  uint64_t tried = 0;               // how many were decided one by one
  std::optional<Witness> witness;   // Implicit, Confirmed, Diverged
  std::string failure;              // Confirmed: how the replayed run went on to fail; empty: it did not
};

struct Statistics {
  uint64_t events = 0, accesses = 0, atoms = 0;
  uint64_t candidates = 0;                 // static pairs
  uint64_t instances = 0;                  // event pairs
  std::map<Layer, uint64_t> decided;       // static pairs, by who decided
  uint64_t windows = 0;                    // that were opened
  uint64_t states = 0;                     // visited by enumerations
  uint64_t queries = 0;                    // event pairs asked of the engine
  uint64_t solver_queries = 0;
  uint64_t rejected = 0;                   // witnesses that the checker refused: bugs
  double seconds = 0, solver_seconds = 0;
};

struct AnalysisResult {
  std::vector<PairResult> pairs;           // by variable, definition, use
  Statistics statistics;
  std::vector<std::string> notes;          // bounds and limits that people should know of
  bool interrupted = false;
  std::vector<uint64_t> numbers;           // of the trace's events in the run, where they differ (long_trace.h)
};

struct AnalysisOptions {
  Meaning meaning = Meaning::Prefix;
  bool paper = false;                      // the paper's formula for every instance, nothing else
  std::chrono::milliseconds timeout{0};    // for the whole analysis; 0: none
  unsigned query_ms = 5000;                // for one question to the solver
  uint32_t decisions = 2000;               // of the engine's search, for one question
  uint32_t states = 100;                   // of an enumeration, for each event of its window; 0: none
  uint32_t window = 0;                     // events; 0: the whole trace if it is short, windows of 1000 otherwise
  uint32_t kept = 64;                      // instances per static pair that are tried first
  unsigned threads = 0;                    // 0: as many as there are cores
  bool part = false;                       // the trace is a part of a longer one: refutations hold within windows only
  uint32_t from = 0;                       // what comes before this event executes as recorded
  bool show_only = false;                  // look at the kept instances only; refute nothing
  bool cut = false;                        // the trace is the beginning of a longer one: refutations hold for it only
  bool strict = false;                     // a witness that the checker refuses is thrown as a bug, not reported as unknown
  std::string dump;                        // folder for the solver's queries
  const std::atomic<bool>* interrupt = nullptr;  // set: stop, keep what was decided
  std::function<void(uint64_t done, uint64_t of)> progress;
  // Pairs that need no answer, by sites (def kNone: the initial value) and variable: they are not asked about, and left out of
  // the result unless the trace shows them.
  std::function<bool(trace::SiteId def, trace::SiteId use, uint32_t variable)> skip;
};

AnalysisResult analyze(const trace::Trace& trace, const AnalysisOptions& options = {});

constexpr uint32_t kDefaultWindow = 1000;  // events

bool before(const trace::Trace& trace, const PairResult& a, const PairResult& b);  // in the order of a result
const std::string& variable_name(const trace::Trace& trace, uint32_t variable);

// The test that replays a witness: its inputs and its schedule up to the use.
trace::Test test_of(const trace::Trace& trace, const Witness& witness);

// Whether a recorded run shows the pair: a use at the same site of the same variable that takes its value from the same
// definition. Sites are compared by key, so the trace may be another than the pair's own. Reads the run up to where it does.
bool shows(trace::Reader& run, const trace::Trace& trace, const PairResult& pair);

}  // namespace stem::predictor
