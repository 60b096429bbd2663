#include "predictor/prologue.h"

#include <algorithm>

namespace stem::predictor {

using trace::Event;
using trace::Kind;

Prologue::Slot Prologue::keep(const Event& event, uint32_t refs) {
  Slot slot = static_cast<Slot>(slots_.size());
  if (free_.empty())
    slots_.emplace_back();
  else
    slot = free_.back(), free_.pop_back();
  Kept& kept = slots_[slot];
  kept.item = {number_, event};
  kept.item.event.expr = kept.item.event.leaf = 0;
  kept.refs = refs;
  return slot;
}

void Prologue::drop(Slot slot) {
  if (slot != kNone && --slots_[slot].refs == 0) free_.push_back(slot);
}

void Prologue::drop(std::vector<Slot>& slots) {
  for (Slot slot : slots) drop(slot);
  slots.clear();
}

std::vector<Prologue::Item> Prologue::events() const {
  std::vector<Item> out;
  for (const Kept& kept : slots_)
    if (kept.refs) out.push_back(kept.item);
  // Several copies of one event differ in what they lock or read, and keep that order.
  std::sort(out.begin(), out.end(), [](const Item& a, const Item& b) {
    return std::tie(a.number, a.event.addr, a.event.value) < std::tie(b.number, b.event.addr, b.event.value);
  });
  return out;
}

void Prologue::add(uint64_t number, const Event& e) {
  number_ = number;
  lives_.event(e, [&](uint32_t object) { released(object); });
  const std::pair rw{e.thread, Place{e.object, e.addr}};
  switch (e.kind) {
    case Kind::Start:
    case Kind::End:
    case Kind::Create:
    case Kind::Join:
    case Kind::Detach:
      keep(e);
      break;
    case Kind::Read:
      read(e);
      break;
    case Kind::Write:
    case Kind::Rmw:
    case Kind::External:
      written(e);
      break;
    case Kind::Alloc:
      memory_[e.object].alloc = keep(e);
      break;
    case Kind::Lock:
    case Kind::Unlock:
      mutex(e);
      break;
    case Kind::RdLock:
    case Kind::WrLock:
      rwlocks_[rw].push_back(keep(e));
      break;
    case Kind::RwUnlock:
      if (auto& held = rwlocks_[rw]; !held.empty()) drop(held.back()), held.pop_back();
      if (rwlocks_[rw].empty()) rwlocks_.erase(rw);
      break;
    case Kind::AtomicBegin:
      atomics_[e.thread].push_back(keep(e));
      break;
    case Kind::AtomicEnd:
      if (auto& held = atomics_[e.thread]; !held.empty()) drop(held.back()), held.pop_back();
      break;
    case Kind::SignalIn:
      handlers_[e.thread].push_back(keep(e));
      break;
    case Kind::SignalOut:
      if (auto& open = handlers_[e.thread]; !open.empty()) drop(open.back()), open.pop_back();
      break;
    case Kind::Wait:
    case Kind::Wake:
    case Kind::Signal:
    case Kind::Broadcast:
      condition(e);
      break;
    case Kind::SemInit:
    case Kind::SemPost:
    case Kind::SemWait:
      semaphore(e);
      break;
    case Kind::BarrierInit:
    case Kind::BarrierArrive:
    case Kind::BarrierLeave:
      barrier(e);
      break;
    case Kind::OnceBegin:
      onces_[{e.object, e.addr}].push_back(keep(e));
      break;
    case Kind::OnceEnd:
      onces_[{e.object, e.addr}].push_back(keep(e));
      if (e.flags & trace::kTry) drop(onces_[{e.object, e.addr}]);  // the attempt did not count
      break;
    case Kind::LockFail:
    case Kind::RdLockFail:
    case Kind::WrLockFail:
    case Kind::SemFail:
    case Kind::OncePass:
    case Kind::Yield:
    case Kind::Branch:
    case Kind::Pin:
    case Kind::Assert:
    case Kind::Input:
    case Kind::Nondet:
    case Kind::Fork:
    case Kind::Fault:
    case Kind::Exit:
    case Kind::Free:
      break;
  }
}

// --- memory
// --------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::array<uint32_t, 8> kUntouched{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                             UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};

}  // namespace

void Prologue::written(const Event& e) {
  if (!e.size) return;
  Event write = e;
  if (e.kind == Kind::Rmw)
    write.kind = Kind::Write, write.value = e.value2, write.value2 = 0, write.flags |= trace::kAtomic;
  write.flags &= static_cast<uint16_t>(~trace::kPinned);
  const Slot slot = keep(write, e.size);
  auto& granules = memory_[e.object].granules;
  for (unsigned k = 0; k < e.size; ++k) {
    Slot& byte = granules.try_emplace((e.addr + k) / 8, kUntouched).first->second[(e.addr + k) % 8];
    drop(byte);
    byte = slot;
  }
}

// What was never written is known from its first read, where nothing else says what it was.
void Prologue::read(const Event& e) {
  if (!e.size) return;
  auto& granules = memory_[e.object].granules;
  const trace::ObjectStore::Entry* object = reader_.object_entry(e.object);
  auto unknown = [&](unsigned k) {
    if (object && (object->zeroed || e.addr + k - object->base < object->initial.size())) return false;
    const auto it = granules.find((e.addr + k) / 8);
    return it == granules.end() || it->second[(e.addr + k) % 8] == kNone;
  };
  for (unsigned k = 0; k < e.size;) {
    unsigned end = k;
    while (end < e.size && unknown(end)) ++end;
    if (end == k) {
      ++k;
      continue;
    }
    Event part = e;
    part.addr = e.addr + k;
    part.size = static_cast<uint8_t>(end - k);
    part.value = e.value >> (8 * k) & (part.size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * part.size)) - 1);
    part.flags &= static_cast<uint16_t>(~trace::kPinned);
    const Slot slot = keep(part, part.size);
    for (; k < end; ++k) granules.try_emplace((e.addr + k) / 8, kUntouched).first->second[(e.addr + k) % 8] = slot;
  }
}

void Prologue::released(uint32_t object) {
  const auto it = memory_.find(object);
  if (it == memory_.end()) return;
  for (const auto& [address, granule] : it->second.granules)
    for (Slot slot : granule) drop(slot);
  drop(it->second.alloc);
  memory_.erase(it);
  // What synchronised with it is gone.
  const Place low{object, 0}, high{object, UINT64_MAX};
  for (auto s = semaphores_.lower_bound(low); s != semaphores_.end() && s->first <= high; s = semaphores_.erase(s))
    drop(s->second);
  for (auto o = onces_.lower_bound(low); o != onces_.end() && o->first <= high; o = onces_.erase(o)) drop(o->second);
  for (auto b = barriers_.lower_bound(low); b != barriers_.end() && b->first <= high; b = barriers_.erase(b)) {
    drop(b->second.init);
    for (Generation& g : b->second.generations) drop(g.events);
  }
}

// --- locks and waits
// -----------------------------------------------------------------------------------------------------

void Prologue::mutex(const Event& e) {
  if (e.kind == Kind::Lock) {
    const auto waiting = waiting_.find(e.thread);
    if (waiting != waiting_.end() && waiting->second.wake != kNone && waiting->second.mutex == e.addr)
      finished(e.thread);
    auto& held = mutexes_[{e.thread, e.addr}];
    Event lock = e;
    for (lock.value = held.size() + 1; lock.value <= e.value; ++lock.value)
      held.push_back(keep(lock));  // a wait gave back all levels at once
  } else if (const auto it = mutexes_.find({e.thread, e.addr}); it != mutexes_.end()) {
    for (; it->second.size() > e.value; it->second.pop_back()) drop(it->second.back());
    if (it->second.empty()) mutexes_.erase(it);
  }
}

void Prologue::condition(const Event& e) {
  if (e.kind == Kind::Wait) {
    finished(e.thread);
    Waiting& w = waiting_[e.thread];
    w.condition = e.addr, w.mutex = e.value;
    if (const auto held = mutexes_.find({e.thread, e.value}); held != mutexes_.end()) {
      w.locks = std::move(held->second);
      mutexes_.erase(held);
    }
    w.wait = keep(e);
  } else if (e.kind == Kind::Wake) {
    if (const auto it = waiting_.find(e.thread); it != waiting_.end()) drop(it->second.wake), it->second.wake = keep(e);
  } else if (e.kind == Kind::Signal) {
    const auto it = e.value ? waiting_.find(static_cast<trace::ThreadId>(e.value - 1)) : waiting_.end();
    if (it == waiting_.end() || it->second.condition != e.addr || it->second.signal != kNone ||
        it->second.wake != kNone)
      return;
    it->second.signal = keep(e);
    ++signalled_;
  } else {
    Slot slot = kNone;
    for (auto& [thread, w] : waiting_) {
      if (w.condition != e.addr || w.signal != kNone || w.wake != kNone) continue;
      if (slot == kNone) slot = keep(e, 0), slots_[slot].item.event.value = 0;
      w.signal = slot;
      ++slots_[slot].refs, ++slots_[slot].item.event.value;
      ++signalled_;
    }
  }
}

void Prologue::finished(trace::ThreadId thread) {
  const auto it = waiting_.find(thread);
  if (it == waiting_.end()) return;
  Waiting& w = it->second;
  drop(w.locks);
  drop(w.wait);
  drop(w.wake);
  if (w.signal != kNone) {
    --signalled_;
    if (slots_[w.signal].item.event.kind == Kind::Broadcast) --slots_[w.signal].item.event.value;
    drop(w.signal);
  }
  waiting_.erase(it);
}

// --- counts
// --------------------------------------------------------------------------------------------------------------

void Prologue::semaphore(const Event& e) {
  const Place at{e.object, e.addr};
  const auto it = semaphores_.find(at);
  if (e.kind == Kind::SemInit) {
    if (it != semaphores_.end()) drop(it->second);
    semaphores_[at] = keep(e);
  } else if (it != semaphores_.end()) {
    uint64_t& count = slots_[it->second].item.event.value;
    if (e.kind == Kind::SemPost)
      ++count;
    else if (count)
      --count;
  }
}

void Prologue::barrier(const Event& e) {
  Barrier& b = barriers_[{e.object, e.addr}];
  if (e.kind == Kind::BarrierInit) {
    drop(b.init);
    for (Generation& g : b.generations) drop(g.events);
    b = {keep(e), e.value, 0, {}};
    return;
  }
  if (!b.need || e.value < b.base) return;  // its beginning was not seen
  while (b.generations.size() <= e.value - b.base) b.generations.emplace_back();
  Generation& g = b.generations[e.value - b.base];
  g.events.push_back(keep(e));
  g.left += e.kind == Kind::BarrierLeave;
  while (!b.generations.empty() && b.generations.front().left == b.need) {
    drop(b.generations.front().events);
    b.generations.pop_front();
    ++b.base;
  }
}

uint64_t Prologue::generations(const Event& e) const {
  const auto it = barriers_.find({e.object, e.addr});
  return it == barriers_.end() ? 0 : it->second.base;
}

}  // namespace stem::predictor
