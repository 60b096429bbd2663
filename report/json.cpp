// JSON for tools. "stem_report" is the version of this form: members are added, never renamed or removed.
#include "report/json.h"

#include "report/formats.h"
#include "util/text.h"

namespace stem::report {
namespace {

std::string text_of(const std::string& raw) { return valid_utf8(raw); }

Json place(const Place& place) {
  if (place.file.empty() && place.function.empty()) return nullptr;
  Json json{{"file", text_of(place.file)}, {"line", place.line ? Json(place.line) : Json()}, {"function", text_of(place.function)}};
  if (place.column) json["column"] = place.column;
  if (!place.text.empty()) json["text"] = text_of(place.text);
  return json;
}

Json pair_json(const Pair& p) {
  Json json{{"id", p.name}, {"fingerprint", p.fingerprint}, {"program", text_of(p.program)}, {"variable", text_of(p.variable)},
            {"def_kind", p.def_kind}, {"def", p.def_kind == "write" ? place(p.def) : Json()}, {"use", place(p.use)},
            {"cross_thread", p.cross_thread}, {"state", db::state_name(p.state)}, {"bound", p.bound.empty() ? Json() : Json(p.bound)},
            {"relation", p.relation}, {"evidence", text_of(p.evidence)}};
  if (p.witness) json["witness"] = p.witness;
  if (p.suppressed != Suppressed::No) json["suppressed"] = text_of(p.reason);
  Json& flows = json["flows"] = Json::array();
  for (const Flow& f : p.flows) {
    flows.push_back({{"def_thread", f.def_thread.empty() ? Json() : Json(text_of(f.def_thread))}, {"def_start", text_of(f.def_start)},
                     {"use_thread", text_of(f.use_thread)}, {"use_start", text_of(f.use_start)}, {"state", f.state}, {"count", f.count},
                     {"runs", f.runs}});
  }
  return json;
}

Json witness_json(const Witness& w) {
  Json json{{"id", w.id}, {"run", w.run}, {"status", w.status}, {"detail", text_of(w.detail)}, {"outcome", text_of(w.outcome)},
            {"def_step", w.def_step < 0 ? Json() : Json(w.def_step)}, {"use_step", w.use_step < 0 ? Json() : Json(w.use_step)},
            {"total", w.total}};
  Json& threads = json["threads"] = Json::array();
  for (size_t i = 0; i < w.threads.size(); ++i) threads.push_back({{"path", text_of(w.threads[i])}, {"start", text_of(w.starts[i])}});
  Json& steps = json["steps"] = Json::array();
  for (const Step& s : w.steps) {
    Json step{{"thread", s.thread}, {"kind", text_of(s.kind)}, {"detail", text_of(s.detail)}, {"place", place(s.place)}};
    if (s.skipped) step["skipped"] = s.skipped;
    steps.push_back(std::move(step));
  }
  return json;
}

Json change_json(const Model& model, const Change& change) {
  const auto names = [&](const std::vector<size_t>& indices) {
    Json all = Json::array();
    for (size_t i : indices) all.push_back(model.pairs[i].name);
    return all;
  };
  Json json{{"base", text_of(change.base)}, {"base_known", change.base_known}, {"added", names(change.added)},
            {"uncovered_since", names(change.uncovered_since)}, {"untested", names(change.untested)}};
  Json& lost = json["lost"] = Json::array();
  for (const Pair& pair : change.lost) lost.push_back(pair_json(pair));
  Json& lines = json["lines"] = Json::object();
  for (const auto& [file, numbers] : change.lines) lines[text_of(file)] = numbers;
  return json;
}

}  // namespace

Json to_json(const Coverage& c) {
  const auto percent = c.percent();
  return {{"covered", c.covered}, {"predicted", c.predicted}, {"confirmed", c.confirmed}, {"infeasible_in_bound", c.infeasible_in_bound},
          {"unknown", c.unknown}, {"total", c.total()}, {"infeasible", c.infeasible}, {"suppressed", c.suppressed},
          {"percent", percent ? Json(*percent) : Json()}};
}

Json to_json(const Model& model, const Change* change, bool with_sources) {
  Json json{{"stem_report", 1}};
  Json& programs = json["programs"] = Json::array();
  for (const std::string& program : model.programs) programs.push_back(text_of(program));
  json["coverage"] = to_json(model.coverage());
  Json& files = json["files"] = Json::object();
  for (const auto& [file, coverage] : model.by_file()) files[text_of(file)] = to_json(coverage);
  Json& pairs = json["pairs"] = Json::array();
  for (const Pair& pair : model.pairs) pairs.push_back(pair_json(pair));
  Json& witnesses = json["witnesses"] = Json::object();
  for (const auto& [id, witness] : model.witnesses) witnesses[std::to_string(id)] = witness_json(witness);
  Json& definitions = json["unused_definitions"] = Json::array();
  for (const Definition& d : model.definitions) {
    definitions.push_back({{"variable", text_of(d.variable)}, {"place", place(d.place)}, {"executed", d.executed}, {"fate", d.fate}});
  }
  Json& violations = json["violations"] = Json::array();
  for (const Violation& v : model.violations) {
    violations.push_back({{"invariant", v.invariant}, {"variable", text_of(v.variable)}, {"use", place(v.use)}, {"def", place(v.def)},
                          {"learned", v.learned}, {"source", v.source}, {"run", v.run}, {"pair", v.pair ? Json("p" + std::to_string(v.pair)) : Json()},
                          {"suppressed", v.suppressed != Suppressed::No}});
  }
  Json& findings = json["findings"] = Json::array();
  for (const Finding& f : model.findings) {
    findings.push_back({{"id", f.name}, {"kind", text_of(f.kind)}, {"message", text_of(f.message)}, {"place", place(f.place)},
                        {"thread", text_of(f.thread)}, {"run", f.run}, {"fingerprint", f.fingerprint}});
  }
  Json& runs = json["runs"] = Json::array();
  for (const Run& r : model.runs) {
    runs.push_back({{"id", r.name}, {"program", text_of(r.program)}, {"recorder", r.recorder}, {"mode", r.mode}, {"argv", text_of(r.argv)},
                    {"inputs", text_of(r.inputs)}, {"outcome", r.outcome}, {"exit_code", r.exit_code}, {"events", r.events}, {"pairs", r.pairs},
                    {"analysed", r.analysed}, {"commit", text_of(r.commit)}});
  }
  Json& notes = json["notes"] = Json::array();
  for (const std::string& note : model.notes) notes.push_back(text_of(note));
  if (change) json["change"] = change_json(model, *change);
  if (with_sources) {
    Json& sources = json["sources"] = Json::object();
    for (const auto& [path, text] : model.sources) sources[text_of(path)] = text_of(text);
  }
  return json;
}

std::string json(const Model& model, const Change* change) { return to_json(model, change, false).dump(1) + "\n"; }

}  // namespace stem::report
