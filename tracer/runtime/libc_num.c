/* Models of the functions that make numbers out of strings, and of small integer functions.
 *
 * A decimal number stays an expression of its digits: that each is a digit, and where the number ends, is held, the value
 * is free. So an exploration can solve for `atoi(argv[1]) > 7`. Anything else (other bases, overflow, floating point)
 * pins the characters. */
#include "tracer/runtime/lib.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

long __isoc23_strtol(const char*, char**, int);
long long __isoc23_strtoll(const char*, char**, int);
unsigned long __isoc23_strtoul(const char*, char**, int);
unsigned long long __isoc23_strtoull(const char*, char**, int);

static struct lib_value digit_of(struct lib_value c) { return lib_op(STEM_OP_Sub, c, lib_constant('0', 8)); }

/* Holds that the byte at s is, or is not, a digit; its digit in *digit. */
static bool is_digit(const char* s, struct lib_value* digit, const void* site) {
  *digit = digit_of(lib_byte(lib_load(s, 1, site), 0));
  struct lib_value yes = lib_op(STEM_OP_Ult, *digit, lib_constant(10, 8));
  lib_hold(yes, site);
  return yes.value;
}

/* A number of at most 18 digits in base 10, if that is what `s` starts with; *end: behind it. False: nothing was read. */
static bool decimal(const char* s, int base, struct lib_value* result, const char** end, const void* site) {
  const char* p = s;
  while (isspace((unsigned char)*p)) p++;
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  size_t digits = strspn(p, "0123456789");
  if (!digits || digits > 18 || (base != 10 && (base != 0 || *p == '0'))) return false;
  for (const char* q = s; q < p; q++) lib_load_pinned(q, 1, site);
  struct lib_value value = lib_constant(0, 64), digit;
  for (digits = 0; is_digit(p, &digit, site) && digits < 18; digits++, p++) {
    if (base == 0 && digits == 0) lib_hold(lib_op(STEM_OP_Ne, digit, lib_constant(0, 8)), site); /* else it is octal */
    value = lib_op(STEM_OP_Add, lib_op(STEM_OP_Mul, value, lib_constant(10, 64)), lib_widen(digit, 64));
  }
  if (negative) value = lib_op(STEM_OP_Sub, lib_constant(0, 64), value);
  *result = value;
  *end = p;
  return true;
}

/* The characters that can belong to a number, pinned into a copy. */
static void copy_number(struct lib_copy* copy, const char* s, const void* site) {
  size_t n = 0;
  while (isspace((unsigned char)s[n])) n++;
  while (isalnum((unsigned char)s[n]) || (s[n] && strchr("+-._()", s[n]))) n++;
  lib_copy_string(copy, s, n + 1, site);
}

static void put_end(char** where, const char* end, const void* site) {
  if (where) lib_store(where, (struct lib_chunk){(uint64_t)(uintptr_t)end, 0, sizeof end}, site);
}

#define STRTO(name, real, type)                                                            \
  STEM_EXPORT type __stem_wrap_##name(const char* s, char** end, int base) {               \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                  \
    LIB_PIN(call, 0, s), LIB_PIN(call, 1, end), LIB_PIN32(call, 2, base);                  \
    struct lib_value value;                                                                \
    const char* stop;                                                                      \
    if (!decimal(s, base, &value, &stop, call.site)) {                                     \
      struct lib_copy copy;                                                                \
      char* copy_end;                                                                      \
      copy_number(&copy, s, call.site);                                                    \
      value = lib_constant((uint64_t)real(copy.text, &copy_end, base), 64);                \
      stop = s + (copy_end - copy.text);                                                   \
      int error = errno;                                                                   \
      lib_copy_free(&copy);                                                                \
      errno = error;                                                                       \
    }                                                                                      \
    put_end(end, stop, call.site);                                                         \
    lib_leave(__stem_wrap_##name, value.id);                                               \
    return (type)value.value;                                                              \
  }
STRTO(strtol, strtol, long)
STRTO(strtoll, strtoll, long long)
STRTO(strtoul, strtoul, unsigned long)
STRTO(strtoull, strtoull, unsigned long long)
STRTO(__isoc23_strtol, strtol, long)
STRTO(__isoc23_strtoll, strtoll, long long)
STRTO(__isoc23_strtoul, strtoul, unsigned long)
STRTO(__isoc23_strtoull, strtoull, unsigned long long)

static struct lib_value number(const char* s, const void* site) {
  struct lib_value value;
  const char* stop;
  if (decimal(s, 10, &value, &stop, site)) return value;
  struct lib_copy copy;
  copy_number(&copy, s, site);
  value = lib_constant((uint64_t)strtol(copy.text, 0, 10), 64);
  lib_copy_free(&copy);
  return value;
}

#define ATO(name, type)                                                                    \
  STEM_EXPORT type __stem_wrap_##name(const char* s) {                                     \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                  \
    LIB_PIN(call, 0, s);                                                                   \
    struct lib_value value = lib_narrow(number(s, call.site), 8 * sizeof(type));           \
    lib_leave(__stem_wrap_##name, value.id);                                               \
    return (type)value.value;                                                              \
  }
ATO(atoi, int)
ATO(atol, long)
ATO(atoll, long long)

#define STRTOF(name, type)                                                                 \
  STEM_EXPORT type __stem_wrap_##name(const char* s, char** end) {                         \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                  \
    LIB_PIN(call, 0, s), LIB_PIN(call, 1, end);                                            \
    struct lib_copy copy;                                                                  \
    char* copy_end;                                                                        \
    copy_number(&copy, s, call.site);                                                      \
    type value = name(copy.text, &copy_end);                                               \
    put_end(end, s + (copy_end - copy.text), call.site);                                   \
    lib_copy_free(&copy);                                                                  \
    lib_leave(__stem_wrap_##name, 0);                                                      \
    return value;                                                                          \
  }
STRTOF(strtod, double)
STRTOF(strtof, float)

STEM_EXPORT double __stem_wrap_atof(const char* s) {
  struct lib_call call = lib_enter(__stem_wrap_atof);
  LIB_PIN(call, 0, s);
  struct lib_copy copy;
  copy_number(&copy, s, call.site);
  double value = atof(copy.text);
  lib_copy_free(&copy);
  lib_leave(__stem_wrap_atof, 0);
  return value;
}

/* --- integers ------------------------------------------------------------------------------------------------------------- */

static struct lib_value absolute(struct lib_value v) {
  struct lib_value zero = lib_constant(0, v.width);
  return lib_choose(lib_op(STEM_OP_Slt, v, zero), lib_op(STEM_OP_Sub, zero, v), v);
}

#define INTEGER(name, type, model)                                                         \
  STEM_EXPORT type __stem_wrap_##name(type x) {                                            \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                  \
    struct lib_value v = lib_constant((uint64_t)x, 8 * sizeof x);                          \
    v.id = call.id[0];                                                                     \
    v = model(v);                                                                          \
    lib_leave(__stem_wrap_##name, v.id);                                                   \
    return (type)v.value;                                                                  \
  }
INTEGER(abs, int, absolute)
INTEGER(labs, long, absolute)
INTEGER(llabs, long long, absolute)

/* Case as in ASCII if that is what the locale does with this character; otherwise the character is pinned. */
#define CASE(name, model)                                                                  \
  STEM_EXPORT int __stem_wrap_##name(int c) {                                              \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                  \
    struct lib_value v = model((struct lib_value){(uint32_t)c, call.id[0], 32});           \
    int real = name(c);                                                                    \
    if ((int)v.value != real) {                                                            \
      LIB_PIN32(call, 0, c);                                                               \
      v = lib_constant((uint32_t)real, 32);                                                \
    }                                                                                      \
    lib_leave(__stem_wrap_##name, v.id);                                                   \
    return (int)v.value;                                                                   \
  }
CASE(tolower, lib_lower)
CASE(toupper, lib_upper)
