#include "predictor/candidates.h"

#include <algorithm>
#include <array>

namespace stem::predictor {

using trace::Event;

Candidates::Candidates(const Model& model, uint32_t limit) : model_(model) {
  classify();
  count();
  keep(limit);
}

void Candidates::classify() {
  const auto& events = model_.trace.events;
  def_class_.assign(events.size(), 0);
  use_class_.assign(events.size(), trace::kNone);
  std::unordered_map<uint32_t, uint32_t> defs;
  std::unordered_map<uint64_t, uint32_t> uses;
  for (uint32_t i = 0; i < events.size(); ++i) {
    if (!model_.atom_count[i]) continue;
    if (model_.is_write(i)) {
      auto [it, fresh] = defs.try_emplace(events[i].site, defs_);
      if (fresh) ++defs_;
      def_class_[i] = it->second;
    }
    if (model_.is_read(i)) {
      auto [it, fresh] = uses.try_emplace(uint64_t{events[i].site} << 32 | events[i].variable, uses_);
      if (fresh) ++uses_, reads_of_use_.emplace_back(), by_use_.emplace_back();
      use_class_[i] = it->second;
      reads_of_use_[it->second].push_back(i);
    }
  }
}

void Candidates::count() {
  const auto& events = model_.trace.events;
  groups_.resize(model_.atoms.size());
  struct Count {
    uint32_t klass, first;
    uint64_t n;
  };
  std::vector<std::vector<Count>> reads(model_.atoms.size());
  std::unordered_map<uint64_t, uint64_t> self;  // a read-modify-write does not take its own value
  for (uint32_t i = 0; i < events.size(); ++i) {
    for (unsigned k = 0; k < model_.atom_count[i]; ++k) {
      const uint32_t atom = model_.first_atom[i] + k;
      if (model_.is_read(i)) {
        auto& list = reads[atom];
        auto it = std::find_if(list.begin(), list.end(), [&](const Count& c) { return c.klass == use_class_[i]; });
        if (it == list.end()) list.push_back({use_class_[i], i, 1});
        else ++it->n;
        if (model_.is_write(i)) ++self[uint64_t{def_class_[i]} << 32 | use_class_[i]];
      }
      if (model_.is_write(i)) {
        auto& list = groups_[atom];
        auto it = std::find_if(list.begin(), list.end(),
                               [&](const Group& g) { return g.def_class == def_class_[i] && g.thread == events[i].thread; });
        if (it == list.end()) it = list.insert(list.end(), {def_class_[i], events[i].thread, {}});
        it->positions.push_back(model_.position[i]);
      }
    }
  }
  auto pair = [&](uint32_t def, uint32_t use, uint32_t w, uint32_t r, bool tainted) -> StaticPair& {
    auto [it, fresh] = ids_.try_emplace(uint64_t{def} << 32 | use, static_cast<uint32_t>(pairs.size()));
    if (fresh) {
      StaticPair p;
      p.def = w == kFromStart ? trace::kNone : events[w].site;
      p.use = events[r].site;
      p.variable = events[r].variable;
      p.example = {w, r};
      by_use_[use].push_back(it->second);
      pairs.push_back(p);
    }
    pairs[it->second].tainted |= tainted;
    return pairs[it->second];
  };
  for (uint32_t atom = 0; atom < model_.atoms.size(); ++atom) {
    const bool tainted = model_.atoms[atom].tainted;
    for (const Count& c : reads[atom]) {
      pair(0, c.klass, kFromStart, c.first, tainted).instances += c.n;
      for (const Group& g : groups_[atom])
        pair(g.def_class, c.klass, model_.events_of[g.thread][g.positions.front()], c.first, tainted).instances +=
            c.n * g.positions.size();
    }
  }
  for (const auto& [key, n] : self) {
    const auto it = ids_.find(key);
    if (it != ids_.end()) pairs[it->second].instances -= std::min(pairs[it->second].instances, n);
  }
  for (uint32_t i = 0; i < events.size(); ++i)
    if (model_.is_read(i))
      for (unsigned k = 0; k < model_.atom_count[i]; ++k) {
        const uint32_t w = model_.sources[model_.sources_at[i] + k];
        StaticPair& p = pairs[find(w, i)];
        if (p.observed++ == 0) p.example = {w, i};
      }
}

// Recent writes meet a new read, recent reads a new write.
void Candidates::keep(uint32_t limit) {
  constexpr size_t kRecent = 8;
  struct Recent {
    std::array<uint32_t, kRecent> writes, reads;
    uint32_t written = 0, read = 0;
  };
  const auto& events = model_.trace.events;
  std::vector<Recent> recent(model_.atoms.size());
  auto offer = [&](uint32_t w, uint32_t r) {
    const uint32_t id = find(w, r);
    if (id == trace::kNone) return;
    StaticPair& p = pairs[id];
    if (p.observed || p.tainted || p.kept.size() >= limit) return;
    if (p.kept.empty()) p.example = {w, r};
    if (p.kept.empty() || p.kept.back() != EventPair{w, r}) p.kept.push_back({w, r});
  };
  for (uint32_t i = 0; i < events.size(); ++i)
    for (unsigned k = 0; k < model_.atom_count[i]; ++k) {
      Recent& a = recent[model_.first_atom[i] + k];
      if (model_.is_read(i)) {
        offer(kFromStart, i);
        for (uint32_t j = 0; j < std::min<uint32_t>(a.written, kRecent); ++j) offer(a.writes[j], i);
      }
      if (model_.is_write(i)) {
        for (uint32_t j = 0; j < std::min<uint32_t>(a.read, kRecent); ++j)
          if (events[a.reads[j]].thread != events[i].thread) offer(i, a.reads[j]);
        a.writes[a.written++ % kRecent] = i;
      }
      if (model_.is_read(i)) a.reads[a.read++ % kRecent] = i;
    }
}

void Candidates::summarise(const MustOrder& order) {
  for (auto& groups : groups_)
    for (Group& g : groups)
      for (uint32_t position : g.positions) {
        const uint32_t w = model_.events_of[g.thread][position];
        g.held &= order.held(w);
        g.shielded &= order.shielded(w);
      }
}

// --- refutation of all instances at once ----------------------------------------------------------------------------

bool Candidates::refuted(uint32_t id, const MustOrder& order) const {
  const StaticPair& pair = pairs[id];
  for (uint32_t r : reads_of_use_[use_class_[pair.example.read]])
    for (unsigned k = 0; k < model_.atom_count[r]; ++k)
      if (!refuted_read(pair, r, model_.first_atom[r] + k, order)) return false;
  return true;
}

// The last write of the thread that must come before r; kNoEvent if none must.
uint32_t Candidates::last_before(uint32_t r, const Chain& chain, const MustOrder& order) const {
  const uint32_t own = model_.trace.events[r].thread;
  const uint32_t known = chain.thread == own ? model_.position[r] : order.known(r, chain.thread);
  auto it = std::lower_bound(chain.positions.begin(), chain.positions.end(), known);
  return it == chain.positions.begin() ? kNoEvent : model_.events_of[chain.thread][*(it - 1)];
}

bool Candidates::refuted_read(const StaticPair& pair, uint32_t r, uint32_t atom, const MustOrder& order) const {
  const auto& chains = model_.write_chains(atom);
  const uint32_t own = model_.trace.events[r].thread;
  if (pair.def == trace::kNone) {
    for (const Chain& c : chains)
      if (last_before(r, c, order) != kNoEvent) return true;
    return false;
  }
  const uint32_t def = def_class_[pair.example.write];
  for (const Group& g : groups_[atom]) {
    if (g.def_class != def) continue;
    const auto chain = std::find_if(chains.begin(), chains.end(), [&](const Chain& c) { return c.thread == g.thread; });
    // The last one that must come before r is the only one of those that r could take, unless another must hide it.
    const uint32_t last = last_before(r, *chain, order);
    if (last != kNoEvent && last != r && def_class_[last] == def) {
      bool hidden = false;
      for (const Chain& c : chains) {
        const uint32_t other = c.thread == g.thread ? kNoEvent : last_before(r, c, order);
        hidden |= other != kNoEvent && order.before(last, other);
      }
      if (!hidden && !(g.thread != own && (order.held(last) & order.shielded(r) || order.shielded(last) & order.held(r))))
        return false;
    }
    if (g.thread == own || g.held & order.shielded(r) || g.shielded & order.held(r)) continue;
    // Those that may come before or after it.
    const uint32_t from = order.known(r, g.thread), upto = order.after(r, g.thread);
    for (auto it = std::lower_bound(g.positions.begin(), g.positions.end(), from); it != g.positions.end() && *it < upto; ++it) {
      const uint32_t w = model_.events_of[g.thread][*it];
      if (!(order.held(w) & order.shielded(r)) && !(order.shielded(w) & order.held(r))) return false;
    }
  }
  return true;
}

}  // namespace stem::predictor
