// The running example (docs: golden case S1) as rows, the way recording and analysing it would fill them: three traces and
// one with input (1,6,3). Used by the tests of the database and of the reports.
#pragma once

#include <map>
#include <string>

#include "db/store.h"

namespace stem::db::example {

inline const char* source_text() {
  return "#include <pthread.h>\n"                  // 1
         "\n"                                      // 2
         "int x, y, z;\n"                          // 3
         "\n"                                      // 4
         "void T0(int a) {\n"                      // 5
         "  if (a > 1)\n"                          // 6   paper 1
         "    z = x + 2;\n"                        // 7   paper 2
         "  else {\n"                              // 8
         "    z = x - 2;\n"                        // 9   paper 4
         "    x = 3;\n"                            // 10  paper 5
         "  }\n"                                   // 11
         "}\n"                                     // 12
         "\n"                                      // 13
         "void T1(int b) {\n"                      // 14
         "  if (b > 5)\n"                          // 15  paper 6
         "    b = y + 1;\n"                        // 16  paper 7
         "  else\n"                                // 17
         "    b = y - 1;\n"                        // 18  paper 9
         "  if (x > 2)\n"                          // 19  paper 10
         "    y = z + 1;\n"                        // 20  paper 11
         "  else\n"                                // 21
         "    x = z - 1;\n"                        // 22  paper 13
         "}\n"                                     // 23
         "\n"                                      // 24
         "void T2(int c) {\n"                      // 25
         "  int d = c < 2 ? 1 : 0;\n"              // 26
         "}\n";                                    // 27
}

// The paper's line to the line above.
inline uint32_t line_of(int paper) {
  static const std::map<int, uint32_t> lines{{1, 6}, {2, 7}, {4, 9}, {5, 10}, {6, 15}, {7, 16}, {9, 18}, {10, 19}, {11, 20}, {13, 22}};
  return lines.at(paper);
}

class Builder {
 public:
  explicit Builder(std::string build_id = "b1") {
    names.version = {"example", std::move(build_id), "", false};
    names.sources = {{"example.c", source_text(), false}};
    names.threads = {{"main", "main"}, {"main/1", "T0"}, {"main/2", "T1"}, {"main/3", "T2"}};
  }

  uint32_t variable(const std::string& name) {
    for (uint32_t i = 0; i < names.variables.size(); ++i) {
      if (names.variables[i] == name) return i;
    }
    names.variables.push_back(name);
    return static_cast<uint32_t>(names.variables.size() - 1);
  }

  // A read or write of `name` at a line of the paper.
  uint32_t site(int paper, const std::string& name, bool write) {
    const uint64_t key = static_cast<uint64_t>(paper) << 16 | static_cast<uint64_t>(name[0]) << 1 | (write ? 1 : 0);
    for (uint32_t i = 0; i < names.sites.size(); ++i) {
      if (names.sites[i].key == key) return i;
    }
    names.sites.push_back({key, "example.c", line_of(paper), 5, paper <= 5 ? "T0" : "T1", name});
    return static_cast<uint32_t>(names.sites.size() - 1);
  }

  static uint32_t thread_of(int paper) { return paper <= 5 ? 1 : 2; }

  // def 0 is the initial value.
  Pair pair(const std::string& name, int def, int use) {
    Pair p;
    p.variable = variable(name);
    p.def_kind = def ? DefKind::Write : DefKind::Initial;
    p.def_site = def ? site(def, name, true) : kNone;
    p.use_site = site(use, name, false);
    return p;
  }

  Names names;
};

struct Flow {
  const char* variable;
  int def, use;
};

inline RunData run(const std::string& hash, std::vector<uint8_t> abc, const std::vector<Flow>& flows,
                   const std::vector<std::pair<const char*, int>>& writes) {
  Builder builder;
  RunData data;
  data.run.trace_hash = hash;
  data.run.trace_path = ".stem/traces/" + hash + ".stem";
  data.run.recorder = "compiled";
  data.run.mode = "default";
  data.run.argv = {"./example"};
  data.run.outcome = "exited";
  data.run.events = 20;
  data.run.recorded_at = "2026-01-01T00:00:00Z";
  for (size_t i = 0; i < abc.size(); ++i) data.inputs.push_back({std::string(1, static_cast<char>('a' + i)), {abc[i], 0, 0, 0}});
  for (const Flow& f : flows) {
    Observation o;
    o.pair = builder.pair(f.variable, f.def, f.use);
    o.use_thread = Builder::thread_of(f.use);
    if (f.def) o.def_thread = Builder::thread_of(f.def);
    o.relation = f.def == 0 ? Relation::Ordered : o.def_thread == o.use_thread ? Relation::SameThread : Relation::Race;
    data.observations.add(o);
    data.accesses.push_back({o.pair.use_site, o.pair.variable, Access::Read, 1});
  }
  for (const auto& [name, line] : writes) {
    data.accesses.push_back({builder.site(line, name, true), builder.variable(name), Access::Write, 1});
  }
  data.run.schedule = {{1, 4}, {2, 6}, {3, 2}};
  data.names = builder.names;
  return data;
}

inline Verdict implicit(Builder& builder, const Flow& f, State state = State::Confirmed) {
  Verdict v;
  v.pair = builder.pair(f.variable, f.def, f.use);
  v.state = state;
  v.layer = "saturation";
  v.use_thread = Builder::thread_of(f.use);
  v.relation = f.def ? Relation::Race : Relation::Ordered;
  Witness w;
  w.test = Test{std::string(R"({"stem_test":1,"pair":")") + f.variable + std::to_string(f.def) + "-" + std::to_string(f.use) + "\"}", "witness"};
  if (f.def) {
    v.def_thread = Builder::thread_of(f.def);
    w.def_step = 0;
    w.steps.push_back({v.def_thread, v.pair.def_site, "write", std::string(f.variable) + " = 3", 0});
  }
  w.use_step = static_cast<uint32_t>(w.steps.size());
  w.steps.push_back({v.use_thread, v.pair.use_site, "read", std::string(f.variable), 0});
  v.witness = w;
  return v;
}

inline AnalysisData analysis(const std::string& hash, const std::vector<Flow>& flows) {
  Builder builder;
  AnalysisData data;
  data.trace_hash = hash;
  for (const Flow& f : flows) data.verdicts.push_back(implicit(builder, f));
  data.stats = {{"solver.millis", 1.5}};
  data.names = builder.names;
  return data;
}

// The three traces and the fourth; PREFIX answers.
inline void fill(Store& store) {
  store.import_run(run("pi1", {2, 2, 3}, {{"x", 0, 2}, {"x", 0, 10}, {"z", 2, 13}, {"y", 0, 9}}, {{"z", 2}, {"x", 13}}));
  store.import_analysis(analysis("pi1", {{"x", 13, 2}, {"z", 0, 13}}));
  store.import_run(run("pi2", {1, 2, 3}, {{"x", 0, 4}, {"z", 4, 11}, {"x", 5, 10}, {"y", 0, 9}}, {{"z", 4}, {"x", 5}, {"y", 11}}));
  store.import_analysis(analysis("pi2", {{"x", 0, 10}}));
  store.import_run(run("pi3", {1, 2, 3}, {{"x", 0, 4}, {"x", 0, 10}, {"z", 4, 13}, {"y", 0, 9}}, {{"z", 4}, {"x", 5}, {"x", 13}}));
  store.import_analysis(analysis("pi3", {{"x", 13, 4}, {"z", 0, 13}, {"x", 5, 10}}));
  store.import_run(run("pi4", {1, 6, 3}, {{"x", 0, 4}, {"z", 4, 11}, {"x", 5, 10}, {"y", 0, 7}}, {{"z", 4}, {"x", 5}, {"y", 11}}));
  store.import_analysis(analysis("pi4", {{"x", 0, 10}}));
}

}  // namespace stem::db::example
