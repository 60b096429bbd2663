// Every recorded run is held against what static analysis allows: which code may run in which thread, which site may
// touch which variable, which definition may reach which read. A run that shows more is right, so static analysis is
// wrong, and what was concluded from it (that nothing is left to find) may be: it is told with the witness, and the run
// is kept like any other.
//
// The facts of a build are kept in the state folder (static/BUILD-ID.facts), so that a run costs a look into a table
// per distinct (site, variable) and flow, a few nanoseconds an event.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "explorer/flows.h"
#include "explorer/state.h"
#include "static/facts.h"
#include "trace/program.h"

namespace stem::explorer {

class StaticCheck : public FlowObserver {
 public:
  explicit StaticCheck(analysis::Facts facts) : facts_(std::move(facts)) {}

  void access(const trace::Reader& reader, const trace::Event& event, bool write) override;
  void flow(const trace::Reader& reader, db::DefKind kind, uint64_t def_key, const trace::Event& use) override;
  void branch(const trace::Reader& reader, const trace::Event& event) override;

  // What the run showed that static analysis does not allow, one line each, as people read it.
  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t checked() const { return checked_; }  // distinct accesses, flows and branches

 private:
  const analysis::Facts::Site* ran(const trace::Reader& reader, const trace::Event& event);
  // What the memory of an event may be: a number for a list of objects of the facts; 0: nothing that static analysis
  // knows.
  uint32_t memory(const trace::Reader& reader, const trace::Event& event);
  void violation(const trace::Reader& reader, const trace::Event& event, const std::string& what);

  analysis::Facts facts_;
  std::vector<uint32_t> memory_of_;  // by object of the trace; UINT32_MAX: not looked up
  std::map<std::vector<uint32_t>, uint32_t> memory_ids_;
  std::vector<std::vector<uint32_t>> memories_{1};
  std::map<std::string, std::vector<uint32_t>> classes_;  // by the start of a thread
  std::set<std::tuple<int, uint64_t, uint64_t, uint32_t>> seen_;
  std::set<std::string> told_;
  std::vector<std::string> violations_;
  uint64_t checked_ = 0;
};

// Of the program that recorded a trace: from the state folder, or by analysing its bitcode (and then kept there).
// Nothing if the program is not there any more, is another build, has no bitcode, or, unless `whatever_it_costs`, is so
// large that the analysis would be noticed.
std::optional<analysis::Facts> static_facts(const State& state, const trace::Meta& meta, bool whatever_it_costs);

// Keeps facts for later runs; a state folder that cannot be written is none.
void keep_facts(const State& state, const std::string& build_id, const analysis::Facts& facts);

// Says on standard error what a run showed that it should not have.
void tell_violations(const StaticCheck& check, const std::string& trace_file);

}  // namespace stem::explorer
