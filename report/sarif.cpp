// SARIF 2.1.0, for code hosts and editors. A predicted pair is a result with its witness as one threadFlow per thread;
// executionOrder puts the steps of all threads in one sequence. Fingerprints are made of program, variable and site keys,
// so a result keeps its identity when lines move.
#include <fmt/core.h>

#include "report/formats.h"
#include "report/json.h"
#include "util/text.h"

namespace stem::report {
namespace {

struct RuleText {
  const char* id;
  const char* name;
  const char* title;
  const char* help;
  const char* level;
};

constexpr RuleText kRules[] = {
    {"stem/unexercised-flow", "UnexercisedFlow", "A definition can reach this read, and no test has shown it",
     "Another schedule or input of the recorded program lets the read take its value from this definition. Write a test that does, or say why it is fine.",
     "warning"},
    {"stem/local-remote", "LocalRemote", "A read that always took definitions of its own thread (or always of others) takes one of the other kind",
     "Learned from passing runs. Typical of a missing lock or of an order that was only luck.", "warning"},
    {"stem/follower", "Follower", "Two reads in a row that always saw the same definition can see two",
     "Learned from passing runs. Typical of check-then-use without a lock.", "warning"},
    {"stem/data-race", "DataRace", "Nothing orders the write and the read",
     "No common lock, not atomic, no create, join, condition variable, semaphore or barrier between the two accesses.", "warning"},
    {"stem/failure", "Failure", "The program fails under this schedule and input", "Replay it with stem replay.", "error"},
    {"stem/unused-definition", "UnusedDefinition", "No read takes this definition in any trace or prediction", "Dead once static analysis proves it.",
     "note"},
};

size_t rule_index(std::string_view id) {
  size_t i = 0;
  while (kRules[i].id != id) ++i;
  return i;
}

// A path as a URI reference: bytes that may not stand in one are percent-encoded, so any path survives.
std::string uri(const std::string& path) {
  std::string out;
  for (unsigned char c : path) {
    const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("/-._~").find(static_cast<char>(c)) != std::string_view::npos;
    out += safe ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

class Writer {
 public:
  Writer(const Model& model, const Change* change) : model_(model), change_(change) {}

  std::string run() {
    std::set<int64_t> untested;
    if (change_) {
      for (size_t i : change_->untested) untested.insert(model_.pairs[i].id);
    }
    for (const Pair& pair : model_.pairs) {
      if (pair.predicted() && (!change_ || untested.count(pair.id) || pair.suppressed != Suppressed::No)) flow(pair, "stem/unexercised-flow");
      if (pair.relation == "data race" && (pair.covered() || pair.predicted())) flow(pair, "stem/data-race");
    }
    for (const Violation& v : model_.violations) {
      const Pair* pair = v.pair ? model_.pair(v.pair) : nullptr;
      if (!pair || v.invariant == "Definition set") continue;  // a definition set is broken by every predicted pair: said above
      flow(*pair, v.invariant == "Follower" ? "stem/follower" : "stem/local-remote");
    }
    for (const Finding& f : model_.findings) finding(f);
    for (const Definition& d : model_.definitions) unused(d);
    return document();
  }

 private:
  std::string document() {
    Json rules = Json::array();
    for (const RuleText& rule : kRules) {
      rules.push_back({{"id", rule.id}, {"name", rule.name}, {"shortDescription", {{"text", rule.title}}}, {"fullDescription", {{"text", rule.title}}},
                       {"help", {{"text", rule.help}}}, {"defaultConfiguration", {{"level", rule.level}}}});
    }
    Json run{{"tool", {{"driver", {{"name", "STEM"}, {"version", STEM_VERSION}, {"rules", rules}}}}},
             {"columnKind", "unicodeCodePoints"},
             {"originalUriBaseIds", {{"SRCROOT", {{"uri", "file://" + uri(model_.project.empty() ? "/" : model_.project + "/")}}}}},
             {"automationDetails", {{"id", "stem/defuse/"}}},
             {"results", results_},
             {"properties", {{"coverage", to_json(model_.coverage())}}}};
    Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
    return log.dump(1) + "\n";
  }

  Json location(const Place& place, const std::string& message = "") const {
    Json json = Json::object();
    if (!place.file.empty()) {
      Json artifact{{"uri", (place.file.starts_with('/') ? "file://" : "") + uri(place.file)}};
      if (!place.file.starts_with('/')) artifact["uriBaseId"] = "SRCROOT";
      Json physical{{"artifactLocation", artifact}};
      if (place.line > 0) {
        physical["region"] = {{"startLine", place.line}};
        if (place.column > 0) physical["region"]["startColumn"] = place.column;
      }
      json["physicalLocation"] = physical;
    }
    if (!place.function.empty()) json["logicalLocations"] = Json::array({{{"fullyQualifiedName", valid_utf8(place.function)}, {"kind", "function"}}});
    if (!message.empty()) json["message"] = {{"text", message}};
    return json;
  }

  Json result(const char* rule, const std::string& message, const Place& place, const std::string& fingerprint) const {
    const size_t index = rule_index(rule);
    return {{"ruleId", rule}, {"ruleIndex", index}, {"level", kRules[index].level}, {"message", {{"text", message}}},
            {"locations", Json::array({location(place)})},
            {"partialFingerprints", {{"stemPair/v1", fingerprint}, {"stemRule/v1", fingerprint + ":" + rule}}}};
  }

  void flow(const Pair& pair, const char* rule) {
    const std::string name = printable(pair.variable), from = describe_definition(pair);
    std::string message;
    if (std::string_view(rule) == "stem/data-race") message = fmt::format("Data race on {}: written at {}, read here.", name, from);
    else if (std::string_view(rule) == "stem/follower") message = fmt::format("This read of {} can take another definition than the read before it: {}.", name, from);
    else if (std::string_view(rule) == "stem/local-remote") message = fmt::format("This read of {} can take a definition of the other kind of thread: {}.", name, from);
    else message = fmt::format("This read of {} can take the definition at {}; no test has shown it ({}).", name, from, state_sentence(pair));
    Json json = result(rule, message, pair.use, pair.fingerprint);
    if (pair.def_kind == "write") json["relatedLocations"] = Json::array({location(pair.def, "the definition")});
    const auto witness = model_.witnesses.find(pair.witness);
    if (witness != model_.witnesses.end() && !witness->second.steps.empty()) json["codeFlows"] = Json::array({code_flow(witness->second, pair)});
    json["properties"] = {{"pair", pair.name}, {"state", db::state_name(pair.state)}, {"crossThread", pair.cross_thread}, {"relation", pair.relation}};
    if (pair.suppressed != Suppressed::No) {
      json["suppressions"] = Json::array({{{"kind", pair.suppressed == Suppressed::InSource ? "inSource" : "external"}, {"justification", valid_utf8(pair.reason)}}});
    }
    results_.push_back(std::move(json));
  }

  Json code_flow(const Witness& witness, const Pair& pair) const {
    Json flows = Json::array();
    for (size_t thread = 0; thread < witness.threads.size(); ++thread) {
      Json steps = Json::array();
      for (size_t i = 0; i < witness.steps.size(); ++i) {
        const Step& step = witness.steps[i];
        if (step.thread != thread) continue;
        std::string text = printable(step.detail.empty() ? step.kind : step.kind + " " + step.detail);
        const bool def = static_cast<int64_t>(i) == witness.def_step, use = static_cast<int64_t>(i) == witness.use_step;
        if (def) text += fmt::format(" (the definition of {})", printable(pair.variable));
        if (use) text += fmt::format(" (the read of {})", printable(pair.variable));
        steps.push_back({{"location", location(step.place, text)}, {"executionOrder", i + 1}, {"importance", def || use ? "essential" : "important"},
                         {"kinds", Json::array({valid_utf8(step.kind)})}});
      }
      if (steps.empty()) continue;
      const std::string start = witness.starts[thread].empty() ? "" : " (" + printable(witness.starts[thread]) + ")";
      flows.push_back({{"id", valid_utf8(witness.threads[thread])}, {"message", {{"text", "thread " + printable(witness.threads[thread]) + start}}}, {"locations", steps}});
    }
    return {{"message", {{"text", "a schedule under which it happens"}}}, {"threadFlows", flows}};
  }

  void finding(const Finding& f) {
    Json json = result("stem/failure", printable(f.kind) + ": " + printable(f.message), f.place, f.fingerprint);
    if (!f.place.known()) json.erase("locations");
    json["properties"] = {{"finding", f.name}};
    results_.push_back(std::move(json));
  }

  void unused(const Definition& d) {
    results_.push_back(result("stem/unused-definition",
                              fmt::format("Nothing reads what is written to {} here ({}).", printable(d.variable),
                                          d.fate == "dead" ? "dead: static analysis proves it" : "in any trace or prediction"),
                              d.place, db_fingerprint(d)));
  }

  static std::string db_fingerprint(const Definition& d) {
    uint64_t hash = 1469598103934665603u;  // FNV-1a
    for (const std::string* part : {&d.program, &d.variable, &d.place.file, &d.place.function, &d.place.text}) {
      for (unsigned char c : *part + '\0') hash = (hash ^ c) * 1099511628211u;
    }
    return fmt::format("{:016x}", hash);
  }

  const Model& model_;
  const Change* change_;
  Json results_ = Json::array();
};

}  // namespace

std::string sarif(const Model& model, const Change* change) { return Writer(model, change).run(); }

}  // namespace stem::report
