// φpo, second part: mutexes, atomic sections, read-write locks.
//
// Two sections of one lock do not overlap: one is released before the other is acquired. PREFIX relaxes at acquisitions
// only (a section that is not entered before r excludes nothing); relaxing at releases would let two threads hold one lock.
// A failed attempt happens while some section is open.
#include <cerrno>

#include "encoder/formula.h"

namespace stem::encoder {

namespace {

constexpr Place kAtomicSection{trace::kNone - 1, 0};

bool busy(const Event& e) { return e.value == EBUSY || e.value == ETIMEDOUT; }

// "e happens while the section is open."
z3::expr during(Formula& f, const Section& s, uint32_t e) {
  return f.all({f.before(s.acquire, e), s.release ? f.before(e, *s.release) : f.z3.bool_val(true)});
}

void require_open_section(Formula& f, uint32_t failed, const std::vector<Section>& sections) {
  std::vector<z3::expr> options;
  for (const Section& s : sections) options.push_back(during(f, s, failed));
  f.require_if_executed(failed, f.any(options));
}

}  // namespace

void exclude(Formula& f, const Section& a, const Section& b) {
  if (f.event(a.acquire).thread == f.event(b.acquire).thread) return;
  std::vector<z3::expr> options;
  if (a.release) options.push_back(f.before(*a.release, b.acquire));
  if (b.release) options.push_back(f.before(*b.release, a.acquire));
  if (f.prefix) options.insert(options.end(), {f.not_executed(a.acquire), f.not_executed(b.acquire)});
  f.require(f.any(options));
}

std::map<Place, std::vector<Section>> mutex_sections(const Formula& f) {
  std::map<Place, std::vector<Section>> sections;
  for (const auto& thread : f.threads) {
    std::map<Place, size_t> open;  // position in sections
    std::map<uint64_t, Place> locked_at;  // a Wait names its mutex by address
    int nesting = 0;
    const auto acquire = [&](Place at, uint32_t e) {
      open[at] = sections[at].size();
      sections[at].push_back({e, std::nullopt});
    };
    const auto release = [&](Place at, uint32_t e) {
      auto it = open.find(at);
      if (it == open.end()) return;
      sections[at][it->second].release = e;
      open.erase(it);
    };
    for (uint32_t e : thread) {
      const Event& event = f.event(e);
      // The outermost one; after a wait, which gave back all levels at once, that may be any depth.
      if (event.kind == Kind::Lock && !open.count(place(event))) acquire(place(event), e), locked_at[event.addr] = place(event);
      if (event.kind == Kind::Unlock && event.value == 0) release(place(event), e);
      if (event.kind == Kind::Wait && locked_at.count(event.value)) release(locked_at[event.value], e);
      if (event.kind == Kind::AtomicBegin && nesting++ == 0) acquire(kAtomicSection, e);
      if (event.kind == Kind::AtomicEnd && --nesting == 0) release(kAtomicSection, e);
    }
  }
  return sections;
}

void add_mutexes(Formula& f) {
  const auto sections = mutex_sections(f);
  for (const auto& [mutex, all] : sections)
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = i + 1; j < all.size(); ++j) exclude(f, all[i], all[j]);
  for (uint32_t e : f.all_of({Kind::LockFail})) {
    auto it = sections.find(place(f.event(e)));
    if (busy(f.event(e))) require_open_section(f, e, it == sections.end() ? std::vector<Section>{} : it->second);
  }
}

void add_rwlocks(Formula& f) {
  std::map<Place, std::vector<Section>> reading, writing;
  for (const auto& thread : f.threads) {
    std::map<Place, std::vector<size_t>> open_reading;
    std::map<Place, size_t> open_writing;
    for (uint32_t e : thread) {
      const Event& event = f.event(e);
      const Place at = place(event);
      if (event.kind == Kind::RdLock) {
        open_reading[at].push_back(reading[at].size());
        reading[at].push_back({e, std::nullopt});
      } else if (event.kind == Kind::WrLock) {
        open_writing[at] = writing[at].size();
        writing[at].push_back({e, std::nullopt});
      } else if (event.kind == Kind::RwUnlock && open_writing.count(at)) {
        writing[at][open_writing[at]].release = e;
        open_writing.erase(at);
      } else if (event.kind == Kind::RwUnlock && !open_reading[at].empty()) {
        reading[at][open_reading[at].back()].release = e;
        open_reading[at].pop_back();
      }
    }
  }
  for (const auto& [lock, writers] : writing)
    for (size_t i = 0; i < writers.size(); ++i) {
      for (size_t j = i + 1; j < writers.size(); ++j) exclude(f, writers[i], writers[j]);
      for (const Section& reader : reading[lock]) exclude(f, writers[i], reader);
    }
  for (uint32_t e : f.all_of({Kind::RdLockFail, Kind::WrLockFail})) {
    if (!busy(f.event(e))) continue;
    std::vector<Section> holders = writing[place(f.event(e))];
    const std::vector<Section>& readers = reading[place(f.event(e))];
    if (f.event(e).kind == Kind::WrLockFail) holders.insert(holders.end(), readers.begin(), readers.end());
    require_open_section(f, e, holders);
  }
}

}  // namespace stem::encoder
