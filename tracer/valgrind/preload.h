/* What the preload's files share: asking the tool, wrapping, time. See preload.c. */
#ifndef STEM_TRACER_VALGRIND_PRELOAD_H
#define STEM_TRACER_VALGRIND_PRELOAD_H

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "tracer/valgrind/requests.h"
#include "valgrind.h"

enum {
#define BIN_OP(name) BIN_##name,
#include "tracer/binary/ops.def"
};

extern __thread int stem_busy __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define busy stem_busy
int stem_real_process(int told) __attribute__((visibility("hidden"))); /* by the number that the program knows */

#define ASK(op, object, a, b)                                                                                   \
  VALGRIND_DO_CLIENT_REQUEST_EXPR(0, STEM_REQUEST_BASE + BIN_##op, (unsigned long)(object), (unsigned long)(a), \
                                  (unsigned long)(b), ra, 0)
/* What the model does in place of the C library, the C library does where there is no model. */
#define UNLESS_SCHEDULED(call) \
  if (!ASK(SCHEDULED, 0, 0, 0)) return call
#define HERE unsigned long ra = (unsigned long)__builtin_return_address(0)

/* NAME as the C library's, the thread library's of older systems, and any version of either. */
#define WRAP(type, name, encoded, params, ...)                                                           \
  static type wrap_##name(OrigFn fn, unsigned long ra, __VA_ARGS__);                                     \
  type I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(__VA_ARGS__);                                        \
  type I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(__VA_ARGS__) { FORWARD(name, params); }              \
  type I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, encoded##ZAZa)(__VA_ARGS__);                                  \
  type I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, encoded##ZAZa)(__VA_ARGS__) { FORWARD(name, params); }        \
  type I_WRAP_SONAME_FNNAME_ZZ(libpthreadZdsoZd0, encoded)(__VA_ARGS__);                                 \
  type I_WRAP_SONAME_FNNAME_ZZ(libpthreadZdsoZd0, encoded)(__VA_ARGS__) { FORWARD(name, params); }       \
  type I_WRAP_SONAME_FNNAME_ZZ(libpthreadZdsoZd0, encoded##ZAZa)(__VA_ARGS__);                           \
  type I_WRAP_SONAME_FNNAME_ZZ(libpthreadZdsoZd0, encoded##ZAZa)(__VA_ARGS__) { FORWARD(name, params); } \
  static type wrap_##name(OrigFn fn, unsigned long ra, __VA_ARGS__)
#define FORWARD(name, params) \
  OrigFn fn;                  \
  HERE;                       \
  VALGRIND_GET_ORIG_FN(fn);   \
  return wrap_##name(fn, ra, EXPAND params)
#define EXPAND(...) __VA_ARGS__

#define REAL1(fn, a)        \
  ({                        \
    unsigned long r_;       \
    CALL_FN_W_W(r_, fn, a); \
    (int)r_;                \
  })
#define REAL2(fn, a, b)         \
  ({                            \
    unsigned long r_;           \
    CALL_FN_W_WW(r_, fn, a, b); \
    (int)r_;                    \
  })
#define REAL3(fn, a, b, c)          \
  ({                                \
    unsigned long r_;               \
    CALL_FN_W_WWW(r_, fn, a, b, c); \
    (int)r_;                        \
  })
#define REAL4(fn, a, b, c, d)           \
  ({                                    \
    unsigned long r_;                   \
    CALL_FN_W_WWWW(r_, fn, a, b, c, d); \
    (int)r_;                            \
  })

/* The tool copies, piece by piece, so that the program's memory changes where others can see it. */
static inline void* move(unsigned long ra, char* to, const char* from, size_t n) {
  if (ASK(COPY, to, from, n)) return to;
  if (to < from)
    for (size_t i = 0; i < n; i++) ((volatile char*)to)[i] = from[i]; /* it will fault where it should */
  else
    while (n--) ((volatile char*)to)[n] = from[n];
  return to;
}

static inline uint64_t nanoseconds(clockid_t clock) {
  struct timespec ts;
  busy++;
  clock_gettime(clock, &ts);
  busy--;
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline int bad_time(const struct timespec* t) { return t->tv_nsec < 0 || t->tv_nsec >= 1000000000; }

/* As CLOCK_MONOTONIC; never 0. */
static inline uint64_t deadline(clockid_t clock, const struct timespec* until) {
  int64_t at = until->tv_sec * 1000000000ll + until->tv_nsec, left = at - (int64_t)nanoseconds(clock);
  uint64_t now = nanoseconds(CLOCK_MONOTONIC);
  return left <= 0 ? 1 : now + (uint64_t)left;
}

#endif
