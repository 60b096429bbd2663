/* Raw loads and stores of 1 to 8 bytes at any alignment, and the striped locks of parallel recording. */
#ifndef STEM_TRACER_RUNTIME_ACCESS_H
#define STEM_TRACER_RUNTIME_ACCESS_H

#include "tracer/runtime/state.h"

static inline uint64_t stem_raw_load(const volatile void* p, unsigned size) {
  uint64_t v = 0;
  switch (size) { /* one machine access where there is one, so that nothing tears in parallel recording */
    case 1: return *(const volatile uint8_t*)p;
    case 2: { uint16_t x; __builtin_memcpy(&x, (const void*)p, 2); return x; }
    case 4: { uint32_t x; __builtin_memcpy(&x, (const void*)p, 4); return x; }
    case 8: __builtin_memcpy(&v, (const void*)p, 8); return v;
    default: __builtin_memcpy(&v, (const void*)p, size & 7); return v;
  }
}

static inline void stem_raw_store(volatile void* p, uint64_t v, unsigned size) {
  switch (size) {
    case 1: *(volatile uint8_t*)p = (uint8_t)v; break;
    case 2: { uint16_t x = (uint16_t)v; __builtin_memcpy((void*)p, &x, 2); break; }
    case 4: { uint32_t x = (uint32_t)v; __builtin_memcpy((void*)p, &x, 4); break; }
    case 8: __builtin_memcpy((void*)p, &v, 8); break;
    default: __builtin_memcpy((void*)p, &v, size & 7); break;
  }
}

/* From asking the scheduler to the record: in parallel recording under the stripes of the words touched, with a ticket. */
void stem_access_begin(struct stem_thread* self, unsigned kind, const volatile void* address, unsigned size, const void* site);
void stem_access_end(struct stem_thread* self, const volatile void* address, unsigned size);
void stem_access_abandon(struct stem_thread* self); /* a fault struck in between */

#endif
