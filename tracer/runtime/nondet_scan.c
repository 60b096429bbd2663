/* scanf and its kin. The library scans into private memory; what it assigned is recorded, fed back, and given to the program as
 * writes. Scanned numbers are not expressions of the characters: of sscanf's string all that can matter is pinned, and of a stream
 * the result is an answer of the outside, also where the stream is declared an input. */
#include "tracer/runtime/nondet_io.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tracer/runtime/sys.h"

#define MOST 16          /* conversions; a format with more goes to the library as it is */
#define ANY 65536        /* room for a %s without a width */

struct target {
  void* to;     /* the program's */
  char* own;    /* ours */
  size_t room;
  bool text;    /* terminated: as long as it is */
  bool counted; /* %n is not */
};

struct scan {
  struct target targets[MOST];
  int n;
  bool usable;
};

static const char* skip_set(const char* f) {
  if (*f == '^') f++;
  if (*f == ']') f++;
  while (*f && *f != ']') f++;
  return *f ? f + 1 : f;
}

/* One conversion behind its '%': false if there is nothing to assign. */
static bool conversion(const char** format, struct target* t) {
  const char* f = *format;
  bool assign = true, allocates = false;
  size_t width = 0, size = 4;
  if (*f == '*') f++, assign = false;
  while (*f >= '0' && *f <= '9') width = width * 10 + (size_t)(*f++ - '0');
  if (*f == '$') assign = false, t->room = SIZE_MAX; /* positional: not followed */
  for (; *f && strchr("hlLqjztm", *f); f++) {
    if (*f == 'h')
      size = size == 2 ? 1 : 2;
    else if (*f == 'm')
      allocates = true;
    else
      size = *f == 'L' ? 16 : 8;
  }
  char letter = *f;
  if (letter) f++;
  if (letter == '[') f = skip_set(f);
  *format = f;
  t->counted = letter != 'n';
  t->text = (letter == 's' || letter == '[') && !allocates;
  switch (letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': case 'n': case 'e': case 'E': case 'f': case 'F': case 'g':
    case 'G': case 'a': case 'A':
      t->room = size;
      break;
    case 'p':
      t->room = sizeof(void*);
      break;
    case 's': case '[':
      t->room = width ? width + 1 : ANY;
      break;
    case 'c':
      t->room = width ? width : 1;
      break;
    default:
      return false; /* %%, or the end */
  }
  if (allocates) t->room = SIZE_MAX; /* a pointer of one run is of no use in another */
  return assign;
}

/* What the format assigns, with the program's pointers out of its arguments. */
static void prepare(struct scan* s, const char* format, va_list ap) {
  s->n = 0;
  s->usable = true;
  for (const char* f = format; *f;) {
    if (*f++ != '%') continue;
    struct target t = {0};
    bool assigns = conversion(&f, &t);
    if (t.room == SIZE_MAX || s->n == MOST) {
      s->usable = false;
      return;
    }
    if (!assigns) continue;
    t.to = va_arg(ap, void*);
    s->targets[s->n++] = t;
  }
  for (int i = 0; i < s->n; i++) s->targets[i].own = stem_pages(s->targets[i].room);
}

static void release(struct scan* s) {
  for (int i = 0; i < s->n; i++) stem_pages_free(s->targets[i].own, s->targets[i].room);
}

static size_t length_of(const struct target* t) { return t->text ? strnlen(t->own, t->room - 1) + 1 : t->room; }

/* How many targets `result` conversions reached, uncounted ones among them included. */
static int reached(const struct scan* s, int result) {
  int i = 0;
  for (int counted = 0; i < s->n && (!s->targets[i].counted || counted < result); i++) counted += s->targets[i].counted;
  return i;
}

static void give(const struct lib_call* call, const struct scan* s, int result) {
  for (int i = 0; i < reached(s, result); i++) lib_give(call, s->targets[i].to, s->targets[i].own, length_of(&s->targets[i]));
}

#define OWN(s, i) ((i) < (s)->n ? (s)->targets[i].own : 0)
#define ALL_OWN(s)                                                                                                        \
  OWN(s, 0), OWN(s, 1), OWN(s, 2), OWN(s, 3), OWN(s, 4), OWN(s, 5), OWN(s, 6), OWN(s, 7), OWN(s, 8), OWN(s, 9), OWN(s, 10), \
      OWN(s, 11), OWN(s, 12), OWN(s, 13), OWN(s, 14), OWN(s, 15)

/* --- from a stream ------------------------------------------------------------------------------------------------------------------------ */

struct question {
  FILE* stream;
  const char* format;
  struct scan* scan;
};

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

static int64_t ask_scan(void* context, void* bytes) {
  struct question* q = context;
  return fscanf(q->stream, q->format, ALL_OWN(q->scan));
}

/* The assigned values one after the other, as they are recorded. */
static size_t pack(const struct scan* s, int result, char* bytes) {
  size_t n = 0;
  for (int i = 0; i < reached(s, result); i++) {
    size_t length = length_of(&s->targets[i]);
    if (bytes) memcpy(bytes + n, s->targets[i].own, length);
    n += length;
  }
  return n;
}

static void unpack(struct scan* s, int result, const struct lib_answer* answer) {
  const char* bytes = answer->bytes;
  size_t left = answer->size;
  for (int i = 0; i < reached(s, result); i++) {
    struct target* t = &s->targets[i];
    size_t length = t->text ? strnlen(bytes, left) + 1 : t->room;
    if (length > left || length > t->room) return;
    memcpy(t->own, bytes, length);
    bytes += length;
    left -= length;
  }
}

static int scan_stream(struct lib_call* call, FILE* stream, const char* format, va_list ap) {
  struct scan s;
  if (!lib_live() || fileno(stream) < 0) return vfscanf(stream, format, ap);
  va_list pointers;
  va_copy(pointers, ap);
  prepare(&s, format, pointers);
  va_end(pointers);
  if (!s.usable) return vfscanf(stream, format, ap);
  struct question q = {stream, format, &s};
  struct lib_answer answer = {0, 0, 0, 0};
  if (lib_fed("scanf", call->site, &answer)) {
    unpack(&s, (int)answer.result, &answer);
  } else {
    errno = 0;
    answer.result = lib_outside_stream(stream, SIZE_MAX, ask_scan, &q, 0);
    answer.error = errno;
  }
  size_t n = pack(&s, (int)answer.result, 0);
  char* bytes = stem_pages(n + 1);
  pack(&s, (int)answer.result, bytes);
  lib_record("scanf", answer.result, answer.error, bytes, n, call->site);
  stem_pages_free(bytes, n + 1);
  give(call, &s, (int)answer.result);
  release(&s);
  if (answer.error) errno = answer.error;
  return (int)answer.result;
}

#define SCANF(name)                                            \
  STEM_EXPORT int __stem_wrap_##name(const char* format, ...) { \
    struct lib_call call = lib_enter(__stem_wrap_##name);      \
    va_list ap;                                                \
    va_start(ap, format);                                      \
    int result = scan_stream(&call, stdin, format, ap);        \
    va_end(ap);                                                \
    lib_leave(__stem_wrap_##name, 0);                          \
    return result;                                             \
  }
SCANF(scanf)
SCANF(__isoc99_scanf)
SCANF(__isoc23_scanf)

#define FSCANF(name)                                                          \
  STEM_EXPORT int __stem_wrap_##name(FILE* stream, const char* format, ...) {  \
    struct lib_call call = lib_enter(__stem_wrap_##name);                     \
    LIB_PIN(call, 0, stream);                                                 \
    va_list ap;                                                               \
    va_start(ap, format);                                                     \
    int result = scan_stream(&call, stream, format, ap);                      \
    va_end(ap);                                                               \
    lib_leave(__stem_wrap_##name, 0);                                         \
    return result;                                                            \
  }
FSCANF(fscanf)
FSCANF(__isoc99_fscanf)
FSCANF(__isoc23_fscanf)

/* --- from a string ------------------------------------------------------------------------------------------------------------------------ */

static int scan_string(struct lib_call* call, const char* from, const char* format, va_list ap) {
  struct scan s;
  if (!lib_live()) return vsscanf(from, format, ap);
  va_list pointers;
  va_copy(pointers, ap);
  prepare(&s, format, pointers);
  va_end(pointers);
  struct lib_copy copy;
  lib_copy_string(&copy, from, SIZE_MAX, call->site);
  int result;
  if (s.usable) {
    result = sscanf(copy.text, format, ALL_OWN(&s));
    give(call, &s, result);
    release(&s);
  } else {
    result = vsscanf(copy.text, format, ap);
  }
  lib_copy_free(&copy);
  return result;
}

#define SSCANF(name)                                                              \
  STEM_EXPORT int __stem_wrap_##name(const char* from, const char* format, ...) {  \
    struct lib_call call = lib_enter(__stem_wrap_##name);                         \
    LIB_PIN(call, 0, from);                                                       \
    va_list ap;                                                                   \
    va_start(ap, format);                                                         \
    int result = scan_string(&call, from, format, ap);                            \
    va_end(ap);                                                                   \
    lib_leave(__stem_wrap_##name, 0);                                             \
    return result;                                                                \
  }
SSCANF(sscanf)
SSCANF(__isoc99_sscanf)
SSCANF(__isoc23_sscanf)
