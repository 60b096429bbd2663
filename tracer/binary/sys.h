/* System calls without the C library; results are -errno. */
#ifndef STEM_TRACER_BINARY_SYS_H
#define STEM_TRACER_BINARY_SYS_H

static inline long bin_syscall(long n, long a, long b, long c, long d, long e, long f) {
  long r;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(r)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return r;
}
#define bin_sys(n, a, b, c, d) bin_syscall((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

#endif
