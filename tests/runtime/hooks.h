/* Instrumentation by hand: what the pass would insert, for tests of the runtime alone. Each use is a site of its own. */
#ifndef STEM_TESTS_RUNTIME_HOOKS_H
#define STEM_TESTS_RUNTIME_HOOKS_H

#include <stdint.h>
#include <string.h>

#include "trace/raw.h"
#include "trace/site_record.h"
#include "tracer/runtime/abi.h"
#include "tracer/runtime/abi_functions.h"

extern struct stem_hot __stem_hot;
extern _Thread_local struct stem_tls __stem_tls;

#define SITE()                                                                                                         \
  (__extension__({                                                                                                     \
    static struct stem_site site_ __attribute__((section("stem_sites"), used)) = {.key = __LINE__ * 1000u + __COUNTER__ + 1, \
                                                                                  .version = STEM_RECORD_VERSION,      \
                                                                                  .line = __LINE__};                   \
    (void*)&site_;                                                                                                     \
  }))

extern struct stem_site __start_stem_sites[], __stop_stem_sites[];
__attribute__((constructor)) static void hooks_register(void) { __stem_register(__start_stem_sites, __stop_stem_sites); }

/* The inline fast path, as abi.h gives it. */
static inline uint64_t hook_load(void* address, unsigned aux, void* site, unsigned size) {
  uint64_t value = 0;
  if (__stem_hot.cursor < __stem_hot.limit && __stem_hot.countdown > 0) {
    struct stem_rec* r = __stem_hot.cursor;
    __stem_hot.countdown--;
    r->head = stem_head(STEM_KIND_Read, aux, (uint64_t)(uintptr_t)address);
    r->site = (uint32_t)(uintptr_t)site;
    __asm__ volatile("" ::: "memory");
    memcpy(&value, address, size);
    r->value = value;
    r->expr = 0;
    __asm__ volatile("" ::: "memory");
    __stem_hot.cursor = r + 1;
    __stem_tls.result_id = aux & STEM_AUX_LEAF ? __stem_tls.next_id++ : 0;
    return value;
  }
  return __stem_load(address, aux, site);
}

static inline void hook_store(void* address, uint64_t value, uint32_t id, unsigned aux, void* site, unsigned size) {
  if (__stem_hot.cursor < __stem_hot.limit && __stem_hot.countdown > 0) {
    struct stem_rec* r = __stem_hot.cursor;
    __stem_hot.countdown--;
    r->head = stem_head(STEM_KIND_Write, aux, (uint64_t)(uintptr_t)address);
    r->site = (uint32_t)(uintptr_t)site;
    __asm__ volatile("" ::: "memory");
    memcpy(address, &value, size);
    r->value = value;
    r->expr = id;
    __asm__ volatile("" ::: "memory");
    __stem_hot.cursor = r + 1;
    return;
  }
  __stem_store(address, value, id, aux, site);
}

#define LOAD(x) ((__typeof__(x))hook_load((void*)&(x), sizeof(x), SITE(), sizeof(x)))
#define STORE(x, v) hook_store((void*)&(x), (uint64_t)(__typeof__(x))(v), 0, sizeof(x), SITE(), sizeof(x))
#define ADD(x, v) ((__typeof__(x))__stem_atomic_rmw((void*)&(x), 1, (uint64_t)(v), 0, sizeof(x), SITE()))
#define CAS(x, e, d) (__stem_atomic_cas((void*)&(x), (uint64_t)(e), 0, (uint64_t)(d), 0, sizeof(x), SITE()) == (uint64_t)(e))
#define CALL(call) (__stem_tls.site = SITE(), call)

#endif
