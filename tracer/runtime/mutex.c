/* Mutexes of all kinds and spinlocks. A lock is granted when the mutex is free, then taken by the real trylock; an owner who
 * locks again blocks, nests or is refused as its kind says. About 25 ns a lock. */
#include <linux/futex.h>

#include "tracer/runtime/sync.h"
#include "tracer/runtime/sys.h"

enum { RECURSIVE = 1, ERRORCHECK = 2, KIND = 3, ROBUST = 16, INHERIT = 32, PROTECT = 64, SHARED = 128 }; /* glibc's __kind */

int stem_mutex_owner(const void* mutex) { return ((const pthread_mutex_t*)mutex)->__data.__owner & 0x3fffffff; }

static int nests(const pthread_mutex_t* m) { return (m->__data.__kind & KIND) == RECURSIVE; }
unsigned stem_mutex_depth(const pthread_mutex_t* m) { return nests(m) ? m->__data.__count : 1; }

static int is_free(const pthread_mutex_t* m) {
  unsigned word = (unsigned)m->__data.__lock;
  if (m->__data.__kind & PROTECT) word &= 0x7ffff; /* the rest is the ceiling */
  if (m->__data.__kind & (ROBUST | INHERIT)) word &= 0x3fffffff;
  return word == 0;
}

/* A robust mutex whose owner's End has been recorded; the kernel may still be about to take it away. */
static int is_left(const pthread_mutex_t* m) {
  return (m->__data.__kind & (ROBUST | SHARED)) == ROBUST && !is_free(m) && !stem_thread_by_tid(m->__data.__lock & 0x3fffffff);
}

/* The end of a thread gives its robust mutexes back, to be found inconsistent: told as the unlocking that it is. */
void stem_mutex_owner_ends(struct stem_thread* self) {
  struct robust_list_head* head = 0;
  size_t size = 0;
  if (stem_sys(SYS_get_robust_list, 0, &head, &size) < 0 || !head) return;
  struct robust_list* end = &head->list;
  for (struct robust_list* entry = end->next; entry && entry != end;) {
    uintptr_t at = (uintptr_t)entry & ~1ul; /* glibc marks those that inherit priorities */
    const pthread_mutex_t* m = (const pthread_mutex_t*)(at - offsetof(pthread_mutex_t, __data.__list.__next));
    entry = ((struct robust_list*)at)->next;
    stem_visible(self, STEM_KIND_Unlock, m, 0, 0, 0, 0);
    stem_event(self, STEM_KIND_Unlock, 0, m, 0, 0, 0);
    stem_enables();
    stem_done(self);
  }
}

int stem_can_lock_mutex(struct stem_thread* t, uintptr_t mutex) {
  const pthread_mutex_t* m = (const pthread_mutex_t*)mutex;
  return is_free(m) || is_left(m) || ((m->__data.__kind & KIND) && (m->__data.__kind & KIND) != KIND && stem_mutex_owner(m) == t->tid);
}

int stem_mutex_lock(struct stem_thread* self, pthread_mutex_t* m, int try_only, uint64_t deadline, const void* site) {
  unsigned flags = try_only ? STEM_FLAG_TRY : deadline ? STEM_FLAG_TIMED : 0;
  for (;;) {
    int timed_out = (m->__data.__kind & SHARED ? stem_visible_external : stem_visible)(
        self, STEM_KIND_Lock, m, site, try_only ? 0 : stem_can_lock_mutex, (uintptr_t)m, deadline);
    int r = ETIMEDOUT;
    if (!timed_out) {
      r = STEM_REAL(pthread_mutex_trylock)(m);
      if (r == EBUSY && is_left(m)) r = STEM_REAL(pthread_mutex_lock)(m); /* its owner is on the way out */
      if (r == EBUSY && !try_only) {
        if ((m->__data.__kind & KIND) == ERRORCHECK && stem_mutex_owner(m) == self->tid)
          r = EDEADLK;
        else {
          stem_refused(self, m, EBUSY, site); /* code that we do not see was faster */
          continue;
        }
      }
    }
    if (r == 0 || r == EOWNERDEAD)
      stem_event(self, STEM_KIND_Lock, flags, m, stem_mutex_depth(m), 0, site);
    else
      stem_event(self, STEM_KIND_LockFail, flags | (timed_out ? STEM_FLAG_TIMEOUT : 0), m, (uint64_t)r, 0, site);
    stem_done(self);
    return r;
  }
}

STEM_EXPORT int pthread_mutex_lock(pthread_mutex_t* m) {
  if (!stem_active()) return STEM_REAL(pthread_mutex_lock)(m);
  return stem_mutex_lock(stem_self(), m, 0, 0, stem_take_site());
}

STEM_EXPORT int pthread_mutex_trylock(pthread_mutex_t* m) {
  if (!stem_active()) return STEM_REAL(pthread_mutex_trylock)(m);
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  return stem_mutex_lock(self, m, 1, 0, stem_take_site());
}

static int timed_lock(pthread_mutex_t* m, clockid_t clock, const struct timespec* until, const void* site) {
  struct stem_thread* self = stem_self();
  if (stem_bad_time(until)) {
    if (!stem_can_lock_mutex(self, (uintptr_t)m)) return EINVAL;
    return stem_mutex_lock(self, m, 0, 0, site);
  }
  return stem_mutex_lock(self, m, 0, stem_deadline(clock, until), site);
}

STEM_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* m, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_mutex_timedlock)(m, until);
  return timed_lock(m, CLOCK_REALTIME, until, stem_take_site());
}

STEM_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_mutex_clocklock)(m, clock, until);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
  return timed_lock(m, clock, until, stem_take_site());
}

STEM_EXPORT int pthread_mutex_unlock(pthread_mutex_t* m) {
  if (!stem_active()) return STEM_REAL(pthread_mutex_unlock)(m);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_Unlock, m, site, 0, 0, 0);
  unsigned depth = stem_mutex_depth(m) - 1;
  int r = STEM_REAL(pthread_mutex_unlock)(m);
  if (r) return stem_refused(self, m, r, site);
  stem_event(self, STEM_KIND_Unlock, 0, m, depth, 0, site);
  stem_enables();
  stem_done(self);
  return 0;
}

/* --- spinlocks: glibc's is an int, 1 when free (x86) -------------------------------------------------------------------------------- */

static int can_spin(struct stem_thread* t, uintptr_t lock) {
  (void)t;
  return __atomic_load_n((const volatile int*)lock, __ATOMIC_RELAXED) > 0;
}

STEM_EXPORT int pthread_spin_lock(pthread_spinlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_spin_lock)(l);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  for (;;) {
    stem_visible(self, STEM_KIND_Lock, l, site, can_spin, (uintptr_t)l, 0);
    if (STEM_REAL(pthread_spin_trylock)(l) == 0) break;
    stem_refused(self, l, EBUSY, site);
  }
  stem_event(self, STEM_KIND_Lock, STEM_FLAG_SPIN, l, 1, 0, site);
  stem_done(self);
  return 0;
}

STEM_EXPORT int pthread_spin_trylock(pthread_spinlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_spin_trylock)(l);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  STEM_ENTER(self);
  stem_visible(self, STEM_KIND_Lock, l, site, 0, 0, 0);
  int r = STEM_REAL(pthread_spin_trylock)(l);
  stem_event(self, r == 0 ? STEM_KIND_Lock : STEM_KIND_LockFail, STEM_FLAG_TRY | STEM_FLAG_SPIN, l, r == 0 ? 1 : (uint64_t)r, 0, site);
  stem_done(self);
  return r;
}

STEM_EXPORT int pthread_spin_unlock(pthread_spinlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_spin_unlock)(l);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_Unlock, l, site, 0, 0, 0);
  int r = STEM_REAL(pthread_spin_unlock)(l);
  stem_event(self, STEM_KIND_Unlock, STEM_FLAG_SPIN, l, 0, 0, site);
  stem_enables();
  stem_done(self);
  return r;
}
