/* Clocks, and sleeping. Clocks start from real time and jump over what sleeping threads skip (clock.c); what they said is
 * recorded and fed back. A sleep is a Yield at which others are let go first; no time passes for real. */
#include "tracer/runtime/lib.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull

/* --- clocks ----------------------------------------------------------------------------------------------------------------- */

/* stem_now leaves the clocks of processor time alone and moves all others together. */
static int64_t ask_clock(void* context, void* bytes) {
  clockid_t clock = *(clockid_t*)context;
  struct timespec* now = bytes;
  int result = STEM_REAL(clock_gettime)(clock, now);
  if (result == 0 && lib_live() && clock >= 0) { /* below 0: a thread's or process's clock of processor time */
    uint64_t ns = stem_now(clock);
    now->tv_sec = (time_t)(ns / SECOND);
    now->tv_nsec = (long)(ns % SECOND);
  }
  return result;
}

/* The time by that clock, recorded or fed back. */
static int read_clock(const struct lib_call* call, const char* what, clockid_t clock, struct timespec* now) {
  int result = (int)lib_ask(call, what, now, sizeof *now, ask_clock, &clock);
  if (result == 0 && lib_live() && lib_feeding() && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC))
    stem_clock_reached(clock, (uint64_t)now->tv_sec * SECOND + (uint64_t)now->tv_nsec);
  return result;
}

STEM_EXPORT int clock_gettime(clockid_t clock, struct timespec* to) {
  struct lib_call call = lib_enter(clock_gettime);
  LIB_PIN32(call, 0, clock), LIB_PIN(call, 1, to);
  struct timespec now = {0, 0};
  int result = read_clock(&call, "clock_gettime", clock, &now);
  if (result == 0) lib_give(&call, to, &now, sizeof now);
  lib_leave(clock_gettime, 0);
  return result;
}

STEM_EXPORT int timespec_get(struct timespec* to, int base) {
  struct lib_call call = lib_enter(timespec_get);
  LIB_PIN(call, 0, to), LIB_PIN32(call, 1, base);
  struct timespec now = {0, 0};
  int result = base == TIME_UTC && read_clock(&call, "timespec_get", CLOCK_REALTIME, &now) == 0 ? base : 0;
  if (result) lib_give(&call, to, &now, sizeof now);
  lib_leave(timespec_get, 0);
  return result;
}

STEM_EXPORT time_t time(time_t* to) {
  struct lib_call call = lib_enter(time);
  LIB_PIN(call, 0, to);
  struct timespec now = {0, 0};
  read_clock(&call, "time", CLOCK_REALTIME, &now);
  if (to) lib_give(&call, to, &now.tv_sec, sizeof now.tv_sec);
  lib_leave(time, 0);
  return now.tv_sec;
}

STEM_EXPORT int gettimeofday(struct timeval* restrict to, void* restrict zone) {
  struct lib_call call = lib_enter(gettimeofday);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, zone);
  struct timespec now = {0, 0};
  read_clock(&call, "gettimeofday", CLOCK_REALTIME, &now);
  struct timeval tv = {now.tv_sec, now.tv_nsec / 1000};
  struct timezone tz = {0, 0};
  lib_give(&call, to, &tv, sizeof tv);
  if (zone) lib_give(&call, zone, &tz, sizeof tz);
  lib_leave(gettimeofday, 0);
  return 0;
}

static int64_t ask_cpu(void* context, void* bytes) { return (int64_t)STEM_REAL(clock)(); }

STEM_EXPORT clock_t clock(void) {
  struct lib_call call = lib_enter(clock);
  clock_t result = (clock_t)lib_ask(&call, "clock", 0, 0, ask_cpu, 0);
  lib_leave(clock, 0);
  return result;
}

static int64_t ask_times(void* context, void* bytes) { return (int64_t)STEM_REAL(times)(bytes); }

STEM_EXPORT clock_t times(struct tms* to) {
  struct lib_call call = lib_enter(times);
  LIB_PIN(call, 0, to);
  struct tms answer = {0};
  clock_t result = (clock_t)lib_ask(&call, "times", &answer, sizeof answer, ask_times, 0);
  if (to) lib_give(&call, to, &answer, sizeof answer);
  lib_leave(times, 0);
  return result;
}

static int64_t ask_usage(void* context, void* bytes) { return STEM_REAL(getrusage)(*(int*)context, bytes); }

STEM_EXPORT int getrusage(__rusage_who_t who, struct rusage* to) {
  struct lib_call call = lib_enter(getrusage);
  LIB_PIN32(call, 0, who), LIB_PIN(call, 1, to);
  struct rusage answer = {0};
  int which = (int)who;
  int result = (int)lib_ask(&call, "getrusage", &answer, sizeof answer, ask_usage, &which);
  if (result == 0) lib_give(&call, to, &answer, sizeof answer);
  lib_leave(getrusage, 0);
  return result;
}

/* --- sleeping ----------------------------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(const struct timespec* t) {
  return t->tv_sec > (time_t)(UINT64_MAX / 4 / SECOND) ? UINT64_MAX / 4 : (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

static bool valid(const struct timespec* t) { return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)SECOND; }

/* The request, read as the program's memory when the program itself calls. */
static struct timespec request(const struct lib_call* call, const struct timespec* from) {
  struct timespec t = {0, 0};
  if (call->site && lib_live())
    lib_read(&t, from, sizeof t, call->site);
  else
    t = *from;
  return t;
}

static void doze(uint64_t deadline, const void* site) {
  struct stem_thread* self = stem_self();
  stem_sleep_until(self, deadline, site);
  stem_cancellation_point(self);
}

STEM_EXPORT int nanosleep(const struct timespec* wanted, struct timespec* left) {
  struct lib_call call = lib_enter(nanosleep);
  LIB_PIN(call, 0, wanted), LIB_PIN(call, 1, left);
  if (!lib_live()) return STEM_REAL(nanosleep)(wanted, left);
  struct timespec t = request(&call, wanted);
  lib_leave(nanosleep, 0);
  if (!valid(&t)) {
    errno = EINVAL;
    return -1;
  }
  doze(stem_deadline_in(nanoseconds(&t)), call.site);
  return 0;
}

/* C11's: no errno, and -1 only when a signal came. */
STEM_EXPORT int thrd_sleep(const struct timespec* wanted, struct timespec* left) {
  struct lib_call call = lib_enter(thrd_sleep);
  LIB_PIN(call, 0, wanted), LIB_PIN(call, 1, left);
  if (!lib_live()) return STEM_REAL(thrd_sleep)(wanted, left);
  struct timespec t = request(&call, wanted);
  lib_leave(thrd_sleep, 0);
  if (!valid(&t)) return -2;
  doze(stem_deadline_in(nanoseconds(&t)), call.site);
  return 0;
}

STEM_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec* wanted, struct timespec* left) {
  struct lib_call call = lib_enter(clock_nanosleep);
  LIB_PIN32(call, 0, clock), LIB_PIN32(call, 1, flags), LIB_PIN(call, 2, wanted), LIB_PIN(call, 3, left);
  if (!lib_live()) return STEM_REAL(clock_nanosleep)(clock, flags, wanted, left);
  struct timespec t = request(&call, wanted);
  lib_leave(clock_nanosleep, 0);
  if (!valid(&t)) return EINVAL;
  doze(flags & TIMER_ABSTIME ? stem_deadline(clock, &t) : stem_deadline_in(nanoseconds(&t)), call.site);
  return 0;
}

STEM_EXPORT int usleep(useconds_t microseconds) {
  struct lib_call call = lib_enter(usleep);
  LIB_PIN32(call, 0, microseconds);
  if (!lib_live()) return STEM_REAL(usleep)(microseconds);
  lib_leave(usleep, 0);
  doze(stem_deadline_in((uint64_t)microseconds * 1000), call.site);
  return 0;
}

STEM_EXPORT unsigned sleep(unsigned seconds) {
  struct lib_call call = lib_enter(sleep);
  LIB_PIN32(call, 0, seconds);
  if (!lib_live()) return STEM_REAL(sleep)(seconds);
  lib_leave(sleep, 0);
  doze(stem_deadline_in(seconds * SECOND), call.site);
  return 0;
}
