#include "explorer/points.h"

#include <algorithm>
#include <map>

namespace stem::explorer {

using trace::Event;
using trace::Kind;

namespace {

// Which reads could have taken their value from another thread.
class SharedReads {
 public:
  explicit SharedReads(const trace::Trace& trace) : trace_(trace), known_(trace.exprs.size(), 0) {
    for (const Event& e : trace.events)
      if (e.kind == Kind::Write || e.kind == Kind::Rmw) writers_[e.addr].insert(e.thread);
  }

  bool in(trace::ExprId expr) {
    if (!expr || known_[expr]) return known_[expr] == 2;
    known_[expr] = 1;
    const trace::Expr& e = trace_.exprs[expr];
    bool shared = false;
    if (e.op == trace::Op::Read && e.value < trace_.events.size()) {
      const Event& read = trace_.events[e.value];
      if (const auto at = writers_.find(read.addr); at != writers_.end())
        shared = at->second.size() > 1 || !at->second.contains(read.thread);
    }
    for (trace::ExprId part : {e.a, e.b, e.c}) shared = (part && part < expr && in(part)) || shared;
    if (shared) known_[expr] = 2;
    return shared;
  }

 private:
  const trace::Trace& trace_;
  std::vector<uint8_t> known_;  // 0 not yet, 1 no, 2 yes
  std::unordered_map<uint64_t, std::set<trace::ThreadId>> writers_;
};

}  // namespace

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
  std::set<trace::ThreadId> ended;
  for (const Event& e : trace.events)
    if (e.kind == Kind::End) ended.insert(e.thread);
  for (trace::ThreadId t = 1; t < trace.threads.size(); ++t) out.cut |= !ended.contains(t);
  out.cut |= trace.outcome != trace::Outcome::Exited;
  SharedReads reads(trace);
  std::map<trace::ThreadId, uint32_t> assertion;  // the last event of the thread, if it was one
  std::map<trace::ThreadId, uint32_t> position;   // in its path
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    const uint64_t key = trace.sites[e.site].key;
    if (e.site)
      if (const uint32_t site = known.site(key); site != trace::kNone) out.sites.insert(site);
    const auto last = assertion.find(e.thread);
    const uint32_t asserted = last == assertion.end() ? trace::kNone : last->second;
    assertion[e.thread] = e.kind == Kind::Assert && e.expr ? i : trace::kNone;
    if (e.kind == Kind::Assert || e.kind == Kind::Exit) continue;
    const uint32_t at = position[e.thread]++;
    if (e.kind == Kind::Branch)
      if (const auto outcome = known.outcome(key, e.value)) out.outcomes.insert(*outcome);
    if (!e.expr || (e.kind != Kind::Branch && e.kind != Kind::Pin)) continue;
    Point point;
    point.event = point.decision = i;
    point.kind = e.kind;
    if (e.kind == Kind::Branch && asserted != trace::kNone && trace.events[asserted].expr == e.expr) {
      point.event = asserted;
      point.kind = Kind::Assert;
    } else if (e.kind == Kind::Branch && !wanted.contains(i)) {
      continue;
    }
    point.thread = trace.threads[e.thread].path;
    point.position = at;
    point.before = at ? out.paths.threads.at(point.thread).rolling[at - 1] : std::hash<std::string>{}(point.thread);
    point.site = key;
    point.value = e.value;
    point.binary = trace.exprs[e.expr].width == 1;
    point.shared = reads.in(e.expr);
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
    std::copy_if(at->second.begin(), at->second.end(), std::back_inserter(out),
                 [&](const Way& way) { return way.value != point.value; });
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
