/* Memory and locks of the runtime's own. */
#include <sys/mman.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

/* Far from where the kernel puts the program's mappings: those lie the same in every run, however much was recorded or is being
 * followed. Programs use addresses as values (std::barrier hashes thread ids, which are addresses of stacks). */
#define STEM_OWN_MEMORY 0x100000000000ull

void* stem_map(size_t bytes, int protection, int flags, int fd) {
  static uint64_t next = STEM_OWN_MEMORY;
  uint64_t hint = __atomic_fetch_add(&next, (bytes + 0x1fff) & ~0xfffull, __ATOMIC_RELAXED); /* a page between them */
  long p = stem_sys6(SYS_mmap, (long)hint, (long)bytes, protection, flags, fd, 0);
  return p < 0 && p > -4096 ? 0 : (void*)p;
}

void* stem_pages(size_t bytes) {
  void* p = stem_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (!p) stem_die("no memory left for recording");
  return p;
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
