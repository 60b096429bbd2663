/* The scheduler: one token, threads take turns, and switch at visible operations only.
 *
 * A thread that may not go on, or whose countdown is used up, publishes what it is about to do and gives the token back;
 * the next holder is chosen among those whose operation can be done (choose.c, guided.c). So a blocking operation never
 * blocks in the C library, and when nobody can be chosen the run is at a deadlock, which is reported, not suffered.
 * Costs: an operation within the countdown a decrement, a question that ends with the same thread some 50 ns, a switch about
 * 2 us (two system calls; all threads share one CPU, so nothing is gained by spinning). */
#include <errno.h>

#include "tracer/runtime/signals.h"
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

struct stem_sched stem_sched = {.stop_at = UINT64_MAX, .signal_at = UINT64_MAX};
volatile uint32_t stem_signals_pending;
uint32_t stem_signal_sources, stem_signal_handlers;

STEM_EXPORT __attribute__((noinline)) void __stem_stop_here(void) { __asm__ volatile("" ::: "memory"); }

uint64_t stem_real_nanoseconds(void) {
  struct timespec ts;
  stem_sys(SYS_clock_gettime, CLOCK_MONOTONIC, &ts, 0);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void stem_account(void) {
  int64_t used = stem_sched.granted - __stem_hot.countdown;
  if (used > 0) {
    stem_sched.operations += (uint64_t)used;
    if (stem_mode == STEM_MODE_GUIDED) stem_guided_used(used);
  }
  stem_sched.granted = __stem_hot.countdown;
}

static void set_countdown(int64_t n) {
  stem_account();
  if (stem_sched.detached || stem_signals_pending) n = 0;
  if (stem_sched.stop_at != UINT64_MAX && stem_sched.operations <= stem_sched.stop_at) {
    int64_t left = (int64_t)(stem_sched.stop_at - stem_sched.operations);
    if (n > left) n = left;
  }
  if (stem_sched.signal_at != UINT64_MAX) {
    int64_t left = stem_sched.operations < stem_sched.signal_at ? (int64_t)(stem_sched.signal_at - stem_sched.operations) : 0;
    if (n > left) n = left;
  }
  stem_sched.granted = __stem_hot.countdown = n < 0 ? 0 : n;
}

int stem_is_enabled(struct stem_thread* t) {
  if (t->state != STEM_THREAD_PARKED) return 0;
  if (stem_interrupted(t)) return 1;
  return !t->pending.enabled || t->pending.enabled(t, t->pending.arg);
}

/* With the lock held and no holder. `t` is parked; its operation is enabled, or its deadline is what lets it go on. */
static void grant(struct stem_thread* t, int64_t countdown, struct stem_thread* asking) {
  t->timed_out = !stem_is_enabled(t);
  if (t->timed_out && t->pending.deadline) stem_clock_reached(CLOCK_MONOTONIC, t->pending.deadline);
  t->state = STEM_THREAD_RUNNING;
  stem_sched.holder = t;
  stem_sched.idle_since = 0;
  t->granted_at = stem_sched.operations;
  int counts = !t->pending.arriving && !stem_interrupted(t);
  if (counts) {
    if (stem_sched.operations == stem_sched.stop_at) t->stop_here = 1;
    stem_sched.operations++;
    if (stem_mode == STEM_MODE_GUIDED) stem_guided_used(1);
  } else if (countdown < INT64_MAX / 2) {
    countdown++;
  }
  stem_sched.granted = __stem_hot.countdown;
  set_countdown(countdown);
  if (stem_sched.writer != t) {
    stem_sched.writer = t;
    stem_append(t, stem_head(STEM_RAW_Switch, 0, 0), t->index, 0, 0);
    stem_spin_reset();
  }
  __atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
  if (t != asking) stem_futex_wake(&t->go, 1, 0);
}

/* Nobody is enabled. Time passes, somebody outside comes back, or this is the end. */
static struct stem_thread* nobody(void) {
  struct stem_thread* first = 0;
  int external = 0, parked = 0;
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (t->state != STEM_THREAD_PARKED) continue;
    parked = 1;
    external |= t->pending.external;
    if (t->pending.deadline && (!first || t->pending.deadline < first->pending.deadline)) first = t;
  }
  if (first && (stem_sched.outside + (uint32_t)external + stem_signal_sources == 0 || first->pending.deadline <= stem_now(CLOCK_MONOTONIC)))
    return first;
  uint64_t now = stem_real_nanoseconds();
  if (!stem_sched.idle_since) stem_sched.idle_since = now;
  int patience = (stem_signal_sources || stem_signal_handlers) && now - stem_sched.idle_since < 10000000000u;
  if (!first && parked && !stem_sched.outside && !external && !patience && !stem_sched.over) stem_report_stuck(stem_sched.writer, "deadlock");
  return 0;
}

void stem_pass_token(struct stem_thread* asking) {
  struct stem_thread* next = 0;
  int64_t countdown = 0;
  if (stem_sched.operations >= stem_sched.signal_at && stem_signals_due) stem_signals_due();
  if (stem_mode == STEM_MODE_GUIDED) switch (stem_guided_choose(&next, &countdown)) {
      case STEM_GUIDED_GRANT:
        return grant(next, countdown, asking);
      case STEM_GUIDED_WAIT:
        if (!stem_sched.idle_since) stem_sched.idle_since = stem_real_nanoseconds();
        if (stem_real_nanoseconds() - stem_sched.idle_since < 10000000000u) return;
        stem_guided_give_up("the thread whose turn it is has been blocked outside the program for ten seconds");
        break;
      case STEM_GUIDED_OVER:
        stem_mode = STEM_MODE_DEFAULT;
        /* Whoever had the last turn of the plan goes on: a plan that ends is no reason to switch. */
        if (asking && stem_is_enabled(asking) && !stem_spinning(asking)) next = asking;
    }
  if (!next) next = stem_choose(asking);
  if (!next) next = nobody();
  if (next) grant(next, stem_spinning(next) ? stem_spin_distance(next) : stem_mode == STEM_MODE_PCT ? stem_pct_distance() : stem_distance(), asking);
}

static void park(struct stem_thread* self) {
  while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE)) {
    int64_t timeout = 1000000000;
    if (!stem_sched.sentinel) stem_sched.sentinel = self;
    if (stem_sched.sentinel == self) timeout = self->pending.external ? 1000000 : 50000000;
    if (self->pending.deadline) {
      int64_t left = (int64_t)(self->pending.deadline - stem_now(CLOCK_MONOTONIC));
      if (left < timeout) timeout = left < 1000000 ? 1000000 : left;
    }
    long r = stem_futex_wait(&self->go, 0, timeout, 0);
    if (r == -ETIMEDOUT || r == -EINTR) stem_watch(self);
  }
  if (stem_sched.sentinel == self) stem_sched.sentinel = 0;
}

/* Publishes self->pending and returns when the token is ours (again). */
static void wait_for_token(struct stem_thread* self) {
  stem_lock(&stem_sched.lock);
  if (self->state == STEM_THREAD_OUTSIDE) {
    stem_sched.outside--;
    if (self->watchdog) stem_sched.detached--;
    self->watchdog = 0;
  }
  self->state = STEM_THREAD_PARKED;
  if (stem_sched.holder == self) {
    stem_account();
    stem_spin_ask(self);
    stem_sched.holder = 0;
  }
  if (!stem_sched.holder) stem_pass_token(self);
  stem_unlock(&stem_sched.lock);
  if (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE)) park(self);
  __atomic_store_n(&self->go, 0, __ATOMIC_RELAXED);
}

static void deliver_signals(struct stem_thread* self) {
  while (stem_interrupted(self)) {
    stem_arrive(self);
    stem_signals_deliver(self);
  }
}

static __attribute__((noinline)) int ask(struct stem_thread* self, const struct stem_pending* pending) {
  if (self->state == STEM_THREAD_ENDED) return 0;
  for (;;) {
    if (stem_signals_pending) deliver_signals(self);
    self->pending = *pending;
    wait_for_token(self);
    if (self->stop_here) {
      self->stop_here = 0;
      __stem_stop_here();
    }
    int timed_out = (int)self->timed_out;
    self->timed_out = 0;
    if (timed_out && pending->deadline) return 1;
    if (stem_interrupted(self) || timed_out) continue;
    if (!pending->enabled || pending->enabled(self, pending->arg)) return 0;
  }
}

/* --- parallel recording: one critical section over all synchronisation ------------------------------------------------------- */

static void wake_enabled(void) {
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (t->state != STEM_THREAD_PARKED || !stem_is_enabled(t)) continue;
    t->state = STEM_THREAD_RUNNING;
    __atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
    stem_futex_wake(&t->go, 1, 0);
  }
}

static int everybody_waits(void) {
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (t->state != STEM_THREAD_PARKED || t->pending.deadline || t->pending.external || stem_is_enabled(t)) return 0;
  }
  return !stem_signal_sources && !stem_sched.over;
}

static int parallel_visible(struct stem_thread* self, const struct stem_pending* pending) {
  int timed_out = 0;
  if (self->state == STEM_THREAD_ENDED) return 0;
  for (;;) {
    if (stem_interrupted(self)) stem_signals_deliver(self);
    stem_lock(&stem_sched.lock);
    if (!pending->enabled || pending->enabled(self, pending->arg)) break;
    int64_t left = pending->deadline ? (int64_t)(pending->deadline - stem_now(CLOCK_MONOTONIC)) : 1000000000;
    if (pending->deadline && left <= 0) {
      timed_out = 1;
      break;
    }
    if (pending->external && left > 1000000) left = 1000000;
    self->pending = *pending;
    self->state = STEM_THREAD_PARKED;
    if (everybody_waits()) stem_report_stuck(self, "deadlock");
    stem_unlock(&stem_sched.lock);
    if (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE)) stem_futex_wait(&self->go, 0, left, 0);
    stem_lock(&stem_sched.lock);
    __atomic_store_n(&self->go, 0, __ATOMIC_RELAXED);
    self->state = STEM_THREAD_RUNNING;
    stem_unlock(&stem_sched.lock);
  }
  stem_append(self, stem_head(STEM_RAW_Ticket, 0, 0), stem_ticket(), 0, 0);
  return timed_out;
}

/* --- what the rest of the runtime calls ----------------------------------------------------------------------------------------- */

/* Within the countdown, if the operation can be done: counted, and nobody need be told what it is. */
static inline int may_go_on(struct stem_thread* self, stem_enabled_fn enabled, uintptr_t arg) {
  if (STEM_UNLIKELY(stem_parallel || __stem_hot.countdown <= 0 || stem_sched.holder != self || stem_signals_pending)) return 0;
  if (enabled && !enabled(self, arg)) return 0;
  __stem_hot.countdown--;
  return 1;
}

static int visible(struct stem_thread* self, const struct stem_pending* pending) {
  if (STEM_UNLIKELY(stem_parallel)) return parallel_visible(self, pending);
  return may_go_on(self, pending->enabled, pending->arg) ? 0 : ask(self, pending);
}

int stem_visible(struct stem_thread* self, unsigned kind, const volatile void* addr, const void* site, stem_enabled_fn enabled,
                 uintptr_t arg, uint64_t deadline) {
  if (may_go_on(self, enabled, arg)) return 0;
  struct stem_pending pending = {enabled, arg, (uint64_t)(uintptr_t)addr, site, deadline, (uint8_t)kind, 0, 0};
  return visible(self, &pending);
}

int stem_visible_external(struct stem_thread* self, unsigned kind, const volatile void* addr, const void* site,
                          stem_enabled_fn enabled, uintptr_t arg, uint64_t deadline) {
  struct stem_pending pending = {enabled, arg, (uint64_t)(uintptr_t)addr, site, deadline, (uint8_t)kind, 1, 0};
  return visible(self, &pending);
}

void stem_done(struct stem_thread* self) {
  (void)self;
  if (STEM_LIKELY(!stem_parallel) || self->state == STEM_THREAD_ENDED) return;
  wake_enabled();
  stem_unlock(&stem_sched.lock);
}

void stem_enables(void) {
  if (stem_mode == STEM_MODE_PCT) set_countdown(0);
}

void stem_new_thread_is_there(void) {
  if (stem_parallel || stem_mode == STEM_MODE_GUIDED) return;
  set_countdown(stem_mode == STEM_MODE_DEFAULT ? stem_distance() : 0);
}

void stem_outside_begin(struct stem_thread* self) {
  if (!stem_on || self->state == STEM_THREAD_ENDED) return;
  stem_lock(&stem_sched.lock);
  if (self->state == STEM_THREAD_RUNNING) {
    self->state = STEM_THREAD_OUTSIDE;
    stem_sched.outside++;
    if (!stem_parallel && stem_sched.holder == self) {
      stem_account();
      stem_sched.holder = 0;
      stem_pass_token(0);
    }
  }
  stem_unlock(&stem_sched.lock);
}

void stem_arrive(struct stem_thread* self) {
  if (stem_sched.holder == self) return;
  self->pending = (struct stem_pending){.kind = STEM_KIND_Yield, .arriving = 1};
  wait_for_token(self);
  self->timed_out = 0;
}

void stem_outside_end(struct stem_thread* self) {
  if (!stem_on || self->state != STEM_THREAD_OUTSIDE) return;
  if (!stem_parallel) return stem_arrive(self);
  stem_lock(&stem_sched.lock);
  self->state = STEM_THREAD_RUNNING;
  stem_sched.outside--;
  stem_unlock(&stem_sched.lock);
}

/* Parallel: the lock is still held from stem_visible, because whoever joins us may hold it until we are gone. */
void stem_leave(struct stem_thread* self) {
  if (!stem_parallel) stem_lock(&stem_sched.lock);
  self->state = STEM_THREAD_ENDED;
  for (uint32_t i = 0; i < stem_live_count; i++)
    if (stem_live[i] == self) stem_live[i] = stem_live[--stem_live_count];
  if (stem_parallel) {
    wake_enabled();
  } else if (stem_sched.holder == self) {
    stem_account();
    stem_sched.holder = 0;
    stem_pass_token(0);
  }
  stem_unlock(&stem_sched.lock);
}

static int never(struct stem_thread* t, uintptr_t arg) {
  (void)t;
  (void)arg;
  return 0;
}

void stem_sleep_until(struct stem_thread* self, uint64_t deadline, const void* site) {
  stem_visible(self, STEM_KIND_Yield, 0, site, deadline ? never : 0, 0, deadline);
  stem_event(self, STEM_KIND_Yield, deadline ? STEM_FLAG_TIMED : 0, 0, 0, 0, site);
  stem_done(self);
}

void stem_sched_init(void) {
  uint32_t live = stem_live_count;
  stem_sched = (struct stem_sched){.stop_at = UINT64_MAX, .signal_at = UINT64_MAX};
  struct stem_thread* self = stem_current;
  stem_live_count = live;
  self->state = STEM_THREAD_RUNNING;
  stem_sched.holder = stem_sched.writer = self;
  stem_sched.random = stem_option_number("seed", 1) * 0x9e3779b97f4a7c15u + 0x1234567;
  stem_sched.switch_one_in = stem_option_number("switch", 0);
  stem_sched.switch_asked = stem_sched.switch_one_in != 0;
  if (!stem_sched.switch_one_in) stem_sched.switch_one_in = 1000;
  const char* stop = stem_option("stop");
  if (stop && *stop >= '0' && *stop <= '9') stem_sched.stop_at = stem_option_number("stop", UINT64_MAX);
  if (stem_mode == STEM_MODE_PCT) stem_pct_init();
  if (stem_mode == STEM_MODE_GUIDED) stem_guided_init();
  __stem_hot.countdown = 0;
}
