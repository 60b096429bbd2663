/* The thread-local and global state that instrumented code touches directly. The pass addresses it by offset, so both
 * sides include this header. The functions are in abi.def.
 *
 *   extern struct stem_hot __stem_hot;                 trace/raw.h; a page of its own, global
 *   extern _Thread_local struct stem_tls __stem_tls;   initial-exec
 *
 * The inline fast path of a load (a store likewise), exactly:
 *
 *   if (__stem_hot.cursor < __stem_hot.limit && __stem_hot.countdown > 0) {
 *     struct stem_rec* r = __stem_hot.cursor;
 *     __stem_hot.countdown--;
 *     r->head = head(kind, aux, address);  r->site = site;     before the access: if it faults, the runtime finds them
 *     r->value = value = *address;         r->expr = id;       id of what a store writes, 0 for a load
 *     __stem_hot.cursor = r + 1;
 *     with STEM_AUX_LEAF: id of the value = __stem_tls.next_id; __stem_tls.next_id += __stem_tls.id_step;
 *   } else
 *     value = __stem_load(address, aux, site);
 *
 * countdown is not decremented when the fast path is not taken: the slow path counts for itself, so that calling it
 * always is correct. Nothing else may come between the test and the new cursor (no call, no other record). */
#ifndef STEM_TRACER_RUNTIME_ABI_H
#define STEM_TRACER_RUNTIME_ABI_H

#include <stdint.h>

#define STEM_MAX_ARGS 16

struct stem_tls {
  uint32_t next_id;      /* expression id that the next leaf or node of this thread takes; starts at 1 */
  uint32_t id_step;      /* 1; without expressions 0, and next_id as well: then everything is concrete */
  uint32_t result_id;    /* id of the value that the last runtime call or instrumented callee returned */
  uint32_t shadow_live;  /* how many private locations of this thread hold symbolic values; 0 lets inline code skip */
  uint32_t arg_count;    /* how many args were left; 0: all concrete */
  const void* callee;    /* for whom args were left */
  const void* returner;  /* who left result_id */
  const void* site;      /* site of the intercepted call under way */
  uint32_t args[STEM_MAX_ARGS];
};

#endif
