#include "cli/branches.h"

#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "explorer/confirm.h"
#include "predictor/rounds.h"
#include "trace/reader.h"
#include "tracer/launch/ending.h"
#include "tracer/launch/launch.h"
#include "tracer/launch/message.h"
#include "util/error.h"
#include "util/text.h"

namespace stem::cli {

namespace fs = std::filesystem;
using nlohmann::json;
using predictor::Alternate;
using Replay = BranchResult::Replay;

namespace {

struct Scratch {  // a folder that goes away
  std::string path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stem-branches-XXXXXX").string();
    if (!mkdtemp(name.data())) user_error("cannot create a folder in {}; set TMPDIR to one that can be written", fs::temp_directory_path().string());
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
};

void replay(const trace::Trace& trace, BranchResult& result, const trace::Test& test, const std::string& folder) {
  launch::Options options;
  options.mode = "guided";
  options.output = folder;
  options.quiet = true;
  options.timeout = std::chrono::seconds(10);
  result.replay = Replay::Diverged;
  try {
    const launch::RunResult run = launch::run(test, options);
    if (run.trace.empty()) {
      result.detail = "the run recorded nothing";
      return;
    }
    const trace::Trace seen = trace::load(run.trace);
    const predictor::Taken taken = predictor::took(seen, trace, result.alternate.branch);
    if (taken == predictor::Taken::Yes) {
      const bool failed = !run.timed_out && (!run.exited || run.outcome == trace::Outcome::AssertFailed ||
                                             run.outcome == trace::Outcome::Deadlock || run.outcome == trace::Outcome::Livelock);
      result.replay = Replay::Confirmed;
      if (failed) result.failure = launch::ended_text(run);
      return;
    }
    for (const std::string& message : run.messages)
      if (launch::message_kind(message) == "divergence") result.detail = launch::render_message(message, seen);
    if (result.detail.empty())
      result.detail = taken == predictor::Taken::Same ? "the run decided as recorded" : "the run did not come there";
  } catch (const UserError& error) {
    result.detail = error.what();
  }
}

// 5, "abc", 0x0102...
std::string value_text(const trace::Input& input) {
  const auto& bytes = input.bytes;
  if (bytes.size() <= 8 && (bytes.size() & (bytes.size() - 1)) == 0 && !bytes.empty()) {
    uint64_t bits = 0;
    for (size_t k = bytes.size(); k-- > 0;) bits = bits << 8 | bytes[k];
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
    return std::to_string(static_cast<int64_t>(bits << unused) >> unused);
  }
  const auto text_end = std::find(bytes.begin(), bytes.end(), 0);
  if (std::all_of(bytes.begin(), text_end, [](uint8_t b) { return b >= 32 && b < 127; }))
    return "\"" + std::string(bytes.begin(), text_end) + "\"";
  return "0x" + trace::hex(bytes);
}

std::string changed_inputs(const trace::Trace& trace, const Alternate& a) {
  std::string out;
  for (size_t i = 0; i < trace.inputs.size(); ++i)
    if (a.witness.inputs[i] != trace.inputs[i])
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", printable(trace.inputs[i].name), printable(value_text(a.witness.inputs[i])));
  return out;
}

size_t switches(const trace::Trace& trace, const Alternate& a) {
  size_t n = 0;
  for (size_t i = 1; i < a.witness.schedule.size(); ++i)
    n += trace.events[a.witness.schedule[i]].thread != trace.events[a.witness.schedule[i - 1]].thread;
  return n;
}

std::string verdict(const trace::Trace& trace, const BranchResult& r) {
  const Alternate& a = r.alternate;
  switch (a.kind) {
    case Alternate::Kind::Feasible: {
      const std::string inputs = changed_inputs(trace, a);
      std::string out = fmt::format("can be {}", static_cast<int64_t>(a.value));
      if (!inputs.empty()) out += " with " + inputs;
      if (!a.same_order) out += fmt::format("{} another schedule ({} switches)", inputs.empty() ? " under" : ",", switches(trace, a));
      if (r.replay == Replay::Confirmed) out += "; confirmed by a run";
      if (!r.failure.empty()) out += ", which " + printable(r.failure);
      if (r.replay == Replay::Diverged) out += "; its run diverged: " + printable(r.detail);
      return out;
    }
    case Alternate::Kind::Infeasible:
      return a.bounded ? "cannot be otherwise while " + printable(a.limit) : std::string("cannot be otherwise on this path");
    case Alternate::Kind::Unknown:
      return fmt::format("unknown: {}{}{}", predictor::why_text(a.why), a.detail.empty() ? "" : ", ", printable(a.detail));
  }
  return "?";
}

}  // namespace

std::vector<BranchResult> try_branches(const trace::Trace& trace, const BranchOptions& options) {
  const std::vector<uint32_t> branches = predictor::branches_of(trace, options.per_site);
  const unsigned workers = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<predictor::Alternates>> solvers(workers);
  const Scratch scratch;
  if (!options.keep.empty()) fs::create_directories(options.keep);
  std::map<std::pair<trace::ThreadId, trace::SiteId>, uint32_t> met;
  std::map<uint32_t, uint32_t> occurrence;
  for (uint32_t e = 0; e < trace.events.size(); ++e)
    if (trace.events[e].kind == trace::Kind::Branch) occurrence[e] = ++met[{trace.events[e].thread, trace.events[e].site}];

  std::vector<BranchResult> results(branches.size());
  predictor::run_rounds<BranchResult>(
      branches.size(), workers, 4 * workers,
      [&](unsigned worker, size_t i) {
        BranchResult result;
        if (!solvers[worker]) solvers[worker] = std::make_unique<predictor::Alternates>(trace, options.alternates);
        result.alternate = solvers[worker]->negate(branches[i]);
        result.occurrence = occurrence[branches[i]];
        if (result.alternate.kind != Alternate::Kind::Feasible) return result;
        const trace::Test test = predictor::test_of(trace, result.alternate);
        if (!options.keep.empty()) {
          result.test = fmt::format("{}/branch-{}.stemtest", options.keep, i + 1);
          trace::save_test(test, result.test);
        }
        const std::string folder = fmt::format("{}/{}", scratch.path, i);
        if (options.replay) replay(trace, result, test, folder);
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        return result;
      },
      [&](size_t i, BranchResult result) {
        results[i] = std::move(result);
        return !(options.alternates.interrupt && *options.alternates.interrupt);
      });
  return results;
}

std::string render(const trace::Trace& trace, const std::vector<BranchResult>& results) {
  std::string out;
  size_t feasible = 0, confirmed = 0, diverged = 0, unknown = 0;
  for (const BranchResult& r : results) {
    if (r.alternate.branch == trace::kNone) continue;
    const trace::Event& e = trace.events[r.alternate.branch];
    const trace::Site& site = trace.sites[e.site];
    const std::string function = site.function.empty() ? "" : fmt::format(" ({})", printable(site.function));
    const std::string which = r.occurrence > 1 ? fmt::format(", time {}", r.occurrence) : "";
    out += fmt::format("  {}{}, {}{}: was {}, {}\n", printable(launch::source_line(site)), function, trace.threads[e.thread].path, which,
                       static_cast<int64_t>(e.value), verdict(trace, r));
    feasible += r.alternate.kind == Alternate::Kind::Feasible;
    unknown += r.alternate.kind == Alternate::Kind::Unknown;
    confirmed += r.replay == Replay::Confirmed;
    diverged += r.replay == Replay::Diverged;
  }
  out += fmt::format("{} branches: {} can go the other way", results.size(), feasible);
  if (confirmed + diverged) out += fmt::format(" ({} confirmed by a run, {} diverged)", confirmed, diverged);
  return out + fmt::format(", {} cannot, {} unknown\n", results.size() - feasible - unknown, unknown);
}

json to_json(const trace::Trace& trace, const std::vector<BranchResult>& results) {
  json out = json::array();
  for (const BranchResult& r : results) {
    const Alternate& a = r.alternate;
    if (a.branch == trace::kNone) continue;
    const trace::Event& e = trace.events[a.branch];
    const trace::Site& site = trace.sites[e.site];
    json o = {{"event", a.branch}, {"file", valid_utf8(site.file)}, {"line", site.line}, {"column", site.column},
              {"function", valid_utf8(site.function)}, {"text", valid_utf8(site.text)}, {"key", fmt::format("{:016x}", site.key)},
              {"thread", trace.threads[e.thread].path}, {"occurrence", r.occurrence}, {"was", e.value},
              {"layer", predictor::layer_name(a.layer)}, {"seconds", a.seconds}};
    switch (a.kind) {
      case Alternate::Kind::Feasible:
        o["state"] = r.replay == Replay::Confirmed ? "feasible, confirmed" : r.replay == Replay::Diverged ? "feasible, diverged" : "feasible";
        o["value"] = a.value;
        o["same_order"] = a.same_order;
        o["switches"] = switches(trace, a);
        o["test"] = json::parse(trace::to_json(predictor::test_of(trace, a)));
        if (!r.failure.empty()) o["failure"] = valid_utf8(r.failure);
        if (!r.detail.empty()) o["detail"] = valid_utf8(r.detail);
        if (!r.test.empty()) o["file_of_test"] = valid_utf8(r.test);
        break;
      case Alternate::Kind::Infeasible:
        o["state"] = "infeasible";
        o["bounded"] = a.bounded;
        if (a.bounded) o["detail"] = valid_utf8(a.limit);
        break;
      case Alternate::Kind::Unknown:
        o["state"] = "unknown";
        o["reason"] = predictor::why_text(a.why);
        o["detail"] = valid_utf8(a.detail);
        break;
    }
    out.push_back(std::move(o));
  }
  return out;
}

}  // namespace stem::cli
