/* Models of the functions on blocks of memory. Copies carry expressions (__stem_copy); a comparison branches on each
 * piece, so that an exploration can ask for the other outcome. */
#include "tracer/runtime/lib.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void copy(struct lib_call* call, void* to, const void* from, size_t n, unsigned flags) {
  if (n) __stem_copy(to, (void*)from, n, flags, (void*)call->site);
}

STEM_EXPORT void* __stem_wrap_memcpy(void* to, const void* from, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_memcpy);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  copy(&call, to, from, n, 0);
  lib_leave(__stem_wrap_memcpy, 0);
  return to;
}

STEM_EXPORT void* __stem_wrap_memmove(void* to, const void* from, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_memmove);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  copy(&call, to, from, n, 1);
  lib_leave(__stem_wrap_memmove, 0);
  return to;
}

STEM_EXPORT void* __stem_wrap_mempcpy(void* to, const void* from, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_mempcpy);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  copy(&call, to, from, n, 0);
  lib_leave(__stem_wrap_mempcpy, 0);
  return (char*)to + n;
}

STEM_EXPORT void __stem_wrap_bcopy(const void* from, void* to, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_bcopy);
  LIB_PIN(call, 0, from), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n);
  copy(&call, to, from, n, 1);
}

/* The fortified ones end the program exactly as glibc's would. */
void __chk_fail(void) __attribute__((noreturn));

STEM_EXPORT void* __stem_wrap___memcpy_chk(void* to, const void* from, size_t n, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___memcpy_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  if (n > room) __chk_fail();
  copy(&call, to, from, n, 0);
  lib_leave(__stem_wrap___memcpy_chk, 0);
  return to;
}

STEM_EXPORT void* __stem_wrap___memmove_chk(void* to, const void* from, size_t n, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___memmove_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  if (n > room) __chk_fail();
  copy(&call, to, from, n, 1);
  lib_leave(__stem_wrap___memmove_chk, 0);
  return to;
}

STEM_EXPORT void* __stem_wrap___mempcpy_chk(void* to, const void* from, size_t n, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___mempcpy_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  if (n > room) __chk_fail();
  copy(&call, to, from, n, 0);
  lib_leave(__stem_wrap___mempcpy_chk, 0);
  return (char*)to + n;
}

/* --- filling ----------------------------------------------------------------------------------------------------------- */

/* `id` is of an int; __stem_fill wants that of the byte. */
static void fill(struct lib_call* call, void* to, int byte, uint32_t id, size_t n) {
  if (id) id = (uint32_t)__stem_convert(STEM_OP_Trunc, 8, 32, 0, id);
  if (n) __stem_fill(to, (uint8_t)byte, id, n, (void*)call->site);
}

STEM_EXPORT void* __stem_wrap_memset(void* to, int byte, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_memset);
  LIB_PIN(call, 0, to), LIB_PIN(call, 2, n);
  fill(&call, to, byte, call.id[1], n);
  lib_leave(__stem_wrap_memset, 0);
  return to;
}

STEM_EXPORT void* __stem_wrap___memset_chk(void* to, int byte, size_t n, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___memset_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 2, n);
  if (n > room) __chk_fail();
  fill(&call, to, byte, call.id[1], n);
  lib_leave(__stem_wrap___memset_chk, 0);
  return to;
}

STEM_EXPORT void __stem_wrap_bzero(void* to, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_bzero);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n);
  fill(&call, to, 0, 0, n);
}

STEM_EXPORT void __stem_wrap_explicit_bzero(void* to, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_explicit_bzero);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n);
  fill(&call, to, 0, 0, n);
}

/* --- comparing and searching ---------------------------------------------------------------------------------------------- */

/* Piece by piece: whether two pieces are equal is a branch. In the first unequal ones the bytes before the first unequal
 * byte are held equal, it is held unequal, and the result is the difference of the two. */
static struct lib_value compare(const char* a, const char* b, size_t n, const void* site) {
  for (size_t i = 0; i < n;) {
    unsigned size = lib_piece(n - i), at = 0;
    struct lib_chunk x = lib_load(a + i, size, site), y = lib_load(b + i, size, site);
    lib_branch(lib_op(STEM_OP_Eq, lib_word(x), lib_word(y)), site);
    if (x.value != y.value) {
      while (lib_at(x, at) == lib_at(y, at)) at++;
      return lib_difference(x, y, at, site);
    }
    i += size;
  }
  return lib_constant(0, 32);
}

STEM_EXPORT int __stem_wrap_memcmp(const void* a, const void* b, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_memcmp);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b), LIB_PIN(call, 2, n);
  struct lib_value result = compare(a, b, n, call.site);
  lib_leave(__stem_wrap_memcmp, result.id);
  return (int)result.value;
}

STEM_EXPORT int __stem_wrap_bcmp(const void* a, const void* b, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_bcmp);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b), LIB_PIN(call, 2, n);
  struct lib_value result = compare(a, b, n, call.site);
  lib_leave(__stem_wrap_bcmp, result.id);
  return (int)result.value;
}

/* Where a byte is decides a pointer, so the outcome of every comparison on the way is held. */
static const char* find(const char* in, struct lib_value byte, size_t n, const void* site) {
  for (size_t i = 0; i < n;) {
    /* Like memchr, nothing behind the byte found is read. */
    unsigned size = 0;
    while (size < 8 && size < n - i && (uint8_t)((const volatile char*)in)[i + size++] != byte.value) {
    }
    struct lib_chunk chunk = lib_load(in + i, lib_piece(size), site);
    for (unsigned k = 0; k < chunk.size; k++) {
      struct lib_value same = lib_op(STEM_OP_Eq, lib_byte(chunk, k), byte);
      lib_hold(same, site);
      if (same.value) return in + i + k;
    }
    i += chunk.size;
  }
  return 0;
}

STEM_EXPORT void* __stem_wrap_memchr(const void* in, int byte, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_memchr);
  LIB_PIN(call, 0, in), LIB_PIN(call, 2, n);
  struct lib_value wanted = lib_narrow((struct lib_value){(uint32_t)byte, call.id[1], 32}, 8);
  const char* found = find(in, wanted, n, call.site);
  lib_leave(__stem_wrap_memchr, 0);
  return (void*)found;
}

STEM_EXPORT void* __stem_wrap_memrchr(const void* in, int byte, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_memrchr);
  LIB_PIN(call, 0, in), LIB_PIN(call, 2, n);
  struct lib_value wanted = lib_narrow((struct lib_value){(uint32_t)byte, call.id[1], 32}, 8);
  const char* found = 0;
  for (size_t i = n; i-- > 0 && !found;) {
    struct lib_value same = lib_op(STEM_OP_Eq, lib_byte(lib_load((const char*)in + i, 1, call.site), 0), wanted);
    lib_hold(same, call.site);
    if (same.value) found = (const char*)in + i;
  }
  lib_leave(__stem_wrap_memrchr, 0);
  return (void*)found;
}

/* --- realloc: a new object, a copy, and the end of the old one. It always moves: whether glibc's would have is its secret,
 *     and a moved object is another variable. ------------------------------------------------------------------------------- */

static void* resize(struct lib_call* call, void* old, size_t n) {
  void* fresh = 0;
  if (n || !old) fresh = malloc(n);
  if (fresh) {
    lib_alloc(call, fresh, n);
    if (old) {
      size_t before = malloc_usable_size(old);
      copy(call, fresh, old, before < n ? before : n, 0);
    }
  }
  if (old && (fresh || !n)) {
    __stem_free(old, (void*)call->site);
    free(old);
  }
  return fresh;
}

STEM_EXPORT void* __stem_wrap_realloc(void* old, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_realloc);
  LIB_PIN(call, 0, old), LIB_PIN(call, 1, n);
  void* fresh = resize(&call, old, n);
  lib_leave(__stem_wrap_realloc, 0);
  return fresh;
}

STEM_EXPORT void* __stem_wrap_reallocarray(void* old, size_t count, size_t size) {
  struct lib_call call = lib_enter(__stem_wrap_reallocarray);
  LIB_PIN(call, 0, old), LIB_PIN(call, 1, count), LIB_PIN(call, 2, size);
  size_t n = 0;
  void* fresh = 0;
  if (__builtin_mul_overflow(count, size, &n))
    errno = ENOMEM;
  else
    fresh = resize(&call, old, n);
  lib_leave(__stem_wrap_reallocarray, 0);
  return fresh;
}
