/* The thread-local and global state that instrumented code touches directly. The pass addresses it by offset, so both
 * sides include this header. The functions are in abi.def. */
#ifndef STEM_TRACER_RUNTIME_ABI_H
#define STEM_TRACER_RUNTIME_ABI_H

#include <stdint.h>

#define STEM_MAX_ARGS 16

struct stem_tls {
  uint32_t next_id;      /* expression id that the next leaf or node of this thread takes; starts at 1 */
  uint32_t result_id;    /* id of the value that the last runtime call or instrumented callee returned */
  uint32_t shadow_live;  /* how many private locations of this thread hold symbolic values; 0 lets inline code skip */
  uint32_t reserved;
  const void* callee;    /* for whom args were left */
  const void* returner;  /* who left result_id */
  const void* site;      /* site of the intercepted call under way */
  uint32_t args[STEM_MAX_ARGS];
};

#endif
