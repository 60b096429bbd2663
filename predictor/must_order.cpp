#include "predictor/must_order.h"

#include <algorithm>

namespace stem::predictor {

MustOrder::MustOrder(const Model& model) : model_(model) {
  find_clocks();
  find_locks();
}

void MustOrder::find_clocks() {
  const size_t n = model_.trace.events.size();
  clock_of_.resize(n);
  clocks_.assign(model_.threads, 0);  // clock 0: nothing is known
  std::vector<uint32_t> current(model_.threads, 0);
  std::vector<uint32_t> merged(model_.threads);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t t = model_.trace.events[i].thread;
    const auto needs = model_.needs(i);
    if (!needs.empty()) {
      std::copy_n(clocks_.begin() + size_t{current[t]} * model_.threads, model_.threads, merged.begin());
      bool changed = false;
      for (const auto& [a, unused] : needs) {
        const uint32_t ta = model_.trace.events[a].thread;
        const size_t ca = size_t{clock_of_[a]} * model_.threads;
        for (uint32_t x = 0; x < model_.threads; ++x) {
          const uint32_t value = x == ta ? model_.position[a] + 1 : clocks_[ca + x];
          if (value > merged[x]) merged[x] = value, changed = true;
        }
      }
      if (changed) {
        current[t] = static_cast<uint32_t>(clocks_.size() / model_.threads);
        clocks_.insert(clocks_.end(), merged.begin(), merged.end());
      }
    }
    clock_of_[i] = current[t];
  }
}

uint32_t MustOrder::after(uint32_t e, uint32_t thread) const {
  const uint32_t own = model_.trace.events[e].thread;
  const auto& events = model_.events_of[thread];
  const auto it = std::partition_point(events.begin(), events.end(),
                                       [&](uint32_t other) { return known(other, own) <= model_.position[e]; });
  return static_cast<uint32_t>(it - events.begin());
}

void MustOrder::find_locks() {
  const size_t n = model_.trace.events.size();
  held_.assign(n, 0);
  shielded_.assign(n, 0);
  struct Thread {
    uint64_t held = 0;
    std::vector<uint32_t> open;  // exclusive sections of locks below 64
  };
  std::vector<Thread> threads(model_.threads);
  // The last write of an atom by each thread, as (atom, thread) pairs in the order of the model's chains.
  std::vector<std::vector<uint32_t>> last(model_.atoms.size());
  for (size_t a = 0; a < last.size(); ++a) last[a].assign(model_.write_chains(a).size(), kNoEvent);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t t = model_.trace.events[i].thread;
    Thread& thread = threads[t];
    if (const uint32_t id = model_.section_of[i]; id != trace::kNone) {
      const Section& s = model_.sections[id];
      if (s.lock < 64 && !s.shared) {
        if (s.acquire == i) thread.open.push_back(id), thread.held |= uint64_t{1} << s.lock;
        else std::erase(thread.open, id), thread.held &= ~(uint64_t{1} << s.lock);
      }
    }
    if (model_.atom_count[i] == 0) continue;
    held_[i] = thread.held;
    if (model_.atom_count[i] != 1) continue;
    const uint32_t atom = model_.first_atom[i];
    const auto& chains = model_.write_chains(atom);
    for (size_t c = 0; c < chains.size(); ++c) {
      if (chains[c].thread != t) continue;
      const uint32_t before = last[atom][c];
      if (model_.is_read(i) && before != kNoEvent && model_.trace.events[i].kind == trace::Kind::Read)
        for (uint32_t id : thread.open)
          if (model_.sections[id].acquire < before) shielded_[i] |= uint64_t{1} << model_.sections[id].lock;
      if (model_.is_write(i)) {
        if (before != kNoEvent && model_.atom_count[before] == 1 && model_.trace.events[before].kind != trace::Kind::Rmw)
          for (uint32_t id : thread.open)
            if (model_.sections[id].acquire < before) shielded_[before] |= uint64_t{1} << model_.sections[id].lock;
        last[atom][c] = i;
      }
    }
  }
}

}  // namespace stem::predictor
