// The rules of synchronisation, primitive by primitive.
#include <cerrno>

#include "trace/checker.h"
#include "util/error.h"

namespace stem::trace {

void Checker::mutex(const Event& e) {
  Mutex& m = mutexes_[e.addr];
  if (e.kind == Kind::Lock) {
    if (m.owner != kNone && m.owner != e.thread) problem("locks {}, which {} holds", name(e), thread_name(m.owner));
    ThreadState& t = state(e.thread);
    bool reacquired = t.reacquire && t.mutex == e.addr;  // a wait gave back all levels at once
    if (m.owner != e.thread) m.depth = 0;
    if (!reacquired && e.value != m.depth + 1) problem("locks {} to depth {}, which was at {}", name(e), e.value, m.depth);
    if (reacquired && e.value == 0) problem("locks {} to depth 0", name(e));
    t.reacquire = false;
    m = {e.thread, e.value};
  } else if (e.kind == Kind::Unlock) {
    if (m.owner == kNone) {
      problem("unlocks {}, which nobody holds", name(e));
    } else if (m.owner != e.thread) {
      problem("unlocks {}, which {} holds", name(e), thread_name(m.owner));
    } else if (e.value + 1 != m.depth) {
      problem("unlocks {} to depth {}, which was at {}", name(e), e.value, m.depth);
    }
    m.depth = e.value;
    if (m.depth == 0) m.owner = kNone;
  } else if ((e.value == EBUSY || e.value == ETIMEDOUT) && m.owner == kNone) {
    problem("fails to lock {}, which nobody holds", name(e));
  }
  if (m.owner == kNone) mutexes_.erase(e.addr);
}

void Checker::rwlock(const Event& e) {
  RwLock& l = rwlocks_[e.addr];
  bool refused = e.value == EBUSY || e.value == ETIMEDOUT;
  if (e.kind == Kind::RdLock) {
    if (l.writer != kNone) problem("locks {} for reading, which {} holds for writing", name(e), thread_name(l.writer));
    ++l.readers[e.thread];
  } else if (e.kind == Kind::WrLock) {
    if (l.writer != kNone) problem("locks {} for writing, which {} holds for writing", name(e), thread_name(l.writer));
    if (!l.readers.empty()) problem("locks {} for writing, which {} holds for reading", name(e), thread_name(l.readers.begin()->first));
    l.writer = e.thread;
  } else if (e.kind == Kind::RwUnlock) {
    auto own = l.readers.find(e.thread);
    if (l.writer == e.thread) l.writer = kNone;
    else if (own == l.readers.end()) problem("unlocks {}, which it does not hold", name(e));
    else if (--own->second == 0) l.readers.erase(own);
  } else if (e.kind == Kind::RdLockFail) {
    if (refused && l.writer == kNone) problem("fails to lock {} for reading, which nobody holds for writing", name(e));
  } else if (refused && l.writer == kNone && l.readers.empty()) {
    problem("fails to lock {} for writing, which nobody holds", name(e));
  }
  if (l.writer == kNone && l.readers.empty()) rwlocks_.erase(e.addr);
}

void Checker::condition(const Event& e) {
  ThreadState& self = state(e.thread);
  if (e.kind == Kind::Wait) {
    auto m = mutexes_.find(e.value);
    if (m == mutexes_.end() || m->second.owner != e.thread) problem("waits for {} without holding the mutex", name(e));
    else mutexes_.erase(m);
    self.waiting = true;
    self.cond = e.addr;
    self.mutex = e.value;
    self.woken_by.reset();
  } else if (e.kind == Kind::Wake) {
    if (!self.waiting || self.cond != e.addr) {
      problem("wakes up from {}, for which it does not wait", name(e));
    } else if (e.value == 0) {
      if (!(e.flags & (kTimeout | kSpurious))) problem("wakes up from {} by nobody, neither timed out nor spuriously", name(e));
    } else if (!self.woken_by || *self.woken_by != e.value - 1) {
      problem("is woken from {} by {}, which did not signal it", name(e), thread_name(static_cast<ThreadId>(e.value - 1)));
    }
    self.reacquire = self.waiting;
    self.waiting = false;
  } else if (e.kind == Kind::Signal) {
    if (e.value == 0) return;
    if (e.value - 1 >= names_.thread_count()) return problem("signals {} to a thread that does not exist", name(e));
    auto woken = static_cast<ThreadId>(e.value - 1);
    ThreadState& t = state(woken);
    if (!t.waiting || t.cond != e.addr || t.woken_by) problem("signals {} to {}, which does not wait for it", name(e), thread_name(woken));
    t.woken_by = e.thread;
  } else {
    uint64_t woken = 0;
    for (ThreadState& t : threads_) {
      if (!t.waiting || t.cond != e.addr || t.woken_by) continue;
      t.woken_by = e.thread;
      ++woken;
    }
    if (woken != e.value) problem("broadcasts {} to {} threads, but {} wait for it", name(e), e.value, woken);
  }
}

void Checker::semaphore(const Event& e) {
  Semaphore& s = semaphores_[e.addr];
  if (e.kind == Kind::SemInit) {
    s.count = e.value;
  } else if (e.kind == Kind::SemPost) {
    if (s.count) ++*s.count;
  } else if (e.kind == Kind::SemWait) {
    if (s.count && *s.count == 0) problem("passes {}, whose count is 0", name(e));
    else if (s.count) --*s.count;
  } else if ((e.value == EAGAIN || e.value == ETIMEDOUT) && s.count && *s.count > 0) {
    problem("does not pass {}, whose count is {}", name(e), *s.count);
  }
}

void Checker::barrier(const Event& e) {
  Barrier& b = barriers_[e.addr];
  if (e.kind == Kind::BarrierInit) {
    b = Barrier{};
    b.need = e.value;
  } else if (e.kind == Kind::BarrierArrive) {
    if (e.value != b.generation) problem("arrives at {} in generation {}, which is in {}", name(e), e.value, b.generation);
    if (++b.arrived != b.need) return;
    b.leaving[b.generation++];
    b.arrived = 0;
  } else {
    auto l = b.leaving.find(e.value);
    if (b.need == 0) return;  // its beginning was not seen
    if (l == b.leaving.end()) {
      return problem("leaves {} in generation {}, {}", name(e), e.value, e.value < b.generation ? "which everybody has left" : "before everybody arrived");
    }
    if ((e.flags & kSerial) && l->second.serial) problem("is the second serial thread of one generation of {}", name(e));
    l->second.serial |= (e.flags & kSerial) != 0;
    if (++l->second.left == b.need) b.leaving.erase(l);
  }
}

void Checker::once(const Event& e) {
  Once& o = onces_[e.addr];
  if (e.kind == Kind::OnceBegin) {
    if (o.done || o.running != kNone) problem("runs the initialiser of {} a second time", name(e));
    o.running = e.thread;
  } else if (e.kind == Kind::OnceEnd) {
    if (o.running != e.thread) problem("ends an initialiser of {} that it did not begin", name(e));
    o.running = kNone;
    o.done = !(e.flags & kTry);  // an exception left the initialiser: the next one tries again
  } else if (!o.done) {
    problem("passes {} before its initialiser has run", name(e));
  }
}

void Checker::atomic_section(const Event& e) {
  if (e.kind == Kind::AtomicBegin) {
    if (atomic_owner_ != kNone) problem("begins an atomic section while {} is in one", thread_name(atomic_owner_));
    atomic_owner_ = e.thread;
  } else {
    if (atomic_owner_ != e.thread) problem("ends an atomic section that it did not begin");
    atomic_owner_ = kNone;
  }
}

}  // namespace stem::trace
