/* Semaphores, unnamed and named, by sem_trywait and sem_getvalue. */
#include <semaphore.h>

#include "tracer/runtime/sync.h"

static int count_of(const sem_t* s) {
  int value = 0;
  STEM_REAL(sem_getvalue)((sem_t*)s, &value);
  return value;
}

static int can_wait(struct stem_thread* t, uintptr_t sem) { return count_of((const sem_t*)sem) > 0 || t->cancelled; }

/* Memory that other processes map: sem_init's pshared is kept in the object (glibc: 0 private, else shared; named ones are). */
static int is_shared(const sem_t* s) { return ((const int*)s)[2] != 0; }

static int wait(sem_t* s, int try_only, uint64_t deadline, const void* site) {
  struct stem_thread* self = stem_self();
  unsigned flags = try_only ? STEM_FLAG_TRY : deadline ? STEM_FLAG_TIMED : 0;
  for (;;) {
    int timed_out =
        (is_shared(s) ? stem_visible_external : stem_visible)(self, STEM_KIND_SemWait, s, site, try_only ? 0 : can_wait, (uintptr_t)s, deadline);
    int before = errno;
    int got = !timed_out && STEM_REAL(sem_trywait)(s) == 0;
    if (got) {
      stem_event(self, STEM_KIND_SemWait, flags, s, 0, 0, site);
      stem_done(self);
      return 0;
    }
    errno = before;
    if (!timed_out && !try_only) {
      stem_refused(self, s, EAGAIN, site);
      stem_cancellation_point(self);
      continue;
    }
    int error = timed_out ? ETIMEDOUT : EAGAIN;
    stem_event(self, STEM_KIND_SemFail, flags | (timed_out ? STEM_FLAG_TIMEOUT : 0), s, (uint64_t)error, 0, site);
    stem_done(self);
    errno = error;
    return -1;
  }
}

STEM_EXPORT int sem_wait(sem_t* s) {
  if (!stem_active()) return STEM_REAL(sem_wait)(s);
  return wait(s, 0, 0, stem_take_site());
}

STEM_EXPORT int sem_trywait(sem_t* s) {
  if (!stem_active()) return STEM_REAL(sem_trywait)(s);
  STEM_ENTER(stem_self());
  return wait(s, 1, 0, stem_take_site());
}

STEM_EXPORT int sem_timedwait(sem_t* s, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(sem_timedwait)(s, until);
  if (stem_bad_time(until)) return errno = EINVAL, -1;
  return wait(s, 0, stem_deadline(CLOCK_REALTIME, until), stem_take_site());
}

STEM_EXPORT int sem_clockwait(sem_t* s, clockid_t clock, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(sem_clockwait)(s, clock, until);
  if (stem_bad_time(until) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return errno = EINVAL, -1;
  return wait(s, 0, stem_deadline(clock, until), stem_take_site());
}

STEM_EXPORT int sem_post(sem_t* s) {
  if (!stem_active()) return STEM_REAL(sem_post)(s);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_SemPost, s, site, 0, 0, 0);
  int r = STEM_REAL(sem_post)(s);
  if (r) {
    stem_refused(self, s, errno, site);
    return r;
  }
  stem_event(self, STEM_KIND_SemPost, 0, s, 0, 0, site);
  stem_enables();
  stem_done(self);
  return 0;
}

STEM_EXPORT int sem_init(sem_t* s, int shared, unsigned value) {
  if (!stem_active()) return STEM_REAL(sem_init)(s, shared, value);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_SemInit, s, site, 0, 0, 0);
  int r = STEM_REAL(sem_init)(s, shared, value);
  if (r) {
    stem_refused(self, s, errno, site);
    return r;
  }
  stem_event(self, STEM_KIND_SemInit, 0, s, value, 0, site);
  stem_done(self);
  return 0;
}

/* How much a semaphore holds is shared state too. What was seen must hold wherever the trace is reordered: told as an
 * initialisation to the count that it has, which keeps its place among all uses. */
STEM_EXPORT int sem_getvalue(sem_t* s, int* value) {
  if (!stem_active()) return STEM_REAL(sem_getvalue)(s, value);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  STEM_ENTER(self);
  stem_visible(self, STEM_KIND_SemInit, s, site, 0, 0, 0);
  int count = count_of(s);
  stem_event(self, STEM_KIND_SemInit, STEM_FLAG_TRY, s, (uint64_t)count, 0, site);
  stem_done(self);
  stem_write(value, (uint32_t)count, 0, sizeof *value, site);
  return 0;
}

/* A named semaphore begins with what is in it now. */
STEM_EXPORT sem_t* sem_open(const char* name, int flags, ...) {
  unsigned mode = 0, value = 0;
  if (flags & 0100 /* O_CREAT */) {
    __builtin_va_list list;
    __builtin_va_start(list, flags);
    mode = __builtin_va_arg(list, unsigned);
    value = __builtin_va_arg(list, unsigned);
    __builtin_va_end(list);
  }
  sem_t* s = STEM_REAL(sem_open)(name, flags, mode, value);
  if (!stem_on || s == SEM_FAILED) return s;
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_SemInit, s, site, 0, 0, 0);
  stem_event(self, STEM_KIND_SemInit, 0, s, (uint64_t)count_of(s), 0, site);
  stem_done(self);
  return s;
}
