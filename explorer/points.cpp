#include "explorer/points.h"

#include <algorithm>
#include <map>

namespace stem::explorer {

using trace::Event;
using trace::Kind;

RunPoints points_of(const trace::Trace& trace, const Knowledge& known, uint32_t most) {
  RunPoints out;
  out.paths = paths_of(trace);
  std::vector<uint32_t> asked = predictor::branches_of(trace, UINT32_MAX);
  if (asked.size() > 16 * most) {
    const size_t all = asked.size();
    asked = predictor::branches_of(trace, most);
    out.left_out = asked.size() < all;
  }
  const std::set<uint32_t> wanted(asked.begin(), asked.end());
  std::map<trace::ThreadId, uint32_t> position;
  std::map<trace::ThreadId, trace::ExprId> asserted;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    const uint32_t at = position[e.thread]++;
    const uint64_t key = trace.sites[e.site].key;
    if (e.site)
      if (const uint32_t site = known.site(key); site != trace::kNone) out.sites.insert(site);
    if (e.kind == Kind::Branch)
      if (const auto outcome = known.outcome(key, e.value)) out.outcomes.insert(*outcome);
    const trace::ExprId assertion = asserted[e.thread];
    asserted[e.thread] = e.kind == Kind::Assert ? e.expr : 0;
    if (!e.expr || (e.kind != Kind::Branch && e.kind != Kind::Assert && e.kind != Kind::Pin)) continue;
    if (e.kind == Kind::Branch && (!wanted.contains(i) || assertion == e.expr)) continue;  // the assertion asks for both
    const std::string& thread = trace.threads[e.thread].path;
    const ThreadPath& path = out.paths.threads.at(thread);
    Point point;
    point.event = i;
    point.kind = e.kind;
    point.thread = thread;
    point.position = at;
    point.before = at ? path.rolling[at - 1] : std::hash<std::string>{}(thread);
    point.site = key;
    point.value = e.value;
    point.binary = e.kind == Kind::Assert || trace.exprs[e.expr].width == 1;
    out.points.push_back(std::move(point));
  }
  return out;
}

void Taken::add(size_t run, const RunPoints& points) {
  for (const Point& point : points.points) {
    ways_[key(point.before, point.site)].push_back({run, point.value});
    outcomes_.insert({point.site, point.value});
    values_[point.site].insert(point.value);
  }
}

std::vector<Taken::Way> Taken::others(const Point& point) const {
  std::vector<Way> out;
  if (const auto at = ways_.find(key(point.before, point.site)); at != ways_.end())
    std::copy_if(at->second.begin(), at->second.end(), std::back_inserter(out), [&](const Way& way) { return way.value != point.value; });
  return out;
}

bool Taken::other_seen(const Point& point) const {
  const auto at = values_.find(point.site);
  return at != values_.end() && (at->second.size() > 1 || !at->second.contains(point.value));
}

NextWish next_wish(const std::vector<RunPoints>& runs, const Taken& taken, const RunPoints& run, const Point& point) {
  NextWish next;
  const std::vector<Taken::Way> ways = taken.others(point);
  if (ways.empty()) return next;  // anything else
  next.deep = true;
  if (!point.binary) {
    for (const Taken::Way& way : ways) next.wish.avoid.push_back(way.value);
    std::sort(next.wish.avoid.begin(), next.wish.avoid.end());
    next.wish.avoid.erase(std::unique(next.wish.avoid.begin(), next.wish.avoid.end()), next.wish.avoid.end());
    return next;
  }
  for (const Taken::Way& way : ways) {
    std::vector<uint32_t> further;  // of each other thread the first event that the two runs do not share
    for (const auto& [thread, path] : run.paths.threads) {
      if (thread == point.thread) continue;
      const auto other = runs[way.run].paths.threads.find(thread);
      const size_t common = other == runs[way.run].paths.threads.end() ? 0 : common_prefix(path, other->second);
      if (common < path.events.size()) further.push_back(path.events[common]);
    }
    if (further.empty()) {
      next.none = true;
      return next;
    }
    next.wish.some_before.push_back(std::move(further));
  }
  return next;
}

}  // namespace stem::explorer
