/* Futexes that a program or its C++ library uses through syscall(): std::atomic::wait, futures, latches, hand-made
 * locks. Told as the compiled runtime tells them (tracer/runtime/futex.c): a sleep is Lock, Read of the word (pinned:
 * it decides), Wait, Wake, Lock, Unlock; a wake-up is Lock, Signal or Broadcast, Unlock. The mutex has no memory of its
 * own; its address is the word's second byte. */
#include <errno.h>
#include <limits.h>

#include "tracer/binary/engine.h"

static uint64_t mutex_of(uint64_t word) { return word + 1; }

static struct bin_thread* holder_of(uint64_t mutex) {
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->futex_mutex == mutex) return bin.live[i];
  return 0;
}

static int is_free(struct bin_thread* t, uint64_t mutex) {
  (void)t;
  return !holder_of(mutex);
}

static int is_woken(struct bin_thread* t, uint64_t word) {
  (void)word;
  return t->waiting_on == 0;
}

static void enter(struct bin_thread* self, uint64_t word, uint64_t site) {
  bin_visible(self, STEM_KIND_Lock, mutex_of(word), site, is_free, mutex_of(word), 0);
  self->futex_mutex = mutex_of(word);
  bin_event(self, STEM_KIND_Lock, 0, mutex_of(word), 1, site);
}

static void leave(struct bin_thread* self, uint64_t word, uint64_t site) {
  bin_visible(self, STEM_KIND_Unlock, mutex_of(word), site, 0, 0, 0);
  self->futex_mutex = 0;
  bin_event(self, STEM_KIND_Unlock, 0, mutex_of(word), 0, site);
}

static uint32_t look(struct bin_thread* self, uint64_t word, uint64_t site) {
  bin_visible(self, STEM_KIND_Read, word, site, 0, 0, 0);
  uint32_t value = *(const volatile uint32_t*)word;
  self->last_event = bin_append(stem_head(STEM_KIND_Read, sizeof value | STEM_AUX_ATOMIC | STEM_AUX_PINNED, word),
                                value, 0, (uint32_t)site);
  self->last_read = 0;
  self->since_branch = 1;
  return value;
}

uint64_t bin_futex_wait(struct bin_thread* self, uint64_t word, uint32_t expected, uint64_t deadline, uint64_t site) {
  unsigned flags = deadline ? BIN_TIMED : 0;
  enter(self, word, site);
  if (look(self, word, site) != expected) {
    leave(self, word, site);
    return EAGAIN;
  }
  bin_visible(self, STEM_KIND_Wait, word, site, 0, 0, 0);
  self->waiting_on = word;
  self->wait_order = ++bin.wait_order;
  self->woken_by = 0;
  self->futex_mutex = 0;
  bin_event(self, STEM_KIND_Wait, flags, word, mutex_of(word), site);
  int timed_out = bin_visible(self, STEM_KIND_Wake, word, site, is_woken, 0, deadline);
  self->waiting_on = 0;
  bin_event(self, STEM_KIND_Wake, flags | (timed_out ? BIN_TIMEOUT : 0), word, timed_out ? 0 : self->woken_by, site);
  enter(self, word, site);
  leave(self, word, site);
  return timed_out ? ETIMEDOUT : 0;
}

uint64_t bin_futex_wake(struct bin_thread* self, uint64_t word, uint32_t count, uint64_t site) {
  uint64_t woken = 0;
  enter(self, word, site);
  if (count >= INT_MAX)
    woken = bin_cond_broadcast(self, word, site);
  else
    while (woken < count && bin_cond_signal(self, word, site)) woken++;
  leave(self, word, site);
  return woken;
}
