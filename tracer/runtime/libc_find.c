/* Models of the functions that search in strings. Where something is found decides a pointer or a length, so the outcome of
 * every comparison on the way is held; the functions with sets and needles pin the characters themselves. */
#include "tracer/runtime/lib.h"

#include <string.h>

/* The first `wanted` in the string, the terminator included; `last`: the last one. 0: none; *end: where the string ends. */
static const char* find(const char* s, struct lib_value wanted, bool last, const char** end, const void* site) {
  const char* found = 0;
  for (;; s++) {
    struct lib_value c = lib_byte(lib_load(s, 1, site), 0);
    struct lib_value same = lib_op(STEM_OP_Eq, c, wanted);
    lib_hold(same, site);
    if (same.value) found = s;
    if (same.value && !last) break;
    struct lib_value zero = lib_op(STEM_OP_Eq, c, lib_constant(0, 8));
    lib_hold(zero, site);
    if (zero.value) break;
  }
  *end = s;
  return found;
}

static struct lib_value character(struct lib_call* call, int argument, int value) {
  return lib_narrow((struct lib_value){(uint32_t)value, call->id[argument], 32}, 8);
}

#define FIND(name, last, result)                                                                      \
  STEM_EXPORT char* __stem_wrap_##name(const char* s, int c) {                                        \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                             \
    LIB_PIN(call, 0, s);                                                                              \
    const char* end;                                                                                  \
    const char* found = find(s, character(&call, 1, c), last, &end, call.site);                       \
    lib_leave(__stem_wrap_##name, 0);                                                                 \
    return (char*)(result);                                                                           \
  }
FIND(strchr, false, found)
FIND(index, false, found)
FIND(strrchr, true, found)
FIND(rindex, true, found)
FIND(strchrnul, false, found ? found : end)

STEM_EXPORT char* __stem_wrap_strstr(const char* s, const char* needle) {
  struct lib_call call = lib_enter(__stem_wrap_strstr);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, needle);
  struct lib_copy hay, wanted;
  lib_copy_string(&wanted, needle, SIZE_MAX, call.site);
  lib_copy_string(&hay, s, SIZE_MAX, call.site);
  const char* found = strstr(hay.text, wanted.text);
  if (found) found = s + (found - hay.text);
  lib_copy_free(&wanted), lib_copy_free(&hay);
  lib_leave(__stem_wrap_strstr, 0);
  return (char*)found;
}

/* How many bytes of s, from its start, are in (or not in) the set; reads one byte beyond them. */
static size_t span(const char* s, const char* set, bool inside, const void* site) {
  size_t n = 0;
  for (;; n++) {
    char c = (char)lib_load_pinned(s + n, 1, site).value;
    if (!c || (strchr(set, c) != 0) != inside) return n;
  }
}

static size_t span_of(const char* s, const char* set, bool inside, const void* site) {
  struct lib_copy copy;
  lib_copy_string(&copy, set, SIZE_MAX, site);
  size_t n = span(s, copy.text, inside, site);
  lib_copy_free(&copy);
  return n;
}

STEM_EXPORT size_t __stem_wrap_strspn(const char* s, const char* set) {
  struct lib_call call = lib_enter(__stem_wrap_strspn);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, set);
  size_t n = span_of(s, set, true, call.site);
  lib_leave(__stem_wrap_strspn, 0);
  return n;
}

STEM_EXPORT size_t __stem_wrap_strcspn(const char* s, const char* set) {
  struct lib_call call = lib_enter(__stem_wrap_strcspn);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, set);
  size_t n = span_of(s, set, false, call.site);
  lib_leave(__stem_wrap_strcspn, 0);
  return n;
}

STEM_EXPORT char* __stem_wrap_strpbrk(const char* s, const char* set) {
  struct lib_call call = lib_enter(__stem_wrap_strpbrk);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, set);
  size_t n = span_of(s, set, false, call.site);
  char* found = lib_load_pinned(s + n, 1, call.site).value ? (char*)s + n : 0;
  lib_leave(__stem_wrap_strpbrk, 0);
  return found;
}

STEM_EXPORT char* __stem_wrap_strtok_r(char* s, const char* set, char** save) {
  struct lib_call call = lib_enter(__stem_wrap_strtok_r);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, set), LIB_PIN(call, 2, save);
  if (!s) s = (char*)(uintptr_t)lib_load_pinned(save, sizeof *save, call.site).value;
  char* token = 0;
  if (s) {
    struct lib_copy copy;
    lib_copy_string(&copy, set, SIZE_MAX, call.site);
    s += span(s, copy.text, true, call.site);
    size_t n = span(s, copy.text, false, call.site);
    lib_copy_free(&copy);
    if (n) {
      token = s;
      s += n;
      if (lib_load_pinned(s, 1, call.site).value) lib_store(s++, (struct lib_chunk){0, 0, 1}, call.site);
    }
    lib_store(save, (struct lib_chunk){(uint64_t)(uintptr_t)s, 0, sizeof s}, call.site);
  }
  lib_leave(__stem_wrap_strtok_r, 0);
  return token;
}
