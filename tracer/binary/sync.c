/* The model of pthread calls: when a call can go on, and what it leaves in the trace.
 *
 * The state of mutexes, read-write locks, semaphores and once-flags is the C library's own (glibc on x86-64): a thread
 * is let go when the real call cannot block, and the real call is then made. Condition variables and barriers are
 * modelled wholly, so which waiter a signal wakes is ours to say: the one that the plan names, else the one that waits
 * longest (random mode: any). */
#include <errno.h>
#include <pthread.h>

#include "tracer/binary/engine.h"

enum {
  KIND = 3,
  RECURSIVE = 1,
  ERRORCHECK = 2,
  ROBUST = 16,
  INHERIT = 32,
  PROTECT = 64,
  SHARED = 128
}; /* glibc's __kind */
enum { WRITE_LOCKED = 2, READER_SHIFT = 3 }; /* glibc's __readers */
enum { ONCE_RUNNING = 1, ONCE_DONE = 2 };

static unsigned how(uint64_t b) { return b == 1 ? BIN_TRY : b == 2 ? BIN_TIMED : 0; }

static int lives(int tid) {
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->tid == tid) return 1;
  return 0;
}

static int can_lock(struct bin_thread* t, uint64_t mutex) {
  const pthread_mutex_t* m = (const pthread_mutex_t*)mutex;
  unsigned word = (unsigned)m->__data.__lock, kind = (unsigned)m->__data.__kind;
  if (kind & PROTECT) word &= 0x7ffff;
  if (kind & (ROBUST | INHERIT)) word &= 0x3fffffff;
  if (word == 0) return 1;
  if ((kind & (ROBUST | SHARED)) == ROBUST && !lives((int)word))
    return 1; /* its owner's End is recorded; the kernel takes it away */
  return ((kind & KIND) == RECURSIVE || (kind & KIND) == ERRORCHECK) && (m->__data.__owner & 0x3fffffff) == t->tid;
}

static int can_spin(struct bin_thread* t, uint64_t lock) {
  (void)t;
  return *(const volatile int*)lock == 1; /* x86: 1 when free */
}

static int can_read(struct bin_thread* t, uint64_t lock) {
  const pthread_rwlock_t* l = (const pthread_rwlock_t*)lock;
  return !(l->__data.__readers & WRITE_LOCKED) || l->__data.__cur_writer == t->tid; /* its own: an error, at once */
}

static int can_write(struct bin_thread* t, uint64_t lock) {
  const pthread_rwlock_t* l = (const pthread_rwlock_t*)lock;
  return (!(l->__data.__readers & WRITE_LOCKED) && l->__data.__readers >> READER_SHIFT == 0) ||
         l->__data.__cur_writer == t->tid;
}

static int can_take(struct bin_thread* t, uint64_t sem) { return *(const volatile uint32_t*)sem > 0 || t->cancelled; }

static int can_enter(struct bin_thread* t, uint64_t once) {
  (void)t;
  return (*(const volatile int*)once & 3) != ONCE_RUNNING;
}

static int can_guard(struct bin_thread* t, uint64_t guard) {
  (void)t;
  const volatile uint8_t* g = (const volatile uint8_t*)guard;
  return g[0] || !g[1];
}

static int is_woken(struct bin_thread* t, uint64_t cond) {
  (void)cond;
  return t->waiting_on == 0 || t->cancelled;
}

static int has_ended(struct bin_thread* t, uint64_t index) {
  return bin.all[index]->state == BIN_ENDED || t->cancelled;
}

static int is_cancelled(struct bin_thread* t, uint64_t arg) {
  (void)arg;
  return t->cancelled != 0;
}

/* --- spinlocks: pthread_spin_init is another name of pthread_spin_unlock in glibc, so we need to know who holds what
 * ------------- */

static uint64_t held_spins[1024];

static int spin_slot(uint64_t lock) {
  for (unsigned i = 0; i < sizeof held_spins / sizeof *held_spins; i++)
    if (held_spins[i] == lock) return (int)i;
  return -1;
}

static void spin_held(uint64_t lock) {
  int free_slot = spin_slot(0);
  if (free_slot >= 0) held_spins[free_slot] = lock;
}

/* 1: it was held; 0: this is an initialisation. */
static int spin_released(uint64_t lock) {
  int slot = spin_slot(lock);
  if (slot >= 0) held_spins[slot] = 0;
  return slot >= 0;
}

/* --- barriers: in a table of our own, by address
 * --------------------------------------------------------------------------------- */

struct barrier {
  uint64_t addr, generation;
  uint32_t count, arrived;
};
static struct barrier* barriers;
#define BARRIERS 65536u

static struct barrier* barrier_at(uint64_t addr) {
  if (!barriers) barriers = stem_host_pages(BARRIERS * sizeof *barriers);
  for (uint64_t i = addr >> 4;; i++) {
    struct barrier* b = &barriers[i % BARRIERS];
    if (b->addr == addr || !b->addr) {
      b->addr = addr;
      return b;
    }
  }
}

static int has_passed(struct bin_thread* t, uint64_t addr) { return barrier_at(addr)->generation != t->generation; }

static uint64_t barrier_wait(struct bin_thread* self, uint64_t object, uint64_t site) {
  bin_visible(self, STEM_KIND_BarrierArrive, object, site, 0, 0, 0);
  struct barrier* b = barrier_at(object);
  uint64_t generation = self->generation = b->generation;
  if (b->count == 0) b->count = 1; /* nobody initialised it where we could see */
  int last = ++b->arrived >= b->count;
  if (last) {
    b->arrived = 0;
    b->generation++;
  }
  bin_event(self, STEM_KIND_BarrierArrive, 0, object, generation, site);
  bin_visible(self, STEM_KIND_BarrierLeave, object, site, has_passed, object, 0);
  bin_event(self, STEM_KIND_BarrierLeave, last ? BIN_SERIAL : 0, object, generation, site);
  return (uint64_t)last;
}

/* --- condition variables
 * -------------------------------------------------------------------------------------------------------- */

static struct bin_thread* pick(uint64_t cond) {
  struct bin_thread* oldest = 0;
  uint32_t waiters = 0;
  for (uint32_t i = 0; i < bin.live_count; i++) {
    struct bin_thread* t = bin.live[i];
    if (t->waiting_on != cond) continue;
    if (bin.guided_wakes && t->plan_index == bin.guided_wakes - 1) return t;
    if (bin.mode == BIN_RANDOM) {
      if (bin_random() % ++waiters == 0) oldest = t;
    } else if (!oldest || t->wait_order < oldest->wait_order) {
      oldest = t;
    }
  }
  return oldest;
}

static void wake(struct bin_thread* t, struct bin_thread* by) {
  t->waiting_on = 0;
  t->woken_by = 1 + by->index;
}

int bin_cond_signal(struct bin_thread* self, uint64_t cond, uint64_t site) {
  bin_visible(self, STEM_KIND_Signal, cond, site, 0, 0, 0);
  struct bin_thread* t = pick(cond);
  if (t) wake(t, self);
  bin_event(self, STEM_KIND_Signal, 0, cond, t ? 1 + t->index : 0, site);
  return t != 0;
}

uint64_t bin_cond_broadcast(struct bin_thread* self, uint64_t cond, uint64_t site) {
  uint64_t woken = 0;
  bin_visible(self, STEM_KIND_Broadcast, cond, site, 0, 0, 0);
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->waiting_on == cond) {
      wake(bin.live[i], self);
      woken++;
    }
  bin_event(self, STEM_KIND_Broadcast, 0, cond, woken, site);
  return woken;
}

static uint64_t cond_wake(struct bin_thread* self, uint64_t cond, uint64_t deadline, uint64_t site) {
  int timed_out = bin_visible(self, STEM_KIND_Wake, cond, site, is_woken, 0, deadline);
  int cancelled = !timed_out && self->waiting_on != 0;
  self->waiting_on = 0;
  bin_event(self, STEM_KIND_Wake,
            (deadline ? BIN_TIMED : 0) | (timed_out   ? BIN_TIMEOUT
                                          : cancelled ? BIN_SPURIOUS
                                                      : 0),
            cond, timed_out ? 0 : self->woken_by, site);
  return (uint64_t)timed_out;
}

/* --- threads
 * ---------------------------------------------------------------------------------------------------------------------
 */

static struct bin_thread* unborn(struct bin_thread* parent) {
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->state == BIN_UNBORN && bin.live[i]->parent == parent->index) return bin.live[i];
  return 0;
}

/* The handle was written before: as in glibc, it is there before the new thread runs. */
static void created(struct bin_thread* self, uint64_t start, uint64_t result, uint64_t handle, uint64_t site) {
  struct bin_thread* child = unborn(self);
  self->creating = 0;
  bin_visible(self, STEM_KIND_Create, 0, site, 0, 0, 0);
  if (result || !child) {
    bin_event(self, STEM_KIND_Yield, 0, 0, result, site);
    return;
  }
  child->handle = handle;
  child->start = start;
  child->state = BIN_PARKED;
  bin_thread_define(child);
  bin_event(self, STEM_KIND_Create, 0, 0, child->index, site);
  /* Until now nobody was there to switch to. */
  if (bin.mode != BIN_GUIDED)
    bin.countdown = bin.granted = bin.mode == BIN_DEFAULT ? bin.countdown % (int64_t)(2 * bin.switch_one_in) : 0;
}

static uint64_t join_before(struct bin_thread* self, uint64_t handle, uint64_t tries, uint64_t deadline,
                            uint64_t site) {
  struct bin_thread* child = bin_thread_by_handle(handle);
  if (!child || child == self || child->detached) return 2;
  int failed = bin_visible(self, STEM_KIND_Join, 0, site, tries ? 0 : has_ended, child->index, deadline);
  if (!failed && child->state == BIN_ENDED) {
    self->joining = 1;
    return 0;
  }
  bin_event(self, STEM_KIND_Yield, tries ? BIN_TRY : deadline ? BIN_TIMED | BIN_TIMEOUT : 0, 0, 0, site);
  return 1;
}

static void joined(struct bin_thread* self, uint64_t handle, uint64_t site) {
  struct bin_thread* child = bin_thread_by_handle(handle);
  self->joining = 0;
  if (!child || child->state != BIN_ENDED) return;
  child->joined = 1;
  bin_event(self, STEM_KIND_Join, 0, 0, child->index, site);
}

/* --- cancellation: at the points that block here (join, condition variables, semaphores, sleeps) and wherever the C
 * library has one. Asynchronous cancellation acts at the next of these as well.
 * -------------------------------------------------------------------- */

static void cancel(struct bin_thread* self, uint64_t handle, uint64_t site) {
  bin_visible(self, STEM_KIND_Yield, 0, site, 0, 0, 0);
  struct bin_thread* child = bin_thread_by_handle(handle);
  if (child && child->state != BIN_ENDED) {
    if (child->cancel_disabled)
      child->cancel_wanted = 1;
    else
      child->cancelled = 1;
  }
  bin_event(self, STEM_KIND_Yield, 0, 0, 0, site);
}

static void cancel_state(struct bin_thread* self, int disabled) {
  self->cancel_disabled = (uint32_t)disabled;
  uint32_t wanted = self->cancelled | self->cancel_wanted;
  self->cancelled = disabled ? 0 : wanted;
  self->cancel_wanted = disabled ? wanted : 0;
}

/* --- waiting for nothing in particular
 * ------------------------------------------------------------------------------------------- */

/* Whoever yields wants somebody else to run. One that yields over and over while everybody else sleeps waits for one of
 * them: their time comes. */
static void yield(struct bin_thread* self, uint64_t deadline, uint64_t site) {
  int alone = !deadline && !bin.outside;
  for (uint32_t i = 0; alone && i < bin.live_count; i++) alone = bin.live[i] == self || !bin_is_enabled(bin.live[i]);
  self->yields = alone ? self->yields + 1 : 0;
  if (self->yields >= 100) {
    self->yields = 0;
    bin_skip_to_deadline();
  }
  if (bin.mode == BIN_DEFAULT && bin.countdown > 0)
    bin.operations += (uint64_t)(bin.granted - bin.countdown), bin.granted = bin.countdown = 0;
  bin_visible(self, STEM_KIND_Yield, 0, site, deadline ? is_cancelled : 0, 0, deadline);
  bin_event(self, STEM_KIND_Yield, deadline ? BIN_TIMED : 0, 0, 0, site);
}

/* The end of a thread gives its robust mutexes back, to be found inconsistent: told as the unlocking that it is. */
void bin_leave_robust(struct bin_thread* self, uint64_t head) {
  if (!bin.on) return;
  for (uint64_t entry = *(const uint64_t*)head; entry && entry != head;) {
    uint64_t at = entry & ~1ull; /* glibc marks those that inherit priorities */
    uint64_t mutex = at - offsetof(pthread_mutex_t, __data.__list.__next);
    entry = *(const uint64_t*)at;
    bin_visible(self, STEM_KIND_Unlock, mutex, 0, 0, 0, 0);
    bin_event(self, STEM_KIND_Unlock, 0, mutex, 0, 0);
  }
}

/* --- once and guards
 * -------------------------------------------------------------------------------------------------------------- */

static uint64_t once_begin(struct bin_thread* self, uint64_t once, uint64_t site) {
  bin_visible(self, STEM_KIND_OnceBegin, once, site, can_enter, once, 0);
  int run = !(*(volatile int*)once & ONCE_DONE);
  if (run) *(volatile int*)once = ONCE_RUNNING;
  bin_event(self, run ? STEM_KIND_OnceBegin : STEM_KIND_OncePass, 0, once, 0, site);
  return (uint64_t)run;
}

/* Compiled code looks at the guard's first byte without asking anybody: its setting is a write as well. */
static void guard_done(struct bin_thread* self, uint64_t guard, uint64_t done, uint64_t site) {
  if (done) {
    bin_visible(self, STEM_KIND_Write, guard, site, 0, 0, 0);
    bin_write(self, guard, 1, 1, site, STEM_AUX_ATOMIC);
  }
  bin_visible(self, STEM_KIND_OnceEnd, guard, site, 0, 0, 0);
  bin_event(self, STEM_KIND_OnceEnd, done ? 0 : BIN_TRY, guard, 0, site);
}

static void acquired(struct bin_thread* self, unsigned kind, unsigned failed, unsigned flags, uint64_t object,
                     uint64_t result, uint64_t value, uint64_t site) {
  if (result == 0 || result == EOWNERDEAD)
    bin_event(self, kind, flags, object, value, site);
  else
    bin_event(self, failed, flags | (result == ETIMEDOUT ? BIN_TIMEOUT : 0), object, result, site);
}

static unsigned depth_of(uint64_t mutex) {
  const pthread_mutex_t* m = (const pthread_mutex_t*)mutex;
  return (m->__data.__kind & KIND) == RECURSIVE ? m->__data.__count : 1;
}

static void released(struct bin_thread* self, unsigned kind, unsigned flags, uint64_t object, uint64_t result,
                     uint64_t value, uint64_t site) {
  if (result)
    bin_event(self, STEM_KIND_Yield, 0, object, result, site); /* refused: no effect */
  else
    bin_event(self, kind, flags, object, value, site);
}

uint64_t bin_call(struct bin_thread* self, enum bin_op op, uint64_t object, uint64_t a, uint64_t b, uint64_t site) {
  bin_pin(self, site);
  switch (op) {
    case BIN_MUTEX_BEFORE:
      return (uint64_t)bin_visible(self, a == 2 ? STEM_KIND_Unlock : STEM_KIND_Lock, object, site, a ? 0 : can_lock,
                                   object, b);
    case BIN_MUTEX_LOCKED:
      acquired(self, STEM_KIND_Lock, STEM_KIND_LockFail, how(b), object, a,
               a == 0 || a == EOWNERDEAD ? depth_of(object) : 0, site);
      return 0;
    case BIN_MUTEX_UNLOCKED:
      released(self, STEM_KIND_Unlock, 0, object, a, b - 1, site);
      return 0;
    case BIN_SPIN_BEFORE:
      return (uint64_t)bin_visible(self, a == 2 ? STEM_KIND_Unlock : STEM_KIND_Lock, object, site, a ? 0 : can_spin,
                                   object, 0);
    case BIN_SPIN_LOCKED:
      if (a == 0) spin_held(object);
      acquired(self, STEM_KIND_Lock, STEM_KIND_LockFail, BIN_SPIN | how(b), object, a, 1, site);
      return 0;
    case BIN_SPIN_UNLOCKED:
      if (spin_released(object))
        released(self, STEM_KIND_Unlock, BIN_SPIN, object, a, 0, site);
      else
        bin_event(self, STEM_KIND_Yield, 0, object, 0, site);
      return 0;
    case BIN_READ_BEFORE:
      return (uint64_t)bin_visible(self, STEM_KIND_RdLock, object, site, a ? 0 : can_read, object, b);
    case BIN_READ_LOCKED:
      acquired(self, STEM_KIND_RdLock, STEM_KIND_RdLockFail, how(b), object, a, 0, site);
      return 0;
    case BIN_WRITE_BEFORE:
      return (uint64_t)bin_visible(self, STEM_KIND_WrLock, object, site, a ? 0 : can_write, object, b);
    case BIN_WRITE_LOCKED:
      acquired(self, STEM_KIND_WrLock, STEM_KIND_WrLockFail, how(b), object, a, 0, site);
      return 0;
    case BIN_RW_UNLOCK_BEFORE:
      return (uint64_t)bin_visible(self, STEM_KIND_RwUnlock, object, site, 0, 0, 0);
    case BIN_RW_UNLOCKED:
      released(self, STEM_KIND_RwUnlock, 0, object, a, 0, site);
      return 0;
    case BIN_COND_WAIT:
      bin_visible(self, STEM_KIND_Wait, object, site, 0, 0, 0);
      self->waiting_on = object;
      self->wait_order = ++bin.wait_order;
      self->woken_by = 0;
      bin_event(self, STEM_KIND_Wait, how(b), object, a, site);
      return 0;
    case BIN_COND_WAKE:
      return cond_wake(self, object, b, site);
    case BIN_COND_SIGNAL:
      bin_cond_signal(self, object, site);
      return 0;
    case BIN_COND_BROADCAST:
      bin_cond_broadcast(self, object, site);
      return 0;
    case BIN_FUTEX_WAIT:
      return bin_futex_wait(self, object, (uint32_t)a, b, site);
    case BIN_FUTEX_WAKE:
      return bin_futex_wake(self, object, (uint32_t)a, site);
    case BIN_FUTEX_OTHER:
      bin_note("a futex operation that is not modelled goes to the kernel: its waiters are not seen by STEM");
      return 0;
    case BIN_ALONE:
      self->joining = a != 0;
      return 0;
    case BIN_SEM_INIT:
      bin_visible(self, STEM_KIND_SemInit, object, site, 0, 0, 0);
      bin_event(self, STEM_KIND_SemInit, 0, object, a, site);
      return 0;
    case BIN_SEM_BEFORE:
      return (uint64_t)bin_visible(self, STEM_KIND_SemWait, object, site, a ? 0 : can_take, object, b);
    case BIN_SEM_TAKEN:
      acquired(self, STEM_KIND_SemWait, STEM_KIND_SemFail, how(b), object, a, 0, site);
      return 0;
    case BIN_SEM_POST:
      bin_visible(self, STEM_KIND_SemPost, object, site, 0, 0, 0);
      bin_event(self, STEM_KIND_SemPost, 0, object, 0, site);
      return 0;
    case BIN_BARRIER_INIT: {
      bin_visible(self, STEM_KIND_BarrierInit, object, site, 0, 0, 0);
      struct barrier* barrier = barrier_at(object);
      barrier->count = (uint32_t)a;
      barrier->arrived = 0;
      barrier->generation = 0;
      bin_event(self, STEM_KIND_BarrierInit, 0, object, a, site);
      return 0;
    }
    case BIN_BARRIER_WAIT:
      return barrier_wait(self, object, site);
    case BIN_ONCE_BEGIN:
      return once_begin(self, object, site);
    case BIN_ONCE_END:
      bin_visible(self, STEM_KIND_OnceEnd, object, site, 0, 0, 0);
      *(volatile int*)object = a ? ONCE_DONE : 0;
      bin_event(self, STEM_KIND_OnceEnd, a ? 0 : BIN_TRY, object, 0, site); /* tried, not done */
      return 0;
    case BIN_GUARD_BEFORE:
      return (uint64_t)bin_visible(self, STEM_KIND_OnceBegin, object, site, can_guard, object, 0);
    case BIN_GUARD_TAKEN:
      bin_event(self, a ? STEM_KIND_OnceBegin : STEM_KIND_OncePass, 0, object, 0, site);
      return 0;
    case BIN_GUARD_DONE:
      guard_done(self, object, a, site);
      return 0;
    case BIN_CREATE_BEFORE:
      self->creating = 1;
      return 0;
    case BIN_CREATED:
      created(self, object, a, b, site);
      return 0;
    case BIN_JOIN_BEFORE:
      return join_before(self, object, a, b, site);
    case BIN_JOINED:
      joined(self, object, site);
      return 0;
    case BIN_DETACHED: {
      struct bin_thread* child = bin_thread_by_handle(object);
      if (!child) return 0;
      bin_visible(self, STEM_KIND_Detach, 0, site, 0, 0, 0);
      child->detached = 1;
      bin_event(self, STEM_KIND_Detach, 0, 0, child->index, site);
      return 0;
    }
    case BIN_CANCEL:
      cancel(self, object, site);
      return 0;
    case BIN_CANCEL_STATE:
      cancel_state(self, a != 0);
      return 0;
    case BIN_CANCEL_TYPE: {
      uint32_t before = self->cancel_async;
      self->cancel_async = a != 0;
      if (self->cancel_async && !before)
        bin_note("asynchronous cancellation is delayed to the thread's next cancellation point while STEM records");
      return before;
    }
    case BIN_CANCELLED:
      if (self->cancelled && a) bin_event(self, STEM_KIND_Yield, 0, 0, 0, site);
      return self->cancelled;
    case BIN_YIELD:
      yield(self, b, site);
      return self->cancelled && (b || self->cancel_async);
    case BIN_ALLOCATED:
    case BIN_FREE:
    case BIN_READ_RANGE:
    case BIN_COPY:
    case BIN_FILL:
    case BIN_KEPT:
    case BIN_FED:
    case BIN_TOLD:
    case BIN_WRITTEN:
    case BIN_SKIPPED:
    case BIN_SCHEDULED:
    case BIN_CALLED:
    case BIN_OPS:
      break; /* the host's */
  }
  return 0;
}
