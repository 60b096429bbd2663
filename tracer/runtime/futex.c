/* Futexes that a program or its C++ library uses through syscall(): std::atomic::wait, futures, latches, hand-made locks.
 *
 * The kernel looks at the word and goes to sleep in one step, and a wake-up ends the sleep of those who sleep then. That is a
 * condition variable whose mutex is held for no longer than that, and so it is told: a sleep is Lock, Read of the word (pinned:
 * it decides), Wait, Wake, Lock, Unlock; a wake-up is Lock, Signal or Broadcast, Unlock. The mutex has no memory of its own;
 * its address is the word's second byte. So the order of sleeps and wake-ups is in the trace like any other, and a sleep
 * that nobody ends is a deadlock that is seen.
 * Sleeps with a mask of their own and the operations on priority inheritance go to the kernel as they are. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>

#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/access.h"
#include "tracer/runtime/sync.h"
#include "tracer/runtime/sys.h"

static const void* mutex_of(const uint32_t* word) { return (const char*)word + 1; }

struct stem_thread* stem_futex_holder(uint64_t mutex) {
  for (uint32_t i = 0; i < stem_live_count; i++)
    if (stem_live[i]->futex_mutex == mutex) return stem_live[i];
  return 0;
}

int stem_futex_free(struct stem_thread* t, uintptr_t mutex) {
  (void)t;
  return !stem_futex_holder(mutex);
}

static void enter(struct stem_thread* self, const uint32_t* word, const void* site) {
  stem_visible(self, STEM_KIND_Lock, mutex_of(word), site, stem_futex_free, (uintptr_t)mutex_of(word), 0);
  self->futex_mutex = (uint64_t)(uintptr_t)mutex_of(word);
  stem_event(self, STEM_KIND_Lock, 0, mutex_of(word), 1, 0, site);
  stem_done(self);
}

static void leave(struct stem_thread* self, const uint32_t* word, const void* site) {
  stem_visible(self, STEM_KIND_Unlock, mutex_of(word), site, 0, 0, 0);
  self->futex_mutex = 0;
  stem_event(self, STEM_KIND_Unlock, 0, mutex_of(word), 0, 0, site);
  stem_done(self);
}

static int is_woken(struct stem_thread* t, uintptr_t word) {
  (void)word;
  return t->waiting_on == 0;
}

static long answer(long r) {
  if (r >= 0) return r;
  errno = (int)-r;
  return -1;
}

static long wait(struct stem_thread* self, uint32_t* word, uint32_t expected, uint64_t deadline, const void* site) {
  unsigned flags = deadline ? STEM_FLAG_TIMED : 0;
  enter(self, word, site);
  stem_access_begin(self, STEM_KIND_Read, word, sizeof *word, site);
  uint32_t value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  stem_append(self, stem_head(STEM_KIND_Read, sizeof *word | STEM_AUX_ATOMIC | STEM_AUX_PINNED, (uint64_t)(uintptr_t)word), value, 0, stem_site_id(site));
  stem_access_end(self, word, sizeof *word);
  if (value != expected) {
    leave(self, word, site);
    return -EAGAIN;
  }
  stem_visible(self, STEM_KIND_Wait, word, site, 0, 0, 0);
  self->waiting_on = (uint64_t)(uintptr_t)word;
  self->wait_order = ++stem_sched.wait_order;
  self->woken_by = 0;
  self->futex_mutex = 0;
  stem_event(self, STEM_KIND_Wait, flags, word, (uint64_t)(uintptr_t)mutex_of(word), 0, site);
  stem_enables();
  stem_done(self);
  int timed_out = stem_visible(self, STEM_KIND_Wake, word, site, is_woken, 0, deadline);
  self->waiting_on = 0;
  stem_event(self, STEM_KIND_Wake, flags | (timed_out ? STEM_FLAG_TIMEOUT : 0), word, self->woken_by, 0, site);
  stem_done(self);
  enter(self, word, site);
  leave(self, word, site);
  return timed_out ? -ETIMEDOUT : 0;
}

static long wake(struct stem_thread* self, uint32_t* word, uint32_t count, const void* site) {
  long woken = 0;
  enter(self, word, site);
  if (count >= INT_MAX) {
    woken = (long)stem_cond_broadcast(self, word, site);
  } else {
    while ((uint32_t)woken < count && stem_cond_signal(self, word, site)) woken++;
  }
  leave(self, word, site);
  return woken;
}

static uint64_t deadline_of(int operation, const struct timespec* ts) {
  if (!ts) return 0;
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) return stem_deadline_in((uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec);
  return stem_deadline(operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, ts);
}

STEM_EXPORT long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (!stem_active()) return answer(stem_sys6(number, a[0], a[1], a[2], a[3], a[4], a[5]));
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  STEM_ENTER(self);
  if (number == SYS_futex) {
    int operation = (int)a[1] & FUTEX_CMD_MASK;
    int all = (uint32_t)a[5] == FUTEX_BITSET_MATCH_ANY;
    if (operation == FUTEX_WAIT || (operation == FUTEX_WAIT_BITSET && all))
      return answer(wait(self, (uint32_t*)a[0], (uint32_t)a[2], deadline_of((int)a[1], (const struct timespec*)a[3]), site));
    if (operation == FUTEX_WAKE || (operation == FUTEX_WAKE_BITSET && all)) {
      long woken = wake(self, (uint32_t*)a[0], (uint32_t)a[2], site), left = (long)(uint32_t)a[2] - woken;
      if (left <= 0) return woken;
      long more = stem_sys6(number, a[0], a[1], left, a[3], a[4], a[5]); /* who went to the kernel by himself */
      return more > 0 ? woken + more : woken;
    }
    stem_note("a futex operation that is not modelled goes to the kernel: its waiters are not seen by STEM");
  }
  if (number == SYS_gettid || number == SYS_getpid) return answer(stem_sys6(number, a[0], a[1], a[2], a[3], a[4], a[5]));
  stem_outside_begin(self);
  long r = stem_sys6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  stem_outside_end(self);
  return answer(r);
}
