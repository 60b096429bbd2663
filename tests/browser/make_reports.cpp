// Writes the pages that the browser tests open: the running example, hostile names, and ten thousand pairs.
//   make_reports FOLDER
#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "report/formats.h"
#include "report/suppress.h"
#include "tests/db/running_example.h"
#include "tests/report/hostile.h"

using namespace stem;

namespace {

void render(db::Store& store, const std::filesystem::path& folder, const std::string& name, const report::Change* change = nullptr) {
  report::Model model = report::load(store.database(), folder);
  std::ofstream(folder / (name + ".html"), std::ios::binary) << report::html(model, change);
  std::ofstream(folder / (name + ".sarif"), std::ios::binary) << report::sarif(model, change);
  std::ofstream(folder / (name + ".md"), std::ios::binary) << report::markdown(model, change);
}

// 20 files of 500 lines, 10,000 pairs, a quarter of them predicted with a witness of 60 steps for the first hundred.
void fill_big(db::Store& store) {
  db::RunData data;
  data.names.version = {"big", "b", "", false};
  data.names.threads = {{"main", "main"}};
  for (int t = 1; t <= 8; ++t) data.names.threads.push_back({fmt::format("main/{}", t), "worker"});
  for (int f = 0; f < 20; ++f) {
    std::string text;
    for (int line = 1; line <= 500; ++line) text += fmt::format("  shared_{} = shared_{} + {};  // file {}\n", line % 50, (line * 7) % 50, line, f);
    data.names.sources.push_back({fmt::format("src/file{:02}.c", f), text, false});
  }
  for (int v = 0; v < 50; ++v) data.names.variables.push_back(fmt::format("shared_{}", v));
  for (uint32_t i = 0; i < 10000; ++i) data.names.sites.push_back({i + 1, fmt::format("src/file{:02}.c", i % 20), i / 20 % 500 + 1, 3, fmt::format("work_{}", i % 37), "shared"});
  db::AnalysisData analysis;
  analysis.trace_hash = data.run.trace_hash = "big";
  data.run.outcome = "exited";
  data.run.mode = "default";
  data.run.recorder = "compiled";
  for (uint32_t i = 0; i < 10000; ++i) {
    db::Pair pair{i % 50, db::DefKind::Write, (i * 7919) % 10000, i};
    if (i % 4) {
      data.observations.add({pair, i % 9, (i / 9) % 9, db::Relation::CommonLock, 1 + i % 5, -1});
      continue;
    }
    db::Verdict v;
    v.pair = pair;
    v.state = i % 8 ? db::State::Implicit : db::State::Confirmed;
    v.def_thread = 1;
    v.use_thread = 2;
    v.relation = db::Relation::Race;
    if (i < 400) {
      db::Witness w;
      for (uint32_t s = 0; s < 60; ++s) w.steps.push_back({s / 15 % 3, (i + s) % 10000, s % 2 ? "read" : "write", fmt::format("shared_{} = {}", s % 50, s), s == 30 ? 12u : 0u});
      w.def_step = 20;
      w.use_step = 59;
      w.steps[20] = {1, pair.def_site, "write", "", 0};
      w.steps[59] = {2, pair.use_site, "read", "", 0};
      v.witness = w;
    }
    analysis.verdicts.push_back(v);
  }
  analysis.names = data.names;
  store.import_run(data);
  store.import_analysis(analysis);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  db::Store example(folder / "example.db");
  db::example::fill(example);
  render(example, folder, "example");
  db::Store hostile(folder / "hostile.db");
  report::hostile::fill(hostile);
  render(hostile, folder, "hostile");
  db::Store big(folder / "big.db");
  fill_big(big);
  render(big, folder, "big");
  db::Store empty(folder / "empty.db");
  render(empty, folder, "empty");
}
