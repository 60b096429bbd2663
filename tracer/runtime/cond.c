/* Condition variables: modelled wholly. Who waits is kept with the waiting threads; the real object is never touched, so which
 * waiter a signal wakes is ours to say: the one that the schedule names, else the one that waits longest (random mode: any).
 * A wait is three operations: Wait (release and block), Wake, Lock. */
#include "tracer/runtime/sync.h"

static int is_woken(struct stem_thread* t, uintptr_t cond) {
  (void)cond;
  return t->waiting_on == 0 || t->cancelled;
}

static int wait(pthread_cond_t* c, pthread_mutex_t* m, uint64_t deadline, const void* site) {
  struct stem_thread* self = stem_self();
  unsigned flags = deadline ? STEM_FLAG_TIMED : 0;
  stem_visible(self, STEM_KIND_Wait, c, site, 0, 0, 0);
  self->waiting_on = (uint64_t)(uintptr_t)c;
  self->wait_order = ++stem_sched.wait_order;
  self->woken_by = 0;
  int r = STEM_REAL(pthread_mutex_unlock)(m);
  if (r) {
    self->waiting_on = 0;
    return stem_refused(self, c, r, site);
  }
  stem_event(self, STEM_KIND_Wait, flags, c, (uint64_t)(uintptr_t)m, 0, site);
  stem_enables();
  stem_done(self);

  int timed_out = stem_visible(self, STEM_KIND_Wake, c, site, is_woken, 0, deadline);
  int cancelled = !timed_out && self->waiting_on != 0;
  self->waiting_on = 0;
  stem_event(self, STEM_KIND_Wake, flags | (timed_out ? STEM_FLAG_TIMEOUT : cancelled ? STEM_FLAG_SPURIOUS : 0), c, self->woken_by, 0, site);
  stem_done(self);

  r = stem_mutex_lock(self, m, 0, 0, site);
  if (cancelled) stem_cancellation_point(self);
  return r ? r : timed_out ? ETIMEDOUT : 0;
}

STEM_EXPORT int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  if (!stem_active()) return STEM_REAL(pthread_cond_wait)(c, m);
  return wait(c, m, 0, stem_take_site());
}

STEM_EXPORT int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_cond_timedwait)(c, m, until);
  if (stem_bad_time(until)) return EINVAL;
  clockid_t clock = c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME; /* pthread_condattr_setclock */
  return wait(c, m, stem_deadline(clock, until), stem_take_site());
}

STEM_EXPORT int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_cond_clockwait)(c, m, clock, until);
  if (stem_bad_time(until) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return EINVAL;
  return wait(c, m, stem_deadline(clock, until), stem_take_site());
}

static void wake(struct stem_thread* t, struct stem_thread* by) {
  t->waiting_on = 0;
  t->woken_by = 1 + by->index;
}

static struct stem_thread* pick(uint64_t cond) {
  struct stem_thread* oldest = 0;
  uint32_t waiters = 0;
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (t->waiting_on != cond) continue;
    if (stem_guided_wakes && t->plan_index == stem_guided_wakes - 1) return t;
    if (stem_mode == STEM_MODE_RANDOM) {
      if (stem_random() % ++waiters == 0) oldest = t;
    } else if (!oldest || t->wait_order < oldest->wait_order) {
      oldest = t;
    }
  }
  return oldest;
}

int stem_cond_signal(struct stem_thread* self, const void* c, const void* site) {
  stem_visible(self, STEM_KIND_Signal, c, site, 0, 0, 0);
  struct stem_thread* t = pick((uint64_t)(uintptr_t)c);
  if (t) wake(t, self);
  stem_event(self, STEM_KIND_Signal, 0, c, t ? 1 + t->index : 0, 0, site);
  stem_enables();
  stem_done(self);
  return t != 0;
}

uint64_t stem_cond_broadcast(struct stem_thread* self, const void* c, const void* site) {
  uint64_t woken = 0;
  stem_visible(self, STEM_KIND_Broadcast, c, site, 0, 0, 0);
  for (uint32_t i = 0; i < stem_live_count; i++)
    if (stem_live[i]->waiting_on == (uint64_t)(uintptr_t)c) {
      wake(stem_live[i], self);
      woken++;
    }
  stem_event(self, STEM_KIND_Broadcast, 0, c, woken, 0, site);
  stem_enables();
  stem_done(self);
  return woken;
}

STEM_EXPORT int pthread_cond_signal(pthread_cond_t* c) {
  if (!stem_active()) return STEM_REAL(pthread_cond_signal)(c);
  stem_cond_signal(stem_self(), c, stem_take_site());
  return 0;
}

STEM_EXPORT int pthread_cond_broadcast(pthread_cond_t* c) {
  if (!stem_active()) return STEM_REAL(pthread_cond_broadcast)(c);
  stem_cond_broadcast(stem_self(), c, stem_take_site());
  return 0;
}

/* The real one would wait for its own waiters, of which it has none. */
STEM_EXPORT int pthread_cond_destroy(pthread_cond_t* c) { return STEM_REAL(pthread_cond_destroy)(c); }
