/* Read-write locks, by the real try functions; who could go in is read from glibc's fields. */
#include "tracer/runtime/sync.h"

enum { WRITE_LOCKED = 2, READER_SHIFT = 3 }; /* glibc's __readers */

int stem_rwlock_writer(const void* rwlock) { return ((const pthread_rwlock_t*)rwlock)->__data.__cur_writer; }

static int can_read(struct stem_thread* t, uintptr_t lock) {
  const pthread_rwlock_t* l = (const pthread_rwlock_t*)lock;
  return !(l->__data.__readers & WRITE_LOCKED) || l->__data.__cur_writer == t->tid; /* its own: an error, at once */
}

static int can_write(struct stem_thread* t, uintptr_t lock) {
  const pthread_rwlock_t* l = (const pthread_rwlock_t*)lock;
  return (!(l->__data.__readers & WRITE_LOCKED) && l->__data.__readers >> READER_SHIFT == 0) || l->__data.__cur_writer == t->tid;
}

static int lock(pthread_rwlock_t* l, int write, int try_only, uint64_t deadline, const void* site) {
  struct stem_thread* self = stem_self();
  unsigned kind = write ? STEM_KIND_WrLock : STEM_KIND_RdLock;
  unsigned flags = try_only ? STEM_FLAG_TRY : deadline ? STEM_FLAG_TIMED : 0;
  for (;;) {
    int timed_out = (l->__data.__shared ? stem_visible_external : stem_visible)(
        self, kind, l, site, try_only ? 0 : write ? can_write : can_read, (uintptr_t)l, deadline);
    int r = ETIMEDOUT;
    if (!timed_out) {
      if (!try_only && l->__data.__cur_writer == self->tid)
        r = EDEADLK;
      else
        r = write ? STEM_REAL(pthread_rwlock_trywrlock)(l) : STEM_REAL(pthread_rwlock_tryrdlock)(l);
      if (r == EBUSY && !try_only) {
        stem_refused(self, l, EBUSY, site);
        continue;
      }
    }
    if (r == 0)
      stem_event(self, kind, flags, l, 0, 0, site);
    else
      stem_event(self, write ? STEM_KIND_WrLockFail : STEM_KIND_RdLockFail, flags | (timed_out ? STEM_FLAG_TIMEOUT : 0), l, (uint64_t)r, 0, site);
    stem_done(self);
    return r;
  }
}

STEM_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_rdlock)(l);
  return lock(l, 0, 0, 0, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_wrlock)(l);
  return lock(l, 1, 0, 0, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_tryrdlock)(l);
  STEM_ENTER(stem_self());
  return lock(l, 0, 1, 0, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_trywrlock)(l);
  STEM_ENTER(stem_self());
  return lock(l, 1, 1, 0, stem_take_site());
}

static int timed(pthread_rwlock_t* l, int write, clockid_t clock, const struct timespec* until, const void* site) {
  if (stem_bad_time(until) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return EINVAL;
  return lock(l, write, 0, stem_deadline(clock, until), site);
}

STEM_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* l, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_timedrdlock)(l, until);
  return timed(l, 0, CLOCK_REALTIME, until, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* l, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_timedwrlock)(l, until);
  return timed(l, 1, CLOCK_REALTIME, until, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t clock, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_clockrdlock)(l, clock, until);
  return timed(l, 0, clock, until, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t clock, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_clockwrlock)(l, clock, until);
  return timed(l, 1, clock, until, stem_take_site());
}

STEM_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* l) {
  if (!stem_active()) return STEM_REAL(pthread_rwlock_unlock)(l);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_RwUnlock, l, site, 0, 0, 0);
  int r = STEM_REAL(pthread_rwlock_unlock)(l);
  if (r) return stem_refused(self, l, r, site);
  stem_event(self, STEM_KIND_RwUnlock, 0, l, 0, 0, site);
  stem_enables();
  stem_done(self);
  return 0;
}
