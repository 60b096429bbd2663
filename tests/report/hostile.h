// A run whose every name is meant to do harm: quotes, markup, newlines, terminal escapes, bytes that are not UTF-8.
#pragma once

#include "db/store.h"

namespace stem::report::hostile {

inline const std::string kFile = "dir with 'quotes'/<img src=x onerror=alert(1)>\n`|\"\xff\xfe.c";
inline const std::string kVariable = "v'; DROP TABLE pair; --<script>alert(1)</script>\x1b[31m|`*_[x](javascript:alert(1))@everyone\xc3";
inline const std::string kFunction = "operator<<</td></script><b>\r\n\t\"'&amp;";
inline const std::string kThread = "main/1</text><script>alert(2)</script>";

inline db::RunData run() {
  db::RunData data;
  data.names.version = {"prog\"<\n>\xff", "b'1", "", false};
  data.names.sources = {{kFile, "int a; </script><script>alert(3)</script>\n// \xff\xfe bytes ``` and ~~~\nint b;\n", false}};
  data.names.sites = {{1, kFile, 1, 1, kFunction, "a"}, {2, kFile, 2, 1, kFunction, "<b>"}, {3, kFile, 3, 1, kFunction, "c"}};
  data.names.variables = {kVariable};
  data.names.threads = {{"main", "main"}, {kThread, kFunction}};
  data.run.trace_hash = "hostile'";
  data.run.trace_path = "/tmp/\n'\xff";
  data.run.outcome = "exited";
  data.run.mode = "default";
  data.run.recorder = "compiled";
  data.run.argv = {"./x", "\xff\"'<>"};
  data.inputs = {{"in<'\xff", {1, 2}}};
  db::Observation o;
  o.pair = {0, db::DefKind::Write, 0, 1};
  o.def_thread = 0;
  o.use_thread = 1;
  o.relation = db::Relation::Race;
  data.observations.add(o);
  data.accesses = {{2, 0, db::Access::Write, 1}};
  data.findings = {{"assert-failed", "x != \"</script>\"\n|`" + kVariable, 1, 1, db::Test{"{}", "finding"}}};
  return data;
}

inline db::AnalysisData analysis() {
  db::AnalysisData data;
  data.names = run().names;
  data.trace_hash = "hostile'";
  db::Verdict v;
  v.pair = {0, db::DefKind::Write, 1, 1};
  v.state = db::State::Diverged;
  v.def_thread = v.use_thread = 1;
  v.layer = "<layer>";
  db::Witness w;
  w.test = db::Test{"{\"a\":\"'\"}", "witness"};
  w.detail = "left <b>here</b>\n\xff";
  w.steps = {{0, 0, "write", kVariable, 0}, {1, 1, "write", "</text>", 3}, {1, 1, "read", "", 0}};
  w.def_step = 1;
  w.use_step = 2;
  v.witness = w;
  data.verdicts = {v};
  return data;
}

inline void fill(db::Store& store) {
  store.import_run(run());
  store.import_analysis(analysis());
}

}  // namespace stem::report::hostile
