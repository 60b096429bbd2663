#include "explorer/static_check.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "static/analysis.h"
#include "util/error.h"
#include "util/text.h"

namespace stem::explorer {
namespace {

namespace fs = std::filesystem;
using analysis::Facts;
using trace::Event;
using trace::Reader;

constexpr size_t kQuickBytes = 6 << 20;  // of bitcode: analysed in about a second

std::string place(const trace::Site& site) {
  return printable(fmt::format("{}:{} ({})", fs::path(site.file).filename().string(), site.line, site.function));
}

std::string variable(const Reader& reader, const Event& event) {
  if (event.variable != trace::kNone) return printable(reader.variables().at(event.variable));
  return "memory";
}

fs::path facts_file(const State& state, const std::string& build_id) {
  return state.folder / "static" / (build_id + ".facts");
}

}  // namespace

// Which thread may run the site at all. Sites that the facts do not know are of another file: a shared library's.
const Facts::Site* StaticCheck::ran(const Reader& reader, const Event& event) {
  const trace::Site& where = reader.sites().at(event.site);
  const Facts::Site* site = facts_.site(where.key);
  if (!site) {
    if (facts_.is_dead(where.key)) violation(reader, event, "no thread runs this");
    return nullptr;
  }
  const trace::Thread& thread = reader.threads().at(event.thread);
  if (!seen_.insert({0, site->key, event.thread, 0}).second) return site;
  ++checked_;
  auto [classes, fresh] = classes_.try_emplace(event.thread == 0 ? "main" : thread.start);
  if (fresh)
    for (uint32_t i = 0; i < facts_.threads.size(); ++i) {
      const Facts::Thread& known = facts_.threads[i];
      if (known.entry.empty() || known.entry == classes->first || known.written == classes->first)
        classes->second.push_back(i);
    }
  // The start of a thread that a library's function began (std::thread) is not one of ours: then any will do.
  const bool known_start = std::any_of(classes->second.begin(), classes->second.end(),
                                       [&](uint32_t i) { return !facts_.threads[i].entry.empty(); });
  const bool may = !known_start || std::any_of(classes->second.begin(), classes->second.end(), [&](uint32_t i) {
    return std::find(site->threads.begin(), site->threads.end(), i) != site->threads.end();
  });
  if (!may) violation(reader, event, fmt::format("no thread that starts with {} runs this", printable(classes->first)));
  return site;
}

uint32_t StaticCheck::memory(const Reader& reader, const Event& event) {
  if (event.object == trace::kNone) return 0;
  if (event.object >= memory_of_.size()) memory_of_.resize(event.object + 1, UINT32_MAX);
  uint32_t& known = memory_of_[event.object];
  if (known != UINT32_MAX) return known;
  const trace::Object object = reader.object(event.object);
  std::vector<uint32_t> candidates;
  switch (object.kind) {
    case trace::ObjectKind::Global:
    case trace::ObjectKind::Tls:
      candidates = facts_.globals(object.name);
      break;
    case trace::ObjectKind::Heap:
    case trace::ObjectKind::Stack:
      if (object.site) candidates = facts_.allocated_at(reader.sites().at(object.site).key);
      break;
    case trace::ObjectKind::Unknown:
    case trace::ObjectKind::Sync:
      break;
  }
  if (candidates.empty()) return known = 0;
  auto [id, fresh] = memory_ids_.try_emplace(candidates, static_cast<uint32_t>(memories_.size()));
  if (fresh) memories_.push_back(candidates);
  return known = id->second;
}

void StaticCheck::access(const Reader& reader, const Event& event, bool write) {
  const Facts::Site* site = ran(reader, event);
  const uint32_t id = site ? memory(reader, event) : 0;
  if (id == 0 || !seen_.insert({write ? 1 : 2, site->key, 0, id}).second) return;
  ++checked_;
  const bool may = std::any_of(memories_[id].begin(), memories_[id].end(), [&](uint32_t object) {
    return write ? facts_.may_write(*site, object) : facts_.may_read(*site, object);
  });
  if (!may)
    violation(reader, event, fmt::format("this does not {} {}", write ? "write" : "read", variable(reader, event)));
}

void StaticCheck::flow(const Reader& reader, db::DefKind kind, uint64_t def_key, const Event& use) {
  if (kind == db::DefKind::External) return;  // memory that unseen code wrote
  const trace::Site& where = reader.sites().at(use.site);
  const uint64_t def = kind == db::DefKind::Initial ? analysis::kInitialKey : def_key;
  const uint32_t id = memory(reader, use);
  if (id == 0 || !seen_.insert({3, where.key, def, id}).second) return;
  const Facts::Site* site = facts_.site(where.key);
  const Facts::Site* from = kind == db::DefKind::Initial ? nullptr : facts_.site(def);
  if (!site || (kind == db::DefKind::Write && !from)) return;
  ++checked_;
  const bool may = std::any_of(memories_[id].begin(), memories_[id].end(), [&](uint32_t object) {
    return from ? facts_.may_flow(*from, *site, object) : facts_.initial_may_reach(*site, object);
  });
  if (may) return;
  std::string source = "its initial value";
  for (const trace::Site& other : reader.sites())
    if (from && other.key == def) source = "the value written at " + place(other);
  violation(reader, use, fmt::format("{} never has {} here", variable(reader, use), source));
}

void StaticCheck::branch(const Reader& reader, const Event& event) {
  const Facts::Site* site = ran(reader, event);
  if (site && !site->branch) violation(reader, event, "there is no branch here");
}

void StaticCheck::violation(const Reader& reader, const Event& event, const std::string& what) {
  const std::string text = fmt::format("{}: {}; event {} of thread {} shows it", place(reader.sites().at(event.site)),
                                       what, reader.event_index(), printable(reader.threads().at(event.thread).path));
  if (told_.insert(place(reader.sites().at(event.site)) + what).second) violations_.push_back(text);
}

std::optional<Facts> static_facts(const State& state, const trace::Meta& meta, bool whatever_it_costs) {
  if (meta.build_id.empty() || meta.recorder != "compiled") return std::nullopt;
  if (std::ifstream file(facts_file(state, meta.build_id), std::ios::binary); file) {
    std::ostringstream bytes;
    bytes << file.rdbuf();
    if (auto facts = Facts::from_bytes(std::move(bytes).str())) return facts;
  }
  try {
    const std::string path =
        meta.program.starts_with("/") ? meta.program : (fs::path(meta.cwd) / meta.program).string();
    const trace::Program program = trace::Program::open(path);
    if (program.build_id() != meta.build_id || program.bitcode_count() == 0) return std::nullopt;
    size_t bytes = 0;
    if (!whatever_it_costs)
      for (const trace::Bitcode& module : program.bitcode()) bytes += module.bytes.size();
    if (bytes > kQuickBytes) return std::nullopt;
    Facts facts = analysis::analyze_program(program).facts;
    keep_facts(state, meta.build_id, facts);
    return facts;
  } catch (const UserError&) {
    return std::nullopt;  // no program, or none that can be analysed: nothing to hold the run against
  }
}

void keep_facts(const State& state, const std::string& build_id, const Facts& facts) {
  if (build_id.empty()) return;
  std::error_code error;
  const fs::path file = facts_file(state, build_id);
  fs::create_directories(file.parent_path(), error);
  const fs::path fresh = file.string() + fmt::format(".{}", getpid());
  {
    std::ofstream out(fresh, std::ios::binary);
    out << facts.to_bytes();
    if (!out.flush()) {
      fs::remove(fresh, error);
      return;
    }
  }
  fs::rename(fresh, file, error);
}

void tell_violations(const StaticCheck& check, const std::string& trace_file) {
  constexpr size_t kShown = 3;
  const auto& all = check.violations();
  if (all.empty()) return;
  fmt::print(
      stderr,
      "stem: this run shows what static analysis of the program says cannot be. The run is right and is kept; static\n"
      "stem: analysis has a bug. Please report it with the program and {}:\n",
      trace_file);
  for (size_t i = 0; i < all.size() && i < kShown; ++i) fmt::print(stderr, "stem:   {}\n", all[i]);
  if (all.size() > kShown)
    fmt::print(stderr, "stem:   and {} more (stem static PROGRAM --check {})\n", all.size() - kShown, trace_file);
}

}  // namespace stem::explorer
