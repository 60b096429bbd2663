/* Virtual time: the real clock plus what was skipped. A sleep or a deadline that nobody else would use the time of is
 * jumped over, so a program that sleeps for an hour is recorded in no time, and a timeout is a choice of the scheduler.
 * Deadlines are kept on the monotonic clock. */
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

static uint64_t skipped; /* nanoseconds; only grows */

static uint64_t real_now(clockid_t clock) {
  struct timespec ts = {0, 0};
  STEM_REAL(clock_gettime)(clock, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t stem_now(clockid_t clock) {
  uint64_t now = real_now(clock);
  if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || !stem_on) return now;
  return now + __atomic_load_n(&skipped, __ATOMIC_RELAXED);
}

uint64_t stem_deadline_in(uint64_t nanoseconds) {
  uint64_t now = stem_now(CLOCK_MONOTONIC);
  return nanoseconds > UINT64_MAX / 2 - now ? UINT64_MAX / 2 : now + nanoseconds;
}

uint64_t stem_deadline(clockid_t clock, const struct timespec* absolute) {
  if (absolute->tv_sec < 0) return 1;
  uint64_t at = (uint64_t)absolute->tv_sec >= UINT64_MAX / 4000000000u
                    ? UINT64_MAX / 4
                    : (uint64_t)absolute->tv_sec * 1000000000u + (uint64_t)absolute->tv_nsec;
  uint64_t now = stem_now(clock);
  return at <= now ? 1 : stem_deadline_in(at - now);
}

void stem_clock_reached(clockid_t clock, uint64_t nanoseconds) {
  uint64_t now = stem_now(clock);
  if (nanoseconds > now) __atomic_fetch_add(&skipped, nanoseconds - now, __ATOMIC_RELAXED);
}
