#include "explorer/happens_before.h"

#include <algorithm>

namespace stem::explorer {

using trace::Kind;

namespace {
constexpr uint64_t kAtomicSections = 1;  // the mutex behind all __VERIFIER_atomic sections; no object is at address 1
}

HappensBefore::Thread& HappensBefore::thread(uint32_t index) {
  if (index >= threads_.size()) threads_.resize(index + 1);
  Thread& t = threads_[index];
  if (t.must.size() <= index) {
    t.must.resize(index + 1);
    t.locked.resize(index + 1);
    t.must[index] = t.locked[index] = 1;
  }
  return t;
}

void HappensBefore::join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void HappensBefore::release(Pair& into, uint32_t index) {
  Thread& t = thread(index);
  join(into.must, t.must);
  join(into.locked, t.locked);
  ++t.must[index];
  ++t.locked[index];
}

void HappensBefore::acquire(const Pair& from, uint32_t index) {
  Thread& t = thread(index);
  join(t.must, from.must);
  join(t.locked, from.locked);
}

void HappensBefore::intern(Thread& t) {
  std::vector<uint64_t> sorted = t.held;
  std::sort(sorted.begin(), sorted.end());
  const auto [at, fresh] = lock_sets_.try_emplace(sorted, static_cast<uint32_t>(lock_set_list_.size()));
  if (fresh) lock_set_list_.push_back(sorted);
  t.locks = at->second;
}

void HappensBefore::take(uint32_t index, uint64_t lock) {
  Thread& t = thread(index);
  const auto found = mutexes_.find(lock);
  if (found != mutexes_.end()) join(t.locked, found->second);
  if (std::find(t.held.begin(), t.held.end(), lock) == t.held.end()) t.held.push_back(lock);
  intern(t);
}

void HappensBefore::drop(uint32_t index, uint64_t lock) {
  Thread& t = thread(index);
  join(mutexes_[lock], t.locked);
  ++t.locked[index];
  std::erase(t.held, lock);
  intern(t);
}

void HappensBefore::event(const trace::Event& e) {
  const uint32_t me = e.thread;
  switch (e.kind) {
    case Kind::Create: {
      const auto child = static_cast<uint32_t>(e.value);
      thread(std::max(child, me));
      Pair now;
      release(now, me);
      acquire(now, child);
      break;
    }
    case Kind::Join: {
      const auto child = static_cast<uint32_t>(e.value);
      thread(std::max(child, me));
      acquire({thread(child).must, thread(child).locked}, me);
      break;
    }
    case Kind::Lock:
    case Kind::RdLock:
    case Kind::WrLock:
      take(me, e.addr);
      break;
    case Kind::Unlock:
      if (e.value == 0) drop(me, e.addr);
      break;
    case Kind::RwUnlock:
      drop(me, e.addr);
      break;
    case Kind::Wait:
      drop(me, e.value);
      break;
    case Kind::Signal:
    case Kind::Broadcast: {
      Pair now;
      release(now, me);
      signals_[{e.addr, me}] = now;
      break;
    }
    case Kind::Wake: {
      const auto found = signals_.find({e.addr, e.value - 1});
      if (e.value && found != signals_.end()) acquire(found->second, me);
      break;
    }
    case Kind::SemPost:
    case Kind::OnceEnd:
      release(objects_[e.addr], me);
      break;
    case Kind::SemWait:
    case Kind::OncePass:
      acquire(objects_[e.addr], me);
      break;
    case Kind::BarrierArrive:
      release(barriers_[{e.addr, e.value}], me);
      break;
    case Kind::BarrierLeave:
      acquire(barriers_[{e.addr, e.value}], me);
      break;
    case Kind::AtomicBegin:
      take(me, kAtomicSections);
      break;
    case Kind::AtomicEnd:
      drop(me, kAtomicSections);
      break;
    case Kind::Start:
    case Kind::End:
    case Kind::Detach:
    case Kind::Yield:
    case Kind::Read:
    case Kind::Write:
    case Kind::Rmw:
    case Kind::External:
    case Kind::Alloc:
    case Kind::Free:
    case Kind::LockFail:
    case Kind::RdLockFail:
    case Kind::WrLockFail:
    case Kind::SemInit:
    case Kind::SemFail:
    case Kind::BarrierInit:
    case Kind::OnceBegin:
    case Kind::Branch:
    case Kind::Pin:
    case Kind::Assert:
    case Kind::Input:
    case Kind::Nondet:
    case Kind::SignalIn:
    case Kind::SignalOut:
    case Kind::Fork:
    case Kind::Fault:
    case Kind::Exit:
      break;
  }
}

void HappensBefore::atomic_write(const trace::Event& e) { release(objects_[e.addr], e.thread); }
void HappensBefore::atomic_read(const trace::Event& e) {
  const auto found = objects_.find(e.addr);
  if (found != objects_.end()) acquire(found->second, e.thread);
}

HappensBefore::Access HappensBefore::access(const trace::Event& e) {
  const Thread& t = thread(e.thread);
  return {e.thread, t.must[e.thread], t.locked[e.thread], t.locks,
          e.kind == Kind::Rmw || (e.flags & trace::kAtomic) != 0};
}

bool HappensBefore::common(uint32_t a, uint32_t b) {
  if (a == 0 || b == 0) return false;
  const auto [at, fresh] = common_.try_emplace(uint64_t{a} << 32 | b, false);
  if (fresh) {
    std::vector<uint64_t> both;
    std::set_intersection(lock_set_list_[a].begin(), lock_set_list_[a].end(), lock_set_list_[b].begin(),
                          lock_set_list_[b].end(), std::back_inserter(both));
    at->second = !both.empty();
  }
  return at->second;
}

db::Relation HappensBefore::relation(const Access& write, const Access& read) {
  if (write.thread == read.thread) return db::Relation::SameThread;
  const Thread& t = thread(read.thread);
  if (write.atomic && read.atomic) return db::Relation::Atomic;
  if (write.thread < t.must.size() && write.epoch <= t.must[write.thread]) return db::Relation::Ordered;
  if (common(write.locks, read.locks)) return db::Relation::CommonLock;
  if (write.thread < t.locked.size() && write.lock_epoch <= t.locked[write.thread]) return db::Relation::OrderedByLocks;
  return db::Relation::Race;
}

}  // namespace stem::explorer
