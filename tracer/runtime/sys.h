/* System calls without the C library: they neither touch errno nor are they cancellation points, and our own interposers
 * of the library's wrappers are not in the way. Results are -errno. */
#ifndef STEM_TRACER_RUNTIME_SYS_H
#define STEM_TRACER_RUNTIME_SYS_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

static inline long stem_sys6(long n, long a, long b, long c, long d, long e, long f) {
  long r;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return r;
}
#define stem_sys(n, a, b, c) stem_sys6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define stem_sys4(n, a, b, c, d) stem_sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* nanoseconds < 0: for ever. shared: the word is in memory that another process maps too. */
static inline long stem_futex_wait(uint32_t* word, uint32_t expected, int64_t nanoseconds, int shared) {
  struct timespec ts = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  return stem_sys4(SYS_futex, word, FUTEX_WAIT | (shared ? 0 : FUTEX_PRIVATE_FLAG), expected, nanoseconds < 0 ? 0 : &ts);
}
static inline long stem_futex_wake(uint32_t* word, int count, int shared) {
  return stem_sys(SYS_futex, word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), count);
}

static inline int stem_gettid(void) { return (int)stem_sys(SYS_gettid, 0, 0, 0); }
static inline int stem_getpid(void) { return (int)stem_sys(SYS_getpid, 0, 0, 0); }

#endif
