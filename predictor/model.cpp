// Preparing a trace: threads, atoms, recorded flows. Synchronisation is in model_sync.cpp.
#include "predictor/model.h"

#include <algorithm>

#include "trace/eval.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;

Model::Model(const trace::Trace& t) : trace(t) {
  index_threads();
  cut_atoms();
  find_sources();
  find_sections();
  find_edges();
  find_semaphores();
  recorded = trace::recorded_values(trace);
}

void Model::index_threads() {
  threads = static_cast<uint32_t>(trace.threads.size());
  for (const Event& e : trace.events) threads = std::max(threads, e.thread + 1);
  events_of.resize(threads);
  position.resize(trace.events.size());
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    auto& list = events_of[trace.events[i].thread];
    position[i] = static_cast<uint32_t>(list.size());
    list.push_back(i);
  }
}

bool Model::is_constraint(uint32_t event) const {
  const Event& e = trace.events[event];
  switch (e.kind) {
    case Kind::Branch:
    case Kind::Pin:
    case Kind::Assert: return e.expr != 0;
    case Kind::Read:
    case Kind::Rmw: return e.flags & trace::kPinned;
    default: return false;
  }
}

namespace {

struct Place {
  uint32_t object;
  uint64_t addr;
  bool operator==(const Place&) const = default;
};
struct Footprint {
  uint32_t object;
  uint64_t addr;
  uint8_t size;
  bool operator==(const Footprint&) const = default;
};
struct Hash {
  size_t operator()(const Footprint& f) const {
    return (f.addr * 0x9e3779b97f4a7c15ull) ^ (uint64_t{f.object} << 20) ^ f.size;
  }
  size_t operator()(const Place& p) const { return (p.addr * 0x9e3779b97f4a7c15ull) ^ (uint64_t{p.object} << 20); }
};

bool is_access(Kind kind) {
  return kind == Kind::Read || kind == Kind::Write || kind == Kind::Rmw || kind == Kind::External;
}

}  // namespace

void Model::cut_atoms() {
  // Every distinct footprint contributes its two ends as cuts; atoms are what lies between two cuts and is accessed.
  std::unordered_map<Footprint, std::pair<uint32_t, uint8_t>, Hash> footprints;
  for (const Event& e : trace.events)
    if (is_access(e.kind) && e.size) footprints.try_emplace({e.object, e.addr, e.size});
  std::vector<Footprint> sorted;
  sorted.reserve(footprints.size());
  for (const auto& [f, unused] : footprints) sorted.push_back(f);
  std::sort(sorted.begin(), sorted.end(), [](const Footprint& a, const Footprint& b) {
    return std::tie(a.object, a.addr, a.size) < std::tie(b.object, b.addr, b.size);
  });
  for (size_t i = 0; i < sorted.size();) {
    // One run of overlapping footprints of one object.
    size_t j = i;
    uint64_t end = sorted[i].addr + sorted[i].size;
    std::vector<uint64_t> cuts;
    for (; j < sorted.size() && sorted[j].object == sorted[i].object && (j == i || sorted[j].addr < end); ++j) {
      end = std::max(end, sorted[j].addr + sorted[j].size);
      cuts.push_back(sorted[j].addr);
      cuts.push_back(sorted[j].addr + sorted[j].size);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const auto base = static_cast<uint32_t>(atoms.size());
    for (size_t k = 0; k + 1 < cuts.size(); ++k) {
      Atom atom;
      atom.object = sorted[i].object;
      atom.addr = cuts[k];
      atom.size = static_cast<uint8_t>(cuts[k + 1] - cuts[k]);
      if (atom.object < trace.objects.size()) {
        const trace::Object& o = trace.objects[atom.object];
        const uint64_t offset = atom.addr - o.base;
        if (!o.initial.empty() && atom.addr >= o.base && offset + atom.size <= o.initial.size()) {
          atom.known = true;
          for (unsigned b = 0; b < atom.size; ++b) atom.initial |= uint64_t{o.initial[offset + b]} << (8 * b);
        } else if (o.zeroed) {
          atom.known = true;
        }
      }
      atoms.push_back(atom);
    }
    for (size_t k = i; k < j; ++k) {
      const auto lo = std::lower_bound(cuts.begin(), cuts.end(), sorted[k].addr) - cuts.begin();
      const auto hi = std::lower_bound(cuts.begin(), cuts.end(), sorted[k].addr + sorted[k].size) - cuts.begin();
      footprints[sorted[k]] = {base + static_cast<uint32_t>(lo), static_cast<uint8_t>(hi - lo)};
    }
    i = j;
  }
  first_atom.assign(trace.events.size(), 0);
  atom_count.assign(trace.events.size(), 0);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (!is_access(e.kind) || !e.size) continue;
    std::tie(first_atom[i], atom_count[i]) = footprints[{e.object, e.addr, e.size}];
    if (e.flags & trace::kTainted || e.kind == Kind::External)
      for (unsigned k = 0; k < atom_count[i]; ++k) atoms[first_atom[i] + k].tainted = true;
  }
}

void Model::find_sources() {
  std::vector<uint32_t> last(atoms.size(), kFromStart);
  std::vector<uint32_t> count(atoms.size() + 1, 0);
  chains_.resize(atoms.size());
  sources_at.assign(trace.events.size(), 0);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    if (!atom_count[i]) continue;
    const Event& e = trace.events[i];
    if (is_read(i)) {
      sources_at[i] = static_cast<uint32_t>(sources.size());
      for (unsigned k = 0; k < atom_count[i]; ++k) {
        const uint32_t atom = first_atom[i] + k;
        sources.push_back(last[atom]);
        if (last[atom] == kFromStart && !atoms[atom].known) {
          atoms[atom].known = true;  // the recording read it before anything wrote it
          atoms[atom].initial = slice(i, atom, e.value);
        }
      }
    }
    if (is_write(i))
      for (unsigned k = 0; k < atom_count[i]; ++k) {
        const uint32_t atom = first_atom[i] + k;
        last[atom] = i;
        ++count[atom + 1];
        auto& chains = chains_[atom];
        auto it = std::find_if(chains.begin(), chains.end(), [&](const Chain& c) { return c.thread == e.thread; });
        if (it == chains.end()) it = chains.insert(chains.end(), {e.thread, {}});
        it->positions.push_back(position[i]);
      }
  }
  writes_at_ = count;
  for (size_t a = 1; a < writes_at_.size(); ++a) writes_at_[a] += writes_at_[a - 1];
  writes_.resize(writes_at_.back());
  std::vector<uint32_t> fill(writes_at_.begin(), writes_at_.end() - 1);
  for (uint32_t i = 0; i < trace.events.size(); ++i)
    if (atom_count[i] && is_write(i))
      for (unsigned k = 0; k < atom_count[i]; ++k) writes_[fill[first_atom[i] + k]++] = i;
}

uint32_t Model::last_write_before(uint32_t atom, uint32_t event) const {
  const auto writes = writes_of(atom);
  const auto it = std::lower_bound(writes.begin(), writes.end(), event);
  return it == writes.begin() ? kFromStart : *(it - 1);
}

}  // namespace stem::predictor
