/* Waiting for signals, and timers that send them. A wait lets others run; which signal came is an answer of the outside, fed back
 * on replay without waiting. A running timer means that a signal is to be expected: nobody is deadlocked yet, and sleeping
 * threads sleep for real. */
#include "tracer/runtime/lib.h"

#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tracer/runtime/sys.h"

struct question {
  const sigset_t* set;
  const struct timespec* timeout; /* 0: for ever */
};

static int64_t ask_wait(void* context, void* bytes) {
  struct question* q = context;
  struct stem_thread* self = stem_current;
  struct timespec now = {0, 0};
  int sig = STEM_REAL(sigtimedwait)(q->set, bytes, &now);
  if (sig > 0) return sig;
  int error;
  {
    STEM_OUTSIDE(self);
    sig = q->timeout ? STEM_REAL(sigtimedwait)(q->set, bytes, q->timeout) : STEM_REAL(sigwaitinfo)(q->set, bytes);
    error = errno;
  }
  errno = error;
  return sig;
}

/* The signal, or -1 and errno. On replay one that really is there is taken away as well. */
static int waited(const struct lib_call* call, const char* what, const sigset_t* set, siginfo_t* info, const struct timespec* timeout) {
  struct question q = {set, timeout};
  struct timespec none = {0, 0};
  memset(info, 0, sizeof *info);
  if (lib_feeding()) STEM_REAL(sigtimedwait)(set, info, &none);
  return (int)lib_ask(call, what, info, sizeof *info, ask_wait, &q);
}

STEM_EXPORT int sigwait(const sigset_t* restrict set, int* restrict sig) {
  struct lib_call call = lib_enter(sigwait);
  LIB_PIN(call, 0, set), LIB_PIN(call, 1, sig);
  if (!lib_live()) return STEM_REAL(sigwait)(set, sig);
  siginfo_t info;
  int got;
  do got = waited(&call, "sigwait", set, &info, 0);
  while (got < 0 && errno == EINTR);
  int error = errno;
  if (got > 0) lib_give(&call, sig, &got, sizeof got);
  lib_leave(sigwait, 0);
  return got > 0 ? 0 : error;
}

STEM_EXPORT int sigwaitinfo(const sigset_t* restrict set, siginfo_t* restrict info) {
  struct lib_call call = lib_enter(sigwaitinfo);
  LIB_PIN(call, 0, set), LIB_PIN(call, 1, info);
  if (!lib_live()) return STEM_REAL(sigwaitinfo)(set, info);
  siginfo_t answer;
  int got = waited(&call, "sigwaitinfo", set, &answer, 0);
  if (got > 0 && info) lib_give(&call, info, &answer, sizeof answer);
  lib_leave(sigwaitinfo, 0);
  return got;
}

STEM_EXPORT int sigtimedwait(const sigset_t* restrict set, siginfo_t* restrict info, const struct timespec* restrict timeout) {
  struct lib_call call = lib_enter(sigtimedwait);
  LIB_PIN(call, 0, set), LIB_PIN(call, 1, info), LIB_PIN(call, 2, timeout);
  if (!lib_live()) return STEM_REAL(sigtimedwait)(set, info, timeout);
  siginfo_t answer;
  int got = waited(&call, "sigtimedwait", set, &answer, timeout);
  if (got > 0 && info) lib_give(&call, info, &answer, sizeof answer);
  lib_leave(sigtimedwait, 0);
  return got;
}

/* --- until a handler ran: it runs at the next visible operation, which is at the earliest the first after the return ------------------------- */

static int64_t ask_suspend(void* context, void* bytes) {
  struct stem_thread* self = stem_current;
  if (self->signal_ready) return 0; /* one has come already */
  STEM_OUTSIDE(self);
  STEM_REAL(sigsuspend)(context);
  return 0;
}

static int suspend(const struct lib_call* call, const char* what, const sigset_t* mask) {
  lib_ask(call, what, 0, 0, ask_suspend, (void*)mask);
  stem_sleep_until(stem_current, 0, call->site); /* a visible operation, for the handler to run before it */
  errno = EINTR;
  return -1;
}

STEM_EXPORT int sigsuspend(const sigset_t* mask) {
  struct lib_call call = lib_enter(sigsuspend);
  LIB_PIN(call, 0, mask);
  int result = lib_live() ? suspend(&call, "sigsuspend", mask) : STEM_REAL(sigsuspend)(mask);
  lib_leave(sigsuspend, 0);
  return result;
}

STEM_EXPORT int pause(void) {
  struct lib_call call = lib_enter(pause);
  if (!lib_live()) return STEM_REAL(pause)();
  sigset_t mask;
  STEM_REAL(pthread_sigmask)(SIG_BLOCK, 0, &mask);
  int result = suspend(&call, "pause", &mask);
  lib_leave(pause, 0);
  return result;
}

/* --- timers ----------------------------------------------------------------------------------------------------------------------------------- */


static int64_t do_alarm(void* context, void* bytes) { return STEM_REAL(alarm)(*(unsigned*)context); }

STEM_EXPORT unsigned alarm(unsigned seconds) {
  struct lib_call call = lib_enter(alarm);
  LIB_PIN32(call, 0, seconds);
  if (lib_live()) __atomic_store_n(&stem_signal_sources, seconds != 0, __ATOMIC_RELAXED);
  unsigned left = (unsigned)lib_ask(&call, "alarm", 0, 0, do_alarm, &seconds);
  lib_leave(alarm, 0);
  return left;
}

STEM_EXPORT int setitimer(__itimer_which_t which, const struct itimerval* restrict value, struct itimerval* restrict old) {
  struct lib_call call = lib_enter(setitimer);
  LIB_PIN32(call, 0, which), LIB_PIN(call, 1, value), LIB_PIN(call, 2, old);
  if (lib_live() && value)
    __atomic_store_n(&stem_signal_sources, value->it_value.tv_sec || value->it_value.tv_usec, __ATOMIC_RELAXED);
  struct itimerval before;
  memset(&before, 0, sizeof before);
  int result = STEM_REAL(setitimer)(which, value, &before);
  if (result == 0 && old) lib_give(&call, old, &before, sizeof before);
  lib_leave(setitimer, 0);
  return result;
}
