/* The program's threads run one at a time: on one CPU handing the token on is a context switch, not a message between
 * CPUs (2 us against 25 on a virtual machine). The program does not notice: what it asks and sets about affinity is
 * kept apart, and programs that it starts get back what it had. As tracer/runtime/affinity.c does it, but seen from
 * below, as system calls. */
#include <sys/syscall.h>

#include "tracer/valgrind/tool.h"

#define MASK_BYTES 1024

static UChar original[MASK_BYTES], pinned[MASK_BYTES];
static Long size; /* of a mask, as the kernel gave it; 0: not pinned */

void stem_pin_cpu(void) {
  UInt cpu = 0;
  Long n = stem_sys4(SYS_sched_getaffinity, 0, sizeof original, original, 0);
  if (size || n <= 0 || stem_sys4(SYS_getcpu, &cpu, 0, 0, 0) < 0 || cpu / 8 >= sizeof pinned) return;
  pinned[cpu / 8] = (UChar)(1u << cpu % 8);
  if (stem_sys4(SYS_sched_setaffinity, 0, n, pinned, 0) == 0) size = n;
}

void stem_unpin_cpu(void) {
  if (size) stem_sys4(SYS_sched_setaffinity, 0, size, original, 0);
}

void stem_repin_cpu(void) {
  if (size) stem_sys4(SYS_sched_setaffinity, 0, size, pinned, 0);
}

void stem_pin_forget(void) {
  stem_unpin_cpu();
  size = 0;
}

static Bool is_ours(UWord pid) {
  if (pid == 0) return True;
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->tid == (Int)pid) return True;
  return False;
}

void stem_affinity_asked(UInt number, const UWord* args, UWord result) {
  if (!size || !is_ours(args[0])) return;
  if (number == SYS_sched_getaffinity) { /* the kernel has written `result` bytes */
    for (UWord i = 0; i < result && i < (UWord)size; i++) ((UChar*)args[2])[i] = original[i];
  } else if (number == SYS_sched_setaffinity) {
    if (stem_sys4(SYS_sched_getaffinity, args[0], sizeof original, original, 0) > 0)
      stem_sys4(SYS_sched_setaffinity, args[0], size, pinned, 0);
  }
}
