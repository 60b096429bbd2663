#include "oracle/rule.h"

#include <fmt/format.h>

#include "oracle/harness.h"
#include "oracle/subjects.h"

namespace stem::oracle {

namespace {

std::string text(const trace::Trace& trace, const EventPair& pair) {
  const auto at = [&](uint32_t e) {
    if (e == predictor::kInitial) return std::string("initial");
    const trace::Event& event = trace.events.at(e);
    return fmt::format("@{} line {} of {}", e, trace.sites.at(event.site).line, trace.threads.at(event.thread).path);
  };
  return fmt::format("({}, {})", at(pair.write), at(pair.read));
}

}  // namespace

Rule check_rule(const Program& program, const trace::Trace& recorded, size_t limit) {
  Rule rule;
  const Followed followed = follow(program, recorded);
  rule.wrong = followed.wrong;
  if (!rule.wrong.empty()) return rule;
  InputVector given;
  for (const trace::Input& input : followed.trace.inputs) given.push_back(input.bytes);
  const auto allowed = enumerate(recorded, {given}, limit);
  const auto meant = enumerate(followed.trace, {given}, limit);
  rule.skipped = !allowed || !meant;
  if (rule.skipped) return rule;

  const auto is_ours = [&](const EventPair& pair) {
    return followed.events.count(pair.read) && (pair.write == predictor::kInitial || followed.events.count(pair.write)) &&
           !on_tainted_object(followed.trace, {predictor::kInitial, followed.events.at(pair.read)});
  };
  for (const EventPair& pair : observed_pairs(recorded)) rule.observed += is_ours(pair);
  for (const EventPair& pair : allowed->prefix) {
    if (!is_ours(pair)) continue;
    ++rule.allowed;
    const EventPair same{pair.write == predictor::kInitial ? pair.write : followed.events.at(pair.write), followed.events.at(pair.read)};
    if (!meant->prefix.count(same)) rule.wrong += " the program excludes " + text(recorded, pair);
  }
  for (const EventPair& pair : meant->prefix) rule.meant += !on_tainted_object(followed.trace, pair);

  std::set<EventPair> found;
  for (const Subject& subject : subjects())
    if (subject.name == "engine") found = subject.predict(recorded, Meaning::Prefix);
  for (const EventPair& pair : allowed->prefix)
    if (!found.count(pair) && !on_tainted_object(recorded, pair)) rule.wrong += " missing " + text(recorded, pair);
  for (const EventPair& pair : found)
    if (!allowed->prefix.count(pair) && !on_tainted_object(recorded, pair)) rule.wrong += " extra " + text(recorded, pair);
  return rule;
}

}  // namespace stem::oracle
