#include "predictor/survey.h"

#include <algorithm>

namespace stem::predictor {

using trace::Event;
using trace::Kind;

void Survey::event(uint64_t number, const Event& e) {
  lives_.event(e, [&](uint32_t object) {
    const auto it = memory_.find(object);
    if (it == memory_.end()) return;
    add_up(it->second);
    memory_.erase(it);
  });
  const bool reads = e.kind == Kind::Read || e.kind == Kind::Rmw;
  const bool writes = e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External;
  if (!(reads || writes) || !e.size) return;
  ++accesses;
  Memory& memory = memory_[e.object];
  Cell& cell = memory.cells[{e.addr, e.size}];
  cell.tainted |= e.flags & trace::kTainted || e.kind == Kind::External;
  if (reads) read(number, e, memory, cell);
  if (writes) write(number, e, memory, cell);
}

// Recent writes meet a new read, recent reads a new write: as Candidates does.
void Survey::read(uint64_t number, const Event& e, Memory& memory, Cell& cell) {
  auto use = std::find_if(cell.uses.begin(), cell.uses.end(),
                          [&](const Use& u) { return u.site == e.site && u.variable == e.variable; });
  if (use == cell.uses.end()) use = cell.uses.insert(cell.uses.end(), {e.site, e.variable, e.thread, 0, 0});
  ++use->count;
  use->own += e.kind == Kind::Rmw;
  Sites sources{};
  unsigned count = 0;
  for (unsigned k = 0; k < e.size; ++k) {
    const auto it = memory.last.find((e.addr + k) / 8);
    const trace::SiteId source = it == memory.last.end() ? 0 : it->second[(e.addr + k) % 8];
    if (std::find(sources.begin(), sources.begin() + count, source) != sources.begin() + count) continue;
    sources[count++] = source;
    ++pairs[{source ? source - 1 : trace::kNone, e.site, e.variable}].observed;
  }
  offer({trace::kNone, e.site, e.variable}, number, number);
  for (uint32_t i = 0; i < std::min<uint32_t>(cell.written, kRecent); ++i)
    offer({cell.writes[i].site, e.site, e.variable}, cell.writes[i].number, number);
  cell.reads[cell.read++ % kRecent] = {number, e.site, e.variable, e.thread};
}

void Survey::write(uint64_t number, const Event& e, Memory& memory, Cell& cell) {
  auto def = std::find_if(cell.defs.begin(), cell.defs.end(), [&](const Def& d) { return d.site == e.site; });
  if (def == cell.defs.end()) def = cell.defs.insert(cell.defs.end(), {e.site, e.thread, 0});
  ++def->count;
  for (uint32_t i = 0; i < std::min<uint32_t>(cell.read, kRecent); ++i)
    if (cell.reads[i].thread != e.thread)
      offer({e.site, cell.reads[i].site, cell.reads[i].variable}, number, cell.reads[i].number);
  cell.writes[cell.written++ % kRecent] = {number, e.site, 0, e.thread};
  for (unsigned k = 0; k < e.size; ++k) memory.last[(e.addr + k) / 8][(e.addr + k) % 8] = e.site + 1;
}

void Survey::offer(const PairName& name, uint64_t write, uint64_t read) {
  SurveyedPair& pair = pairs[name];
  if (!pair.observed && pair.kept.size() < keep_) pair.kept.emplace_back(write, read);
}

void Survey::meet(const Cell& writes, const Cell& reads, bool same) {
  for (const Def& d : writes.defs)
    for (const Use& u : reads.uses) {
      SurveyedPair& pair = pairs[{d.site, u.site, u.variable}];
      if (!pair.instances) pair.def_thread = d.thread, pair.use_thread = u.thread;
      const uint64_t own = same && d.site == u.site ? std::min(u.own, d.count * u.count) : 0;
      pair.instances += d.count * u.count - own;
      pair.tainted |= writes.tainted || reads.tainted;
    }
}

void Survey::add_up(const Memory& memory) {
  pieces += memory.cells.size();
  for (auto a = memory.cells.begin(); a != memory.cells.end(); ++a) {
    for (const Use& u : a->second.uses) {
      SurveyedPair& pair = pairs[{trace::kNone, u.site, u.variable}];
      pair.instances += u.count;
      pair.use_thread = u.thread;
      pair.tainted |= a->second.tainted;
    }
    meet(a->second, a->second, true);
    for (auto b = std::next(a); b != memory.cells.end() && b->first.first < a->first.first + a->first.second; ++b) {
      meet(a->second, b->second, false);
      meet(b->second, a->second, false);
    }
  }
}

void Survey::finish() {
  for (const auto& [object, memory] : memory_) add_up(memory);
  memory_.clear();
}

}  // namespace stem::predictor
