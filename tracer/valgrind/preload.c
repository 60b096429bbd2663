/* Loaded into the program: stands around pthread functions, allocation, and the functions that move memory, and tells
 * the tool.
 *
 * A wrapper asks before the real call (the tool lets the thread wait there until the call cannot block), makes it, and
 * tells the result. Condition variables, barriers and once-flags are the model's alone. Built as Valgrind's own
 * preloads are; what it calls of the C library while it is busy itself passes through its own wrappers (`busy`). */
#include "tracer/valgrind/preload.h"

__thread int stem_busy __attribute__((tls_model("initial-exec")));

/* --- mutexes, spinlocks
 * ------------------------------------------------------------------------------------------------------ */

static int take(OrigFn fn, unsigned long ra, pthread_mutex_t* m, int how, uint64_t until, int arguments,
                unsigned long b, unsigned long c) {
  int timed_out = (int)ASK(MUTEX_BEFORE, m, how == 1, until);
  int r = ETIMEDOUT;
  if (!timed_out) r = arguments == 1 ? REAL1(fn, m) : arguments == 2 ? REAL2(fn, m, b) : REAL3(fn, m, b, c);
  ASK(MUTEX_LOCKED, m, r, how);
  return r;
}

WRAP(int, mutex_lock, pthreadZumutexZulock, (m), pthread_mutex_t* m) {
  return busy ? REAL1(fn, m) : take(fn, ra, m, 0, 0, 1, 0, 0);
}
WRAP(int, mutex_trylock, pthreadZumutexZutrylock, (m), pthread_mutex_t* m) {
  return busy ? REAL1(fn, m) : take(fn, ra, m, 1, 0, 1, 0, 0);
}
WRAP(int, mutex_timedlock, pthreadZumutexZutimedlock, (m, t), pthread_mutex_t* m, const struct timespec* t) {
  if (busy || bad_time(t)) return REAL2(fn, m, t);
  return take(fn, ra, m, 2, deadline(CLOCK_REALTIME, t), 2, (unsigned long)t, 0);
}
WRAP(int, mutex_clocklock, pthreadZumutexZuclocklock, (m, clock, t), pthread_mutex_t* m, clockid_t clock,
     const struct timespec* t) {
  if (busy || bad_time(t)) return REAL3(fn, m, clock, t);
  return take(fn, ra, m, 2, deadline(clock, t), 3, (unsigned long)clock, (unsigned long)t);
}
WRAP(int, mutex_unlock, pthreadZumutexZuunlock, (m), pthread_mutex_t* m) {
  if (busy) return REAL1(fn, m);
  ASK(MUTEX_BEFORE, m, 2, 0);
  unsigned depth = (m->__data.__kind & 3) == 1 ? m->__data.__count : 1;
  int r = REAL1(fn, m);
  ASK(MUTEX_UNLOCKED, m, r, depth);
  return r;
}

WRAP(int, spin_lock, pthreadZuspinZulock, (l), pthread_spinlock_t* l) {
  ASK(SPIN_BEFORE, l, 0, 0);
  int r = REAL1(fn, l);
  ASK(SPIN_LOCKED, l, r, 0);
  return r;
}
WRAP(int, spin_trylock, pthreadZuspinZutrylock, (l), pthread_spinlock_t* l) {
  ASK(SPIN_BEFORE, l, 1, 0);
  int r = REAL1(fn, l);
  ASK(SPIN_LOCKED, l, r, 1);
  return r;
}
WRAP(int, spin_unlock, pthreadZuspinZuunlock, (l), pthread_spinlock_t* l) {
  ASK(SPIN_BEFORE, l, 2, 0);
  int r = REAL1(fn, l);
  ASK(SPIN_UNLOCKED, l, r, 0);
  return r;
}

/* --- read-write locks
 * ---------------------------------------------------------------------------------------------------------- */

#define RWLOCK(WHO, name, encoded)                                                                               \
  WRAP(int, rwlock_##name##lock, pthreadZurwlockZu##encoded##lock, (l), pthread_rwlock_t* l) {                   \
    ASK(WHO##_BEFORE, l, 0, 0);                                                                                  \
    int r = REAL1(fn, l);                                                                                        \
    ASK(WHO##_LOCKED, l, r, 0);                                                                                  \
    return r;                                                                                                    \
  }                                                                                                              \
  WRAP(int, rwlock_try##name##lock, pthreadZurwlockZutry##encoded##lock, (l), pthread_rwlock_t* l) {             \
    ASK(WHO##_BEFORE, l, 1, 0);                                                                                  \
    int r = REAL1(fn, l);                                                                                        \
    ASK(WHO##_LOCKED, l, r, 1);                                                                                  \
    return r;                                                                                                    \
  }                                                                                                              \
  WRAP(int, rwlock_timed##name##lock, pthreadZurwlockZutimed##encoded##lock, (l, t), pthread_rwlock_t* l,        \
       const struct timespec* t) {                                                                               \
    if (bad_time(t)) return REAL2(fn, l, t);                                                                     \
    int r = ASK(WHO##_BEFORE, l, 0, deadline(CLOCK_REALTIME, t)) ? ETIMEDOUT : REAL2(fn, l, t);                  \
    ASK(WHO##_LOCKED, l, r, 2);                                                                                  \
    return r;                                                                                                    \
  }                                                                                                              \
  WRAP(int, rwlock_clock##name##lock, pthreadZurwlockZuclock##encoded##lock, (l, clock, t), pthread_rwlock_t* l, \
       clockid_t clock, const struct timespec* t) {                                                              \
    if (bad_time(t)) return REAL3(fn, l, clock, t);                                                              \
    int r = ASK(WHO##_BEFORE, l, 0, deadline(clock, t)) ? ETIMEDOUT : REAL3(fn, l, clock, t);                    \
    ASK(WHO##_LOCKED, l, r, 2);                                                                                  \
    return r;                                                                                                    \
  }
RWLOCK(READ, rd, rd)
RWLOCK(WRITE, wr, wr)

WRAP(int, rwlock_unlock, pthreadZurwlockZuunlock, (l), pthread_rwlock_t* l) {
  ASK(RW_UNLOCK_BEFORE, l, 0, 0);
  int r = REAL1(fn, l);
  ASK(RW_UNLOCKED, l, r, 0);
  return r;
}

/* --- condition variables
 * ----------------------------------------------------------------------------------------------------------- */

static int wait_on(unsigned long ra, pthread_cond_t* c, pthread_mutex_t* m, uint64_t until) {
  busy++;
  ASK(COND_WAIT, c, m, until ? 2 : 0);
  pthread_mutex_unlock(m);
  int timed_out = (int)ASK(COND_WAKE, c, 0, until);
  ASK(MUTEX_BEFORE, m, 0, 0);
  int r = pthread_mutex_lock(m);
  ASK(MUTEX_LOCKED, m, r, 0);
  busy--;
  if (ASK(CANCELLED, 0, 0, 0)) pthread_testcancel();
  return r ? r : timed_out ? ETIMEDOUT : 0;
}

WRAP(int, cond_wait, pthreadZucondZuwait, (c, m), pthread_cond_t* c, pthread_mutex_t* m) {
  UNLESS_SCHEDULED(REAL2(fn, c, m));
  return wait_on(ra, c, m, 0);
}
WRAP(int, cond_timedwait, pthreadZucondZutimedwait, (c, m, t), pthread_cond_t* c, pthread_mutex_t* m,
     const struct timespec* t) {
  UNLESS_SCHEDULED(REAL3(fn, c, m, t));
  if (bad_time(t)) return EINVAL;
  return wait_on(ra, c, m, deadline(c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, t));
}
WRAP(int, cond_clockwait, pthreadZucondZuclockwait, (c, m, clock, t), pthread_cond_t* c, pthread_mutex_t* m,
     clockid_t clock, const struct timespec* t) {
  UNLESS_SCHEDULED(REAL4(fn, c, m, clock, t));
  if (bad_time(t)) return EINVAL;
  return wait_on(ra, c, m, deadline(clock, t));
}
WRAP(int, cond_signal, pthreadZucondZusignal, (c), pthread_cond_t* c) {
  UNLESS_SCHEDULED(REAL1(fn, c));
  ASK(COND_SIGNAL, c, 0, 0);
  return 0;
}
WRAP(int, cond_broadcast, pthreadZucondZubroadcast, (c), pthread_cond_t* c) {
  UNLESS_SCHEDULED(REAL1(fn, c));
  ASK(COND_BROADCAST, c, 0, 0);
  return 0;
}

/* --- futexes that are not the C library's own (tracer/binary/futex.c)
 * ---------------------------------------------------------------- */

static uint64_t futex_deadline(int operation, const struct timespec* t) {
  if (!t) return 0;
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) {
    uint64_t in = (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
    return nanoseconds(CLOCK_MONOTONIC) + in;
  }
  return deadline(operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, t);
}

long I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, syscall)(long number, long a, long b, long c, long d, long e, long f);
long I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, syscall)(long number, long a, long b, long c, long d, long e, long f) {
  OrigFn fn;
  HERE;
  VALGRIND_GET_ORIG_FN(fn);
  int operation = (int)b & FUTEX_CMD_MASK, all = (unsigned)f == FUTEX_BITSET_MATCH_ANY;
  long r;
  if (number == SYS_futex && !busy && ASK(SCHEDULED, 0, 0, 0)) {
    const struct timespec* t = (const struct timespec*)d;
    int waits = operation == FUTEX_WAIT || (operation == FUTEX_WAIT_BITSET && all);
    if (waits && (a & 3) == 0 && !(t && bad_time(t))) {
      int error = (int)ASK(FUTEX_WAIT, a, (unsigned)c, futex_deadline((int)b, t));
      if (!error) return 0;
      errno = error;
      return -1;
    }
    if (operation == FUTEX_WAKE || (operation == FUTEX_WAKE_BITSET && all)) {
      long woken = (long)ASK(FUTEX_WAKE, a, (unsigned)c, 0), left = (long)(unsigned)c - woken;
      if (left <= 0) return woken;
      CALL_FN_W_7W(r, fn, number, a, b, left, d, e, f); /* somebody may have gone to the kernel by itself */
      return r > 0 ? woken + r : woken;
    }
    if (!waits) ASK(FUTEX_OTHER, 0, 0, 0);
  }
  if (number == SYS_kill || number == SYS_tkill || number == SYS_tgkill) a = stem_real_process((int)a);
  if (number == SYS_tgkill) b = stem_real_process((int)b);
  CALL_FN_W_7W(r, fn, number, a, b, c, d, e, f);
  return r;
}

/* --- semaphores, barriers, once
 * ------------------------------------------------------------------------------------------------- */

static int sem_result(unsigned long ra, sem_t* s, int r, int how) {
  int error = r ? errno : 0;
  ASK(SEM_TAKEN, s, error, how);
  errno = r ? error : errno;
  return r;
}
WRAP(int, sem_init, semZuinit, (s, shared, value), sem_t* s, int shared, unsigned value) {
  int r = REAL3(fn, s, shared, value);
  if (r == 0) ASK(SEM_INIT, s, value, 0);
  return r;
}
WRAP(int, sem_wait, semZuwait, (s), sem_t* s) {
  ASK(SEM_BEFORE, s, 0, 0);
  if (ASK(CANCELLED, 0, 1, 0)) pthread_testcancel();
  return sem_result(ra, s, REAL1(fn, s), 0);
}
WRAP(int, sem_trywait, semZutrywait, (s), sem_t* s) {
  ASK(SEM_BEFORE, s, 1, 0);
  return sem_result(ra, s, REAL1(fn, s), 1);
}
WRAP(int, sem_timedwait, semZutimedwait, (s, t), sem_t* s, const struct timespec* t) {
  if (bad_time(t)) return REAL2(fn, s, t);
  if (ASK(SEM_BEFORE, s, 0, deadline(CLOCK_REALTIME, t))) return errno = ETIMEDOUT, sem_result(ra, s, -1, 2);
  if (ASK(CANCELLED, 0, 1, 0)) pthread_testcancel();
  return sem_result(ra, s, REAL2(fn, s, t), 2);
}
WRAP(int, sem_clockwait, semZuclockwait, (s, clock, t), sem_t* s, clockid_t clock, const struct timespec* t) {
  if (bad_time(t)) return REAL3(fn, s, clock, t);
  if (ASK(SEM_BEFORE, s, 0, deadline(clock, t))) return errno = ETIMEDOUT, sem_result(ra, s, -1, 2);
  if (ASK(CANCELLED, 0, 1, 0)) pthread_testcancel();
  return sem_result(ra, s, REAL3(fn, s, clock, t), 2);
}
WRAP(int, sem_post, semZupost, (s), sem_t* s) {
  ASK(SEM_POST, s, 0, 0);
  return REAL1(fn, s);
}

WRAP(int, barrier_init, pthreadZubarrierZuinit, (b, attr, count), pthread_barrier_t* b,
     const pthread_barrierattr_t* attr, unsigned count) {
  int r = REAL3(fn, b, attr, count);
  if (r == 0) ASK(BARRIER_INIT, b, count, 0);
  return r;
}
WRAP(int, barrier_wait, pthreadZubarrierZuwait, (b), pthread_barrier_t* b) {
  UNLESS_SCHEDULED(REAL1(fn, b));
  return ASK(BARRIER_WAIT, b, 0, 0) ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

/* An exception or a cancellation that leaves the initialiser leaves it undone. The unwinder is there when either
 * happens; where it is not, nobody asks for its part in this. */
__asm__(".weak __gcc_personality_v0");
struct once_run {
  pthread_once_t* once;
  unsigned long ra;
};
static void once_left(struct once_run* run) {
  unsigned long ra = run->ra;
  if (run->once) ASK(ONCE_END, run->once, 0, 0);
}

WRAP(int, once, pthreadZuonce, (once, initialise), pthread_once_t* once, void (*initialise)(void)) {
  UNLESS_SCHEDULED(REAL2(fn, once, initialise));
  if (!ASK(ONCE_BEGIN, once, 0, 0)) return 0;
  __attribute__((cleanup(once_left))) struct once_run run = {once, ra};
  initialise();
  run.once = 0;
  ASK(ONCE_END, once, 1, 0);
  return 0;
}

/* The guards of C++'s local statics, in libstdc++. */
int I_WRAP_SONAME_FNNAME_ZU(libstdcZpZpZa, __cxa_guard_acquire)(uint64_t* guard);
int I_WRAP_SONAME_FNNAME_ZU(libstdcZpZpZa, __cxa_guard_acquire)(uint64_t* guard) {
  OrigFn fn;
  HERE;
  VALGRIND_GET_ORIG_FN(fn);
  ASK(GUARD_BEFORE, guard, 0, 0);
  int r = REAL1(fn, guard);
  ASK(GUARD_TAKEN, guard, r, 0);
  return r;
}
void I_WRAP_SONAME_FNNAME_ZU(libstdcZpZpZa, __cxa_guard_release)(uint64_t* guard);
void I_WRAP_SONAME_FNNAME_ZU(libstdcZpZpZa, __cxa_guard_release)(uint64_t* guard) {
  OrigFn fn;
  HERE;
  VALGRIND_GET_ORIG_FN(fn);
  REAL1(fn, guard);
  ASK(GUARD_DONE, guard, 1, 0);
}
void I_WRAP_SONAME_FNNAME_ZU(libstdcZpZpZa, __cxa_guard_abort)(uint64_t* guard);
void I_WRAP_SONAME_FNNAME_ZU(libstdcZpZpZa, __cxa_guard_abort)(uint64_t* guard) {
  OrigFn fn;
  HERE;
  VALGRIND_GET_ORIG_FN(fn);
  REAL1(fn, guard);
  ASK(GUARD_DONE, guard, 0, 0);
}

/* --- threads
 * -------------------------------------------------------------------------------------------------------------------------
 */

WRAP(int, create, pthreadZucreate, (out, attr, start, argument), pthread_t* out, const pthread_attr_t* attr,
     void* (*start)(void*), void* argument) {
  int detached = 0;
  busy++;
  if (attr && attr != (const pthread_attr_t*)-1)
    pthread_attr_getdetachstate(attr, &detached); /* -1: thrd_create's own mark */
  ASK(CREATE_BEFORE, 0, 0, 0);
  pthread_t handle = 0;
  int r = REAL4(fn, &handle, attr, start, argument);
  if (r == 0 && out) move(ra, (char*)out, (const char*)&handle, sizeof handle);
  ASK(CREATED, start, r, handle);
  busy--;
  return r;
}

static int join(OrigFn fn, unsigned long ra, pthread_t thread, void** result, int tries, uint64_t until) {
  unsigned long failed = ASK(JOIN_BEFORE, thread, tries, until);
  if (failed == 1 && ASK(CANCELLED, 0, 0, 0)) pthread_testcancel();
  switch (failed) {
    case 1:
      return tries ? EBUSY : ETIMEDOUT;
    case 2:
      return tries || until ? EINVAL : REAL2(fn, thread, result); /* not one that we know */
    default:
      break;
  }
  void* answer = 0;
  busy++;
  int r = until || tries ? pthread_join(thread, &answer) : REAL2(fn, thread, &answer);
  busy--;
  ASK(JOINED, thread, r, 0);
  if (r == 0 && result) move(ra, (char*)result, (const char*)&answer, sizeof answer);
  return r;
}
WRAP(int, join, pthreadZujoin, (thread, result), pthread_t thread, void** result) {
  return busy ? REAL2(fn, thread, result) : join(fn, ra, thread, result, 0, 0);
}
WRAP(int, tryjoin, pthreadZutryjoinZunp, (thread, result), pthread_t thread, void** result) {
  return join(fn, ra, thread, result, 1, 0);
}
WRAP(int, timedjoin, pthreadZutimedjoinZunp, (thread, result, t), pthread_t thread, void** result,
     const struct timespec* t) {
  return join(fn, ra, thread, result, 0, t ? deadline(CLOCK_REALTIME, t) : 0);
}
WRAP(int, detach, pthreadZudetach, (thread), pthread_t thread) {
  ASK(DETACHED, thread, 0, 0);
  return REAL1(fn, thread);
}

/* 0: a yield. */
static void sleep_until(unsigned long ra, uint64_t deadline) {
  if (ASK(YIELD, 0, 0, deadline)) pthread_testcancel();
}

int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, sched_yield)(void);
int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, sched_yield)(void) {
  HERE;
  sleep_until(ra, 0);
  return 0;
}
/* Others may run here: a loop around it is a way of waiting. */
void I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, pthread_testcancel)(void);
void I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, pthread_testcancel)(void) {
  OrigFn fn;
  HERE;
  VALGRIND_GET_ORIG_FN(fn);
  if (!busy) ASK(YIELD, 0, 1, 0); /* the C library tests in many places: no news in that */
  CALL_FN_v_v(fn);
}
WRAP(int, cancel, pthreadZucancel, (thread), pthread_t thread) {
  ASK(CANCEL, thread, 0, 0);
  return REAL1(fn, thread);
}
WRAP(int, setcancelstate, pthreadZusetcancelstate, (state, old), int state, int* old) {
  int before = 0, r = REAL2(fn, state, &before);
  if (r) return r;
  if (old) move(ra, (char*)old, (const char*)&before, sizeof *old);
  ASK(CANCEL_STATE, 0, state == PTHREAD_CANCEL_DISABLE, 0);
  return 0;
}
/* It would strike between an event and what it tells of. */
WRAP(int, setcanceltype, pthreadZusetcanceltype, (type, old), int type, int* old) {
  UNLESS_SCHEDULED(REAL2(fn, type, old));
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  int before = ASK(CANCEL_TYPE, 0, type == PTHREAD_CANCEL_ASYNCHRONOUS, 0) ? PTHREAD_CANCEL_ASYNCHRONOUS
                                                                           : PTHREAD_CANCEL_DEFERRED;
  if (old) move(ra, (char*)old, (const char*)&before, sizeof *old);
  return 0;
}
static int sleep_for(unsigned long ra, uint64_t time) {
  sleep_until(ra, nanoseconds(CLOCK_MONOTONIC) + time);
  return 0;
}
WRAP(int, nanosleep, nanosleep, (t, left), const struct timespec* t, struct timespec* left) {
  if (bad_time(t)) return REAL2(fn, t, left);
  UNLESS_SCHEDULED(REAL2(fn, t, left));
  return sleep_for(ra, (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec);
}
WRAP(int, clock_nanosleep, clockZunanosleep, (clock, flags, t, left), clockid_t clock, int flags,
     const struct timespec* t, struct timespec* left) {
  if (bad_time(t) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return REAL4(fn, clock, flags, t, left);
  UNLESS_SCHEDULED(REAL4(fn, clock, flags, t, left));
  if (flags & TIMER_ABSTIME) {
    sleep_until(ra, deadline(clock, t));
    return 0;
  }
  return sleep_for(ra, (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec);
}
WRAP(int, usleep, usleep, (t), unsigned t) {
  UNLESS_SCHEDULED(REAL1(fn, t));
  return sleep_for(ra, t * 1000ull);
}
WRAP(int, sleep, sleep, (t), unsigned t) {
  UNLESS_SCHEDULED(REAL1(fn, t));
  return sleep_for(ra, t * 1000000000ull);
}

/* --- allocation
 * ------------------------------------------------------------------------------------------------------------------------
 */

#define ALLOCATE(name, encoded, params, zeroed, size, ...)          \
  void* I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(__VA_ARGS__);  \
  void* I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(__VA_ARGS__) { \
    OrigFn fn;                                                      \
    HERE;                                                           \
    unsigned long p;                                                \
    VALGRIND_GET_ORIG_FN(fn);                                       \
    params;                                                         \
    if (!busy) ASK(ALLOCATED, p, size, zeroed);                     \
    return (void*)p;                                                \
  }
ALLOCATE(malloc, malloc, CALL_FN_W_W(p, fn, n), 0, n, size_t n)
ALLOCATE(calloc, calloc, CALL_FN_W_WW(p, fn, k, n), 1, k* n, size_t k, size_t n)
ALLOCATE(memalign, memalign, CALL_FN_W_WW(p, fn, align, n), 0, n, size_t align, size_t n)
ALLOCATE(aligned_alloc, alignedZualloc, CALL_FN_W_WW(p, fn, align, n), 0, n, size_t align, size_t n)

int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, posix_memalign)(void** out, size_t align, size_t n);
int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, posix_memalign)(void** out, size_t align, size_t n) {
  OrigFn fn;
  HERE;
  VALGRIND_GET_ORIG_FN(fn);
  int r = REAL3(fn, out, align, n);
  if (r == 0 && !busy) ASK(ALLOCATED, *out, n, 0);
  return r;
}

void* I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, realloc)(void* old, size_t n);
void* I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, realloc)(void* old, size_t n) {
  OrigFn fn;
  HERE;
  unsigned long p;
  VALGRIND_GET_ORIG_FN(fn);
  CALL_FN_W_WW(p, fn, old, n);
  if (busy) return (void*)p;
  if (old && (p || n == 0)) ASK(FREE, old, 0, 0);
  if (p) ASK(ALLOCATED, p, n, 0);
  return (void*)p;
}

void I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, free)(void* p);
void I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, free)(void* p) {
  OrigFn fn;
  HERE;
  unsigned long r;
  VALGRIND_GET_ORIG_FN(fn);
  if (p && !busy) ASK(FREE, p, 0, 0);
  CALL_FN_W_W(r, fn, p);
  (void)r;
}

/* --- functions that move memory: the tool does it, piece by piece
 * ------------------------------------------------------------------- */

#define MOVE(encoded)                                                                           \
  void* I_REPLACE_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(void* to, const void* from, size_t n);  \
  void* I_REPLACE_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(void* to, const void* from, size_t n) { \
    HERE;                                                                                       \
    return move(ra, to, from, n);                                                               \
  }
MOVE(memcpy)
MOVE(memcpyZAZa)
MOVE(memmove)
MOVE(ZuZumemcpyZuchk)
MOVE(ZuZumemmoveZuchk)
MOVE(ZuZumemcpyZuavxZuZa)
MOVE(ZuZumemcpyZusse2ZuZa)
MOVE(ZuZumemcpyZuevexZuZa)
MOVE(ZuZumemmoveZuavxZuZa)
MOVE(ZuZumemmoveZusse2ZuZa)
MOVE(ZuZumemmoveZuevexZuZa)

#define FILL_(encoded)                                                                  \
  void* I_REPLACE_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(void* to, int byte, size_t n);  \
  void* I_REPLACE_SONAME_FNNAME_ZZ(libcZdsoZa, encoded)(void* to, int byte, size_t n) { \
    HERE;                                                                               \
    if (!ASK(FILL, to, (unsigned char)byte, n))                                         \
      for (size_t i = 0; i < n; i++) ((volatile char*)to)[i] = (char)byte;              \
    return to;                                                                          \
  }
FILL_(memset)
FILL_(ZuZumemsetZuchk)
FILL_(ZuZumemsetZuavx2ZuZa)
FILL_(ZuZumemsetZusse2ZuZa)
FILL_(ZuZumemsetZuevexZuZa)
