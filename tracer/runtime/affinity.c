/* Serialised threads share one CPU: handing the token on is then a context switch, not a message between CPUs (2 us against
 * 10). The program never notices: what it asks and sets about affinity is kept apart, and programs that it starts get back
 * what it had. */
#include <errno.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

#define MASK_BYTES 1024

static unsigned char original[MASK_BYTES];
static long original_size; /* as the kernel gave it; 0: not pinned */
static unsigned char pinned[MASK_BYTES];

void stem_pin_cpu(void) {
  if (original_size || stem_parallel) return;
  long n = stem_sys(SYS_sched_getaffinity, 0, sizeof original, original);
  unsigned cpu = 0;
  if (n <= 0 || stem_sys(SYS_getcpu, &cpu, 0, 0) < 0 || cpu / 8 >= sizeof pinned) return;
  __builtin_memset(pinned, 0, sizeof pinned);
  pinned[cpu / 8] = (unsigned char)(1u << cpu % 8);
  if (stem_sys(SYS_sched_setaffinity, 0, n, pinned) < 0) return;
  original_size = n;
}

void stem_unpin_cpu(void) {
  if (original_size) stem_sys(SYS_sched_setaffinity, 0, original_size, original);
}

void stem_repin_cpu(void) {
  if (original_size) stem_sys(SYS_sched_setaffinity, 0, original_size, pinned);
}

void stem_pin_forget(void) {
  stem_unpin_cpu();
  original_size = 0;
}

static int ours(pid_t pid) { return original_size && (pid == 0 || stem_thread_by_tid(pid)); }

/* The library's calls want the rest of a larger set cleared, and a set with at least one existing CPU. */
static int get(size_t size, void* set, const void* site) {
  if (size < (size_t)original_size) return EINVAL;
  __builtin_memset(set, 0, size);
  __builtin_memcpy(set, original, (size_t)original_size);
  if (site) stem_write_range(set, size, site);
  return 0;
}

static int set(size_t size, const void* set) {
  const unsigned char* bytes = set;
  unsigned char wanted[MASK_BYTES] = {0};
  int any = 0;
  for (size_t i = 0; i < size && i < MASK_BYTES; i++) any |= wanted[i] = bytes[i];
  if (!any) return EINVAL;
  /* Let the kernel judge it, for a moment. */
  long r = stem_sys(SYS_sched_setaffinity, 0, original_size, wanted);
  if (r == 0) r = stem_sys(SYS_sched_getaffinity, 0, sizeof original, original) < 0 ? -EINVAL : 0;
  stem_repin_cpu();
  return r < 0 ? (int)-r : 0;
}

STEM_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t* out) {
  if (!stem_on || !ours(pid)) return STEM_REAL(sched_getaffinity)(pid, size, out);
  int r = get(size, out, stem_take_site());
  if (r) errno = r;
  return r ? -1 : 0;
}

STEM_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t* in) {
  if (!stem_on || !ours(pid)) return STEM_REAL(sched_setaffinity)(pid, size, in);
  int r = set(size, in);
  if (r) errno = r;
  return r ? -1 : 0;
}

STEM_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t* out) {
  if (!stem_on || !original_size) return STEM_REAL(pthread_getaffinity_np)(thread, size, out);
  return get(size, out, stem_take_site());
}

STEM_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t* in) {
  if (!stem_on || !original_size) return STEM_REAL(pthread_setaffinity_np)(thread, size, in);
  return set(size, in);
}
