/* Models of the functions on strings that copy and compare. Lengths are held (lib_hold_end), contents stay free; comparisons
 * branch as in libc_mem.c. Searching is in libc_find.c. */
#include "tracer/runtime/lib.h"

#include <stdlib.h>
#include <string.h>

/* Copies at most `limit` bytes up to and with the terminator; returns the length without it (limit: there was none). */
static size_t copy(char* to, const char* from, size_t limit, const void* site) {
  for (size_t i = 0; i < limit;) {
    struct lib_chunk chunk = lib_load(from + i, lib_string_piece(from + i, limit - i), site);
    lib_hold_end(chunk, site);
    unsigned end = 0;
    while (end < chunk.size && lib_at(chunk, end)) end++;
    if (end >= chunk.size - 1) { /* the terminator, if any, is the last byte */
      lib_store(to + i, chunk, site);
    } else { /* somebody shortened the string since it was looked at */
      for (unsigned k = 0; k <= end; k++) {
        struct lib_value byte = lib_byte(chunk, k);
        lib_store(to + i + k, (struct lib_chunk){byte.value, byte.id, 1}, site);
      }
    }
    if (end < chunk.size) return i + end;
    i += chunk.size;
  }
  return limit;
}

static void terminate(char* at, const void* site) { lib_store(at, (struct lib_chunk){0, 0, 1}, site); }

STEM_EXPORT size_t __stem_wrap_strlen(const char* s) {
  struct lib_call call = lib_enter(__stem_wrap_strlen);
  LIB_PIN(call, 0, s);
  size_t length = lib_length(s, SIZE_MAX, call.site);
  lib_leave(__stem_wrap_strlen, 0);
  return length;
}

STEM_EXPORT size_t __stem_wrap_strnlen(const char* s, size_t limit) {
  struct lib_call call = lib_enter(__stem_wrap_strnlen);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, limit);
  size_t length = lib_length(s, limit, call.site);
  lib_leave(__stem_wrap_strnlen, 0);
  return length;
}

/* --- copying -------------------------------------------------------------------------------------------------------------- */

void __chk_fail(void) __attribute__((noreturn));

/* What a fortified function checks before it writes: `needed` bytes into `room`. */
static void fits(size_t needed, size_t room) {
  if (needed > room) __chk_fail();
}

#define STRING_COPY(name, result)                                             \
  STEM_EXPORT char* __stem_wrap_##name(char* to, const char* from) {          \
    struct lib_call call = lib_enter(__stem_wrap_##name);                     \
    LIB_PIN(call, 0, to), LIB_PIN(call, 1, from);                             \
    size_t length = copy(to, from, SIZE_MAX, call.site);                      \
    (void)length;                                                             \
    lib_leave(__stem_wrap_##name, 0);                                         \
    return result;                                                            \
  }                                                                           \
  STEM_EXPORT char* __stem_wrap___##name##_chk(char* to, const char* from, size_t room) { \
    struct lib_call call = lib_enter(__stem_wrap___##name##_chk);             \
    LIB_PIN(call, 0, to), LIB_PIN(call, 1, from);                             \
    fits(strlen(from) + 1, room);                                             \
    size_t length = copy(to, from, SIZE_MAX, call.site);                      \
    (void)length;                                                             \
    lib_leave(__stem_wrap___##name##_chk, 0);                                 \
    return result;                                                            \
  }
STRING_COPY(strcpy, to)
STRING_COPY(stpcpy, to + length)

static void copy_padded(char* to, const char* from, size_t n, const void* site) {
  size_t length = copy(to, from, n, site);
  if (length < n) __stem_fill(to + length, 0, 0, n - length, (void*)site);
}

STEM_EXPORT char* __stem_wrap_strncpy(char* to, const char* from, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_strncpy);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  copy_padded(to, from, n, call.site);
  lib_leave(__stem_wrap_strncpy, 0);
  return to;
}

STEM_EXPORT char* __stem_wrap___strncpy_chk(char* to, const char* from, size_t n, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___strncpy_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  fits(n, room);
  copy_padded(to, from, n, call.site);
  lib_leave(__stem_wrap___strncpy_chk, 0);
  return to;
}

static void append(char* to, const char* from, size_t n, const void* site) {
  char* end = to + lib_length(to, SIZE_MAX, site);
  size_t length = copy(end, from, n, site);
  if (length == n) terminate(end + length, site);
}

STEM_EXPORT char* __stem_wrap_strcat(char* to, const char* from) {
  struct lib_call call = lib_enter(__stem_wrap_strcat);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from);
  append(to, from, SIZE_MAX, call.site);
  lib_leave(__stem_wrap_strcat, 0);
  return to;
}

STEM_EXPORT char* __stem_wrap___strcat_chk(char* to, const char* from, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___strcat_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from);
  fits(strlen(to) + strlen(from) + 1, room);
  append(to, from, SIZE_MAX, call.site);
  lib_leave(__stem_wrap___strcat_chk, 0);
  return to;
}

STEM_EXPORT char* __stem_wrap_strncat(char* to, const char* from, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_strncat);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  append(to, from, n, call.site);
  lib_leave(__stem_wrap_strncat, 0);
  return to;
}

STEM_EXPORT char* __stem_wrap___strncat_chk(char* to, const char* from, size_t n, size_t room) {
  struct lib_call call = lib_enter(__stem_wrap___strncat_chk);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  fits(strlen(to) + strnlen(from, n) + 1, room);
  append(to, from, n, call.site);
  lib_leave(__stem_wrap___strncat_chk, 0);
  return to;
}

/* A new object; its length was decided by a first look at the string, as in the C library. */
static char* duplicate(const struct lib_call* call, const char* from, size_t limit) {
  const void* site = call->site;
  size_t length = lib_length(from, limit, site);
  char* fresh = malloc(length + 1);
  if (!fresh) return 0;
  lib_alloc(call, fresh, length + 1);
  if (length) __stem_copy(fresh, (void*)from, length, 0, (void*)site);
  terminate(fresh + length, site);
  return fresh;
}

STEM_EXPORT char* __stem_wrap_strdup(const char* from) {
  struct lib_call call = lib_enter(__stem_wrap_strdup);
  LIB_PIN(call, 0, from);
  char* fresh = duplicate(&call, from, SIZE_MAX);
  lib_leave(__stem_wrap_strdup, 0);
  return fresh;
}

STEM_EXPORT char* __stem_wrap___strdup(const char* from) {
  struct lib_call call = lib_enter(__stem_wrap___strdup);
  LIB_PIN(call, 0, from);
  char* fresh = duplicate(&call, from, SIZE_MAX);
  lib_leave(__stem_wrap___strdup, 0);
  return fresh;
}

STEM_EXPORT char* __stem_wrap_strndup(const char* from, size_t limit) {
  struct lib_call call = lib_enter(__stem_wrap_strndup);
  LIB_PIN(call, 0, from), LIB_PIN(call, 1, limit);
  char* fresh = duplicate(&call, from, limit);
  lib_leave(__stem_wrap_strndup, 0);
  return fresh;
}

/* --- comparing ------------------------------------------------------------------------------------------------------------ */

static struct lib_value compare(const char* a, const char* b, size_t n, const void* site) {
  for (size_t i = 0; i < n;) {
    unsigned of_a = lib_string_piece(a + i, n - i), of_b = lib_string_piece(b + i, n - i), at = 0;
    unsigned size = of_a < of_b ? of_a : of_b;
    struct lib_chunk x = lib_load(a + i, size, site), y = lib_load(b + i, size, site);
    lib_branch(lib_op(STEM_OP_Eq, lib_word(x), lib_word(y)), site);
    while (at < size && lib_at(x, at) == lib_at(y, at) && lib_at(x, at)) at++;
    if (at < size) { /* they differ here, or end here */
      for (unsigned k = 0; k < at; k++) lib_hold(lib_op(STEM_OP_Ne, lib_byte(x, k), lib_constant(0, 8)), site);
      if (!lib_at(x, at)) lib_hold(lib_op(STEM_OP_Eq, lib_byte(x, at), lib_constant(0, 8)), site);
      return lib_difference(x, y, at, site);
    }
    lib_hold_end(x, site);
    i += size;
  }
  return lib_constant(0, 32);
}

STEM_EXPORT int __stem_wrap_strcmp(const char* a, const char* b) {
  struct lib_call call = lib_enter(__stem_wrap_strcmp);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b);
  struct lib_value result = compare(a, b, SIZE_MAX, call.site);
  lib_leave(__stem_wrap_strcmp, result.id);
  return (int)result.value;
}

STEM_EXPORT int __stem_wrap_strncmp(const char* a, const char* b, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_strncmp);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b), LIB_PIN(call, 2, n);
  struct lib_value result = compare(a, b, n, call.site);
  lib_leave(__stem_wrap_strncmp, result.id);
  return (int)result.value;
}

/* What the locale makes of two strings is its own affair: both are pinned. */
STEM_EXPORT int __stem_wrap_strcoll(const char* a, const char* b) {
  struct lib_call call = lib_enter(__stem_wrap_strcoll);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b);
  struct lib_copy x, y;
  lib_copy_string(&x, a, SIZE_MAX, call.site);
  lib_copy_string(&y, b, SIZE_MAX, call.site);
  int result = strcoll(x.text, y.text);
  lib_copy_free(&x), lib_copy_free(&y);
  lib_leave(__stem_wrap_strcoll, 0);
  return result;
}

/* Byte by byte, in the C locale's sense of case (all that UTF-8 locales have for single bytes). */
static struct lib_value compare_folded(const char* a, const char* b, size_t n, const void* site) {
  for (size_t i = 0; i < n; i++) {
    struct lib_value x = lib_byte(lib_load(a + i, 1, site), 0), y = lib_byte(lib_load(b + i, 1, site), 0);
    struct lib_value p = lib_lower(lib_widen(x, 32)), q = lib_lower(lib_widen(y, 32));
    struct lib_value same = lib_op(STEM_OP_Eq, p, q);
    lib_branch(same, site);
    if (!same.value) return lib_op(STEM_OP_Sub, p, q);
    struct lib_value end = lib_op(STEM_OP_Eq, x, lib_constant(0, 8));
    lib_hold(end, site);
    if (end.value) break;
  }
  return lib_constant(0, 32);
}

STEM_EXPORT int __stem_wrap_strcasecmp(const char* a, const char* b) {
  struct lib_call call = lib_enter(__stem_wrap_strcasecmp);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b);
  struct lib_value result = compare_folded(a, b, SIZE_MAX, call.site);
  lib_leave(__stem_wrap_strcasecmp, result.id);
  return (int)result.value;
}

STEM_EXPORT int __stem_wrap_strncasecmp(const char* a, const char* b, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_strncasecmp);
  LIB_PIN(call, 0, a), LIB_PIN(call, 1, b), LIB_PIN(call, 2, n);
  struct lib_value result = compare_folded(a, b, n, call.site);
  lib_leave(__stem_wrap_strncasecmp, result.id);
  return (int)result.value;
}
