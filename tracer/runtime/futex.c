/* Futexes that a program uses itself, through syscall(): std::atomic::wait and hand-made locks.
 *
 * The word is read as an atomic read event (that is what decides); the sleep itself is a Yield that is enabled by a wake. So
 * the value carries the order, as it does in the program, and a sleep that nobody ends is a deadlock that is seen.
 * Futexes between processes and the operations on priority inheritance go to the kernel as they are. */
#include <errno.h>
#include <stdarg.h>

#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/access.h"
#include "tracer/runtime/sys.h"

static int is_woken(struct stem_thread* t, uintptr_t word) {
  (void)word;
  return t->futex_word == 0;
}

static long answer(long r) {
  if (r >= 0) return r;
  errno = (int)-r;
  return -1;
}

static long wait(struct stem_thread* self, uint32_t* word, uint32_t expected, uint64_t deadline, const void* site) {
  /* Reading and going to sleep are one step: nobody runs in between, as in the kernel. */
  stem_visible(self, STEM_KIND_Read, word, site, 0, 0, 0);
  uint32_t value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  stem_append(self, stem_head(STEM_KIND_Read, 4 | STEM_AUX_ATOMIC | STEM_AUX_PINNED, (uint64_t)(uintptr_t)word), value, 0, stem_site_id(site));
  if (value == expected) {
    self->futex_word = (uint64_t)(uintptr_t)word;
    self->wait_order = ++stem_sched.wait_order;
  }
  stem_done(self);
  if (value != expected) return -EAGAIN;
  int timed_out = stem_visible(self, STEM_KIND_Yield, word, site, is_woken, (uintptr_t)word, deadline);
  self->futex_word = 0;
  stem_event(self, STEM_KIND_Yield, timed_out ? STEM_FLAG_TIMED | STEM_FLAG_TIMEOUT : 0, word, 0, 0, site);
  stem_done(self);
  return timed_out ? -ETIMEDOUT : 0;
}

static long wake(struct stem_thread* self, uint32_t* word, uint32_t count, const void* site) {
  long woken = 0;
  stem_visible(self, STEM_KIND_Yield, word, site, 0, 0, 0);
  while ((uint32_t)woken < count) {
    struct stem_thread* oldest = 0;
    for (uint32_t i = 0; i < stem_live_count; i++) {
      struct stem_thread* t = stem_live[i];
      if (t->futex_word == (uint64_t)(uintptr_t)word && (!oldest || t->wait_order < oldest->wait_order)) oldest = t;
    }
    if (!oldest) break;
    oldest->futex_word = 0;
    woken++;
  }
  stem_event(self, STEM_KIND_Yield, 0, word, 0, 0, site);
  stem_enables();
  stem_done(self);
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
    if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET)
      return answer(wait(self, (uint32_t*)a[0], (uint32_t)a[2], deadline_of((int)a[1], (const struct timespec*)a[3]), site));
    if (operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET) return answer(wake(self, (uint32_t*)a[0], (uint32_t)a[2], site));
    stem_note("a futex operation that is not modelled goes to the kernel: its waiters are not seen by STEM");
  }
  if (number == SYS_gettid || number == SYS_getpid) return answer(stem_sys6(number, a[0], a[1], a[2], a[3], a[4], a[5]));
  stem_outside_begin(self);
  long r = stem_sys6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  stem_outside_end(self);
  return answer(r);
}
