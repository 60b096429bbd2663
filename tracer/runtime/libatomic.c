/* What compilers call for atomic objects that the machine has no instruction for (libatomic's generic functions): odd sizes,
 * unaligned, more than 8 bytes. An atomic section around plain events; when nothing is recorded, one of 64 locks. */
#include <string.h>

#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);

static struct stem_lock locks[64];

static struct stem_lock* lock_of(const void* p) { return &locks[((uintptr_t)p >> 4) & 63]; }

static void begin(const void* p) {
  if (stem_on)
    __VERIFIER_atomic_begin();
  else
    stem_lock(lock_of(p));
}

static void end(const void* p) {
  if (stem_on)
    __VERIFIER_atomic_end();
  else
    stem_unlock(lock_of(p));
}

STEM_EXPORT void stem_atomic_load_generic(size_t size, const volatile void* from, void* to, int order) __asm__("__atomic_load");
STEM_EXPORT void stem_atomic_store_generic(size_t size, volatile void* to, void* from, int order) __asm__("__atomic_store");
STEM_EXPORT void stem_atomic_exchange_generic(size_t size, volatile void* at, void* value, void* old, int order) __asm__("__atomic_exchange");
STEM_EXPORT _Bool stem_atomic_cas_generic(size_t size, volatile void* at, void* expected, void* desired, int success, int failure) __asm__("__atomic_compare_exchange");

void stem_atomic_load_generic(size_t size, const volatile void* from, void* to, int order) {
  (void)order;
  void* site = (void*)stem_take_site();
  begin((const void*)from);
  __stem_copy(to, (void*)from, size, 0, site);
  end((const void*)from);
}

void stem_atomic_store_generic(size_t size, volatile void* to, void* from, int order) {
  (void)order;
  void* site = (void*)stem_take_site();
  begin((const void*)to);
  __stem_copy((void*)to, from, size, 0, site);
  end((const void*)to);
}

void stem_atomic_exchange_generic(size_t size, volatile void* at, void* value, void* old, int order) {
  (void)order;
  void* site = (void*)stem_take_site();
  begin((const void*)at);
  __stem_copy(old, (void*)at, size, 0, site);
  __stem_copy((void*)at, value, size, 0, site);
  end((const void*)at);
}

_Bool stem_atomic_cas_generic(size_t size, volatile void* at, void* expected, void* desired, int success, int failure) {
  (void)success;
  (void)failure;
  void* site = (void*)stem_take_site();
  begin((const void*)at);
  if (stem_on) {
    stem_read_range((const void*)at, size, site); /* pinned: what was there decides what happens */
    stem_read_range(expected, size, site);
  }
  int equal = memcmp((const void*)at, expected, size) == 0;
  if (equal)
    __stem_copy((void*)at, desired, size, 0, site);
  else
    __stem_copy(expected, (void*)at, size, 0, site);
  end((const void*)at);
  return equal;
}
