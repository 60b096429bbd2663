/* Linked with a program that clang compiled with -fsanitize-coverage=func,trace-pc,trace-loads,trace-stores: how many accesses to memory its
 * source executes. The number goes to the file that ACCESSES names. */
#include <stdio.h>
#include <stdlib.h>

static unsigned long accesses;

#define COUNT(name) \
  void name(void* address) { (void)address; __atomic_fetch_add(&accesses, 1, __ATOMIC_RELAXED); }
COUNT(__sanitizer_cov_load1)
COUNT(__sanitizer_cov_load2)
COUNT(__sanitizer_cov_load4)
COUNT(__sanitizer_cov_load8)
COUNT(__sanitizer_cov_load16)
COUNT(__sanitizer_cov_store1)
COUNT(__sanitizer_cov_store2)
COUNT(__sanitizer_cov_store4)
COUNT(__sanitizer_cov_store8)
COUNT(__sanitizer_cov_store16)

void __sanitizer_cov_trace_pc(void) {}

__attribute__((destructor)) static void report(void) {
  const char* name = getenv("ACCESSES");
  FILE* file = name ? fopen(name, "w") : 0;
  if (!file) return;
  fprintf(file, "%lu\n", accesses);
  fclose(file);
}
