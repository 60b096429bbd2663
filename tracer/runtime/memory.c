/* Loads and stores of instrumented code that do not go the inline way, copies, fills, allocation.
 *
 * Serialised recording: count, perhaps ask, access, append. Parallel recording: 4096 locks, one per 8-byte word by hash;
 * an access holds the locks of the (at most two) words it touches while it draws its ticket, so the order of tickets is the
 * order of accesses. About 40 ns an access. */
#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/access.h"
#include "tracer/runtime/sys.h"

#define STRIPES 4096
static struct stem_lock stripes[STRIPES];

static uint32_t stripe_of(uint64_t word) { return (uint32_t)((word * 0x9e3779b97f4a7c15u) >> 52); }

static void lock_stripe(uint32_t i) {
  for (int spin = 0; spin < 100; spin++) {
    if (stem_try_lock(&stripes[i])) return;
    __builtin_ia32_pause();
  }
  stem_lock(&stripes[i]);
}

static void parallel_begin(struct stem_thread* self, const volatile void* address, unsigned size) {
  if (stem_interrupted(self)) stem_signals_deliver(self);
  uint64_t first = (uint64_t)(uintptr_t)address >> 3, last = ((uint64_t)(uintptr_t)address + size - 1) >> 3;
  uint32_t a = stripe_of(first), b = stripe_of(last);
  if (a > b) {
    uint32_t t = a;
    a = b;
    b = t;
  }
  self->stripe_a = a + 1;
  self->stripe_b = a == b ? 0 : b + 1;
  lock_stripe(a);
  if (a != b) lock_stripe(b);
  stem_append(self, stem_head(STEM_RAW_Ticket, 0, 0), stem_ticket(), 0, 0);
}

/* Takes every stripe and never gives one back: accesses of other threads wait for the process to end. */
void stem_access_freeze(void) {
  for (uint32_t i = 0; i < STRIPES; i++)
    for (int spin = 0; spin < 1000 && !stem_try_lock(&stripes[i]); spin++) stem_sys(SYS_sched_yield, 0, 0, 0);
}

void stem_access_abandon(struct stem_thread* self) {
  if (self->stripe_b) stem_unlock(&stripes[self->stripe_b - 1]);
  if (self->stripe_a) stem_unlock(&stripes[self->stripe_a - 1]);
  self->stripe_a = self->stripe_b = 0;
}

void stem_access_begin(struct stem_thread* self, unsigned kind, const volatile void* address, unsigned size, const void* site) {
  if (STEM_UNLIKELY(stem_parallel)) return parallel_begin(self, address, size);
  stem_visible(self, kind, address, site, 0, 0, 0);
  self->faulting = address; /* if the access faults, this is what it was */
  self->faulting_site = site;
}

void stem_access_end(struct stem_thread* self, const volatile void* address, unsigned size) {
  (void)address;
  (void)size;
  self->faulting = 0;
  if (STEM_UNLIKELY(stem_parallel)) stem_access_abandon(self);
}

/* Parallel recording: a thread that waits for another by reading makes room for it now and then. */
static void politely(struct stem_thread* self, const volatile void* address, uint64_t value) {
  if (self->last_read != address || self->last_value != value) {
    self->last_read = address;
    self->last_value = value;
    self->same_reads = 0;
  } else if (++self->same_reads % 64 == 0) {
    stem_sys(SYS_sched_yield, 0, 0, 0);
  }
}

/* --- one access ------------------------------------------------------------------------------------------------------------------- */

static inline uint64_t load(struct stem_thread* self, const volatile void* address, unsigned aux, const void* site) {
  unsigned size = aux & 15;
  stem_access_begin(self, STEM_KIND_Read, address, size, site);
  uint64_t value = stem_raw_load(address, size);
  stem_append(self, stem_head(STEM_KIND_Read, aux, (uint64_t)(uintptr_t)address), value, 0, stem_site_id(site));
  __stem_tls.result_id = aux & STEM_AUX_LEAF ? stem_next_id() : 0;
  stem_access_end(self, address, size);
  if (STEM_UNLIKELY(stem_parallel)) politely(self, address, value);
  return value;
}

static inline void store(struct stem_thread* self, volatile void* address, uint64_t value, uint32_t id, unsigned aux, const void* site) {
  unsigned size = aux & 15;
  stem_access_begin(self, STEM_KIND_Write, address, size, site);
  stem_raw_store(address, value, size);
  if (size < 8) value &= (1ull << 8 * size) - 1;
  stem_append(self, stem_head(STEM_KIND_Write, aux, (uint64_t)(uintptr_t)address), value, id, stem_site_id(site));
  stem_access_end(self, address, size);
}

uint64_t __stem_load(void* address, uint32_t aux, void* site) {
  if (!stem_on) return __stem_tls.result_id = 0, stem_raw_load(address, aux & 15);
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  return load(self, address, aux, site);
}

void __stem_store(void* address, uint64_t value, uint32_t id, uint32_t aux, void* site) {
  if (!stem_on) return stem_raw_store(address, value, aux & 15);
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  store(self, address, value, id, aux, site);
}

/* --- for the models of library functions ------------------------------------------------------------------------------------------- */

uint64_t stem_read(const volatile void* address, unsigned size, int leaf, const void* site, uint32_t* id) {
  struct stem_thread* self = stem_self();
  uint64_t value = load(self, address, size | (leaf ? STEM_AUX_LEAF : STEM_AUX_PINNED), site);
  if (id) *id = __stem_tls.result_id;
  return value;
}

void stem_write(volatile void* address, uint64_t value, uint32_t id, unsigned size, const void* site) {
  store(stem_self(), address, value, id, size, site);
}

static unsigned piece(uintptr_t at, size_t left) {
  unsigned n = 8 - (unsigned)(at & 7); /* aligned words, so that equal memory makes equal events */
  if (n > left) n = (unsigned)left;
  return n & 4 && n != 8 && (at & 3) == 0 ? 4 : n; /* 4 where that is natural; odd sizes otherwise */
}

void stem_read_range(const void* address, size_t size, const void* site) {
  struct stem_thread* self = stem_self();
  for (const char* at = address; size;) {
    unsigned n = piece((uintptr_t)at, size);
    load(self, at, n | STEM_AUX_PINNED, site);
    at += n;
    size -= n;
  }
}

void stem_write_range(const void* address, size_t size, const void* site) {
  struct stem_thread* self = stem_self();
  for (const char* at = address; size;) {
    unsigned n = piece((uintptr_t)at, size);
    store(self, (volatile void*)at, stem_raw_load(at, n), 0, n, site);
    at += n;
    size -= n;
  }
}

/* --- copies and fills ------------------------------------------------------------------------------------------------------------------ */

enum { MOVE = 1, FROM_PRIVATE = 2, TO_PRIVATE = 4 };

static void copy_piece(struct stem_thread* self, char* to, const char* from, unsigned n, unsigned flags, const void* site) {
  uint32_t id = 0;
  uint64_t value;
  if (flags & FROM_PRIVATE) {
    value = stem_raw_load(from, n);
    if (__stem_tls.shadow_live) id = stem_shadow_get(from, n, value);
  } else {
    value = load(self, from, n | STEM_AUX_LEAF, site);
    id = __stem_tls.result_id;
  }
  if (flags & TO_PRIVATE) {
    stem_raw_store(to, value, n);
    if (id || __stem_tls.shadow_live) stem_shadow_set(to, n, id);
  } else {
    store(self, to, value, id, n, site);
  }
}

void __stem_copy(void* to_pointer, void* from_pointer, uint64_t size, uint32_t flags, void* site) {
  char* to = to_pointer;
  const char* from = from_pointer;
  if (!stem_on) {
    __builtin_memmove(to, from, size);
    return;
  }
  struct stem_thread* self = stem_self();
  int backwards = to > from && to < from + size;
  uint64_t done = 0;
  while (done < size) {
    unsigned n = piece((uintptr_t)(backwards ? 0 : from + done), size - done);
    if (backwards) {
      const char* end = from + size - done;
      n = (unsigned)((uintptr_t)end & 7);
      if (n == 0) n = 8;
      if (n > size - done) n = (unsigned)(size - done);
      copy_piece(self, to + size - done - n, end - n, n, flags, site);
    } else {
      copy_piece(self, to + done, from + done, n, flags, site);
    }
    done += n;
  }
}

void __stem_fill(void* to, uint32_t byte, uint32_t id, uint64_t size, void* site) {
  if (!stem_on) {
    __builtin_memset(to, (int)byte, size);
    return;
  }
  struct stem_thread* self = stem_self();
  if (id) stem_pin(self, id, byte, site); /* a fill by a free value is rare: hold it */
  uint64_t pattern = 0x0101010101010101u * (byte & 0xff);
  for (char* at = to; size;) {
    unsigned n = piece((uintptr_t)at, size);
    store(self, at, pattern, 0, n, site);
    at += n;
    size -= n;
  }
}

/* --- objects ---------------------------------------------------------------------------------------------------------------------------- */

void __stem_stack(void* address, uint64_t size, void* site) {
  if (!stem_on) return;
  stem_event(stem_self(), STEM_KIND_Alloc, STEM_FLAG_STACK, address, size, 0, site);
}

/* The innermost return addresses beyond the allocating function, by frame pointers where they are: checked against the stack's
 * bounds, so that code without frame pointers gives fewer, never a crash. */
static int callers(struct stem_thread* self, uint64_t out[4]) {
  const uint64_t* frame = self->alloc_frame ? self->alloc_frame : (const uint64_t*)__builtin_frame_address(0);
  int n = 0;
  out[n++] = self->alloc_frame ? frame[1] : (uint64_t)(uintptr_t)__builtin_return_address(0);
  while (n < 4) {
    const uint64_t* next = (const uint64_t*)(uintptr_t)frame[0];
    if (next <= frame || !self->stack_top || next + 2 > self->stack_top || ((uintptr_t)next & 7)) break;
    if (next[1] < 4096) break;
    if (n > 1 || next != frame) out[n++] = next[1];
    frame = next;
  }
  return n;
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) void __stem_alloc(void* address, uint64_t size, uint32_t zeroed, void* site) {
  if (!stem_on || !address) return;
  struct stem_thread* self = stem_self();
  uint64_t list[4];
  stem_event(self, STEM_KIND_Alloc, zeroed ? STEM_FLAG_ZEROED : 0, address, size, 0, site);
  int n = callers(self, list);
  stem_blob(self, STEM_BLOB_CALLERS, list, (uint64_t)n * 8);
}

void __stem_free(void* address, void* site) {
  if (!stem_on || !address) return;
  stem_event(stem_self(), STEM_KIND_Free, 0, address, 0, 0, site);
}
