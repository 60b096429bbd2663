/* Memory and locks of the runtime's own. */
#include <sys/mman.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

void* stem_pages(size_t bytes) {
  long p = stem_sys6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p < 0 && p > -4096) stem_die("no memory left for recording");
  return (void*)p;
}

void stem_pages_free(void* p, size_t bytes) { stem_sys(SYS_munmap, p, bytes, 0); }

void stem_lock(struct stem_lock* lock) {
  uint32_t free_word = 0;
  if (__atomic_compare_exchange_n(&lock->word, &free_word, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0) stem_futex_wait(&lock->word, 2, -1, 0);
}

int stem_try_lock(struct stem_lock* lock) {
  uint32_t free_word = 0;
  return __atomic_compare_exchange_n(&lock->word, &free_word, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void stem_unlock(struct stem_lock* lock) {
  if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2) stem_futex_wake(&lock->word, 1, 0);
}
