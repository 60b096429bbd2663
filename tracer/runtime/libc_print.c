/* Formatted output. The format is parsed to know what each argument is: symbolic numbers are pinned, strings are read (pinned),
 * and what sprintf and its kin write is recorded as writes of concrete bytes. The C library does the formatting.
 *
 * The strings are read before they are formatted, each piece a visible operation: a thread that changes a string in between
 * makes the text differ from what the reads say. */
#include "tracer/runtime/lib.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

void __chk_fail(void) __attribute__((noreturn));

/* One conversion of a format: what it takes from the arguments. */
struct conversion {
  int stars;     /* int arguments for width and precision */
  int precision; /* -1 none, -2 an argument */
  int bytes;     /* of an integer argument */
  char letter;
};

static const char* parse(const char* f, struct conversion* c) {
  *c = (struct conversion){0, -1, 4, 0};
  while (*f && strchr("-+ #0'I", *f)) f++;
  if (*f == '*') f++, c->stars++;
  while (*f >= '0' && *f <= '9') f++;
  if (*f == '.') {
    f++;
    c->precision = 0;
    if (*f == '*') f++, c->stars++, c->precision = -2;
    while (*f >= '0' && *f <= '9') c->precision = c->precision * 10 + (*f++ - '0');
  }
  for (; *f && strchr("hlLqjzt", *f); f++)
    if (*f != 'h') c->bytes = *f == 'L' ? 16 : 8;
  c->letter = *f;
  return *f ? f + 1 : f;
}

static void pin(struct lib_call* call, int argument, uint64_t value) {
  if (argument < STEM_MAX_ARGS) lib_pin(call, argument, value);
}

/* Takes what one conversion stands for; false if it is none we know, and then nothing behind it can be matched. */
static bool take(struct lib_call* call, int argument, const struct conversion* c, va_list* ap) {
  switch (c->letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': case 'c': case 'C':
      if (c->bytes == 4)
        pin(call, argument, va_arg(*ap, unsigned));
      else
        pin(call, argument, va_arg(*ap, unsigned long));
      return true;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
      if (c->bytes == 16) /* floating point carries no expression */
        (void)va_arg(*ap, long double);
      else
        (void)va_arg(*ap, double);
      return true;
    case 's': {
      const char* s = va_arg(*ap, const char*);
      pin(call, argument, (uint64_t)(uintptr_t)s);
      if (s && c->bytes == 4) {
        struct lib_copy copy;
        lib_copy_string(&copy, s, c->precision < 0 ? SIZE_MAX : (size_t)c->precision, call->site);
        lib_copy_free(&copy);
      }
      return true;
    }
    case 'p': case 'S': case 'n':
      pin(call, argument, (uint64_t)(uintptr_t)va_arg(*ap, void*));
      return true;
  }
  return false;
}

/* %2$d: first what each position is, then through the positions in order. */
static void positional(struct lib_call* call, int first, const char* format, va_list* ap) {
  struct conversion at[STEM_MAX_ARGS] = {0};
  int positions = 0;
  for (const char* f = format; *f;) {
    if (*f++ != '%') continue;
    int position = 0;
    while (*f >= '0' && *f <= '9' && position < 1000) position = position * 10 + (*f++ - '0');
    if (*f != '$' || position < 1 || position > STEM_MAX_ARGS) continue;
    f = parse(f + 1, &at[position - 1]);
    if (position > positions) positions = position;
  }
  for (int i = 0; i < positions; i++)
    if (!take(call, first + i, &at[i], ap)) return;
}

static bool is_positional(const char* format) {
  for (const char* f = format; (f = strchr(f, '%'));) {
    const char* digits = ++f;
    while (*f >= '0' && *f <= '9') f++;
    if (*f == '$' && f > digits) return true;
    if (*f == '%') f++;
  }
  return false;
}

/* Goes through the arguments as the C library will; `next` is the index of the first of them in the call. */
static void arguments(struct lib_call* call, int next, const char* format, va_list list) {
  va_list ap;
  va_copy(ap, list);
  if (is_positional(format)) {
    positional(call, next, format, &ap);
    va_end(ap);
    return;
  }
  for (const char* f = format; *f;) {
    if (*f++ != '%') continue;
    if (*f == '%') {
      f++;
      continue;
    }
    struct conversion c;
    f = parse(f, &c);
    for (int i = 0; i < c.stars; i++) {
      int n = va_arg(ap, int);
      pin(call, next++, (uint32_t)n);
      if (c.precision == -2 && i == c.stars - 1) c.precision = n < 0 ? -1 : n;
    }
    if (c.letter == 'm') continue;
    if (!take(call, next++, &c, &ap)) break;
  }
  va_end(ap);
}

#define BEGIN(name, first)                              \
  struct lib_call call = lib_enter(__stem_wrap_##name); \
  va_list ap;                                           \
  va_start(ap, format);                                 \
  if (stem_on) arguments(&call, first, format, ap)

#define END(name)                   \
  va_end(ap);                       \
  lib_leave(__stem_wrap_##name, 0); \
  return result

STEM_EXPORT int __stem_wrap_printf(const char* format, ...) {
  BEGIN(printf, 1);
  int result = vprintf(format, ap);
  END(printf);
}

STEM_EXPORT int __stem_wrap_fprintf(FILE* stream, const char* format, ...) {
  BEGIN(fprintf, 2);
  int result = vfprintf(stream, format, ap);
  END(fprintf);
}

STEM_EXPORT int __stem_wrap_dprintf(int fd, const char* format, ...) {
  BEGIN(dprintf, 2);
  int result = vdprintf(fd, format, ap);
  END(dprintf);
}

STEM_EXPORT int __stem_wrap___printf_chk(int flag, const char* format, ...) {
  BEGIN(__printf_chk, 2);
  int result = vprintf(format, ap);
  END(__printf_chk);
}

STEM_EXPORT int __stem_wrap___fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  BEGIN(__fprintf_chk, 3);
  int result = vfprintf(stream, format, ap);
  END(__fprintf_chk);
}

/* --- into memory ------------------------------------------------------------------------------------------------------------ */

/* vsnprintf whose bytes are recorded writes. room: SIZE_MAX for sprintf. */
static int format_into(char* to, size_t room, const char* format, va_list ap, const void* site) {
  if (!stem_on) return room == SIZE_MAX ? vsprintf(to, format, ap) : vsnprintf(to, room, format, ap);
  char small[1024];
  va_list again;
  va_copy(again, ap);
  int length = vsnprintf(small, sizeof small, format, ap);
  if (length >= 0 && room) {
    size_t keep = (size_t)length + 1 < room ? (size_t)length + 1 : room;
    char* text = small;
    size_t pages = 0;
    if (keep > sizeof small) {
      pages = (size_t)length + 1;
      text = stem_pages(pages);
      vsnprintf(text, pages, format, again);
    }
    text[keep - 1] = 0;
    lib_write(to, text, keep, site);
    if (pages) stem_pages_free(text, pages);
  }
  va_end(again);
  return length;
}

static int format_new(const struct lib_call* call, char** to, const char* format, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int length = vsnprintf(0, 0, format, ap);
  char* fresh = length < 0 ? 0 : malloc((size_t)length + 1);
  if (fresh) {
    lib_alloc(call, fresh, (size_t)length + 1);
    format_into(fresh, (size_t)length + 1, format, again, call->site);
    lib_store(to, (struct lib_chunk){(uint64_t)(uintptr_t)fresh, 0, sizeof fresh}, call->site);
  }
  va_end(again);
  return fresh ? length : -1;
}

STEM_EXPORT int __stem_wrap_sprintf(char* to, const char* format, ...) {
  BEGIN(sprintf, 2);
  LIB_PIN(call, 0, to);
  int result = format_into(to, SIZE_MAX, format, ap, call.site);
  END(sprintf);
}

STEM_EXPORT int __stem_wrap_snprintf(char* to, size_t room, const char* format, ...) {
  BEGIN(snprintf, 3);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, room);
  int result = format_into(to, room, format, ap, call.site);
  END(snprintf);
}

STEM_EXPORT int __stem_wrap___sprintf_chk(char* to, int flag, size_t space, const char* format, ...) {
  BEGIN(__sprintf_chk, 4);
  LIB_PIN(call, 0, to);
  va_list again;
  va_copy(again, ap);
  if ((size_t)vsnprintf(0, 0, format, again) >= space) __chk_fail();
  va_end(again);
  int result = format_into(to, space, format, ap, call.site);
  END(__sprintf_chk);
}

STEM_EXPORT int __stem_wrap___snprintf_chk(char* to, size_t room, int flag, size_t space, const char* format, ...) {
  BEGIN(__snprintf_chk, 5);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, room);
  if (room > space) __chk_fail();
  int result = format_into(to, room, format, ap, call.site);
  END(__snprintf_chk);
}

STEM_EXPORT int __stem_wrap_asprintf(char** to, const char* format, ...) {
  BEGIN(asprintf, 2);
  LIB_PIN(call, 0, to);
  int result = format_new(&call, to, format, ap);
  END(asprintf);
}

/* --- with a va_list: its arguments were pinned where they were passed ------------------------------------------------------- */

#define V_ARGUMENTS() \
  if (stem_on) arguments(&(struct lib_call){.site = call.site}, STEM_MAX_ARGS, format, ap)

STEM_EXPORT int __stem_wrap_vprintf(const char* format, va_list ap) {
  struct lib_call call = lib_enter(__stem_wrap_vprintf);
  V_ARGUMENTS();
  int result = vprintf(format, ap);
  lib_leave(__stem_wrap_vprintf, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_vfprintf(FILE* stream, const char* format, va_list ap) {
  struct lib_call call = lib_enter(__stem_wrap_vfprintf);
  V_ARGUMENTS();
  int result = vfprintf(stream, format, ap);
  lib_leave(__stem_wrap_vfprintf, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_vsprintf(char* to, const char* format, va_list ap) {
  struct lib_call call = lib_enter(__stem_wrap_vsprintf);
  LIB_PIN(call, 0, to);
  V_ARGUMENTS();
  int result = format_into(to, SIZE_MAX, format, ap, call.site);
  lib_leave(__stem_wrap_vsprintf, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_vsnprintf(char* to, size_t room, const char* format, va_list ap) {
  struct lib_call call = lib_enter(__stem_wrap_vsnprintf);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, room);
  V_ARGUMENTS();
  int result = format_into(to, room, format, ap, call.site);
  lib_leave(__stem_wrap_vsnprintf, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_vasprintf(char** to, const char* format, va_list ap) {
  struct lib_call call = lib_enter(__stem_wrap_vasprintf);
  LIB_PIN(call, 0, to);
  V_ARGUMENTS();
  int result = format_new(&call, to, format, ap);
  lib_leave(__stem_wrap_vasprintf, 0);
  return result;
}

/* --- unformatted ---------------------------------------------------------------------------------------------------------- */

static void read_string(const char* s, const void* site) {
  struct lib_copy copy;
  lib_copy_string(&copy, s, SIZE_MAX, site);
  lib_copy_free(&copy);
}

STEM_EXPORT int __stem_wrap_puts(const char* s) {
  struct lib_call call = lib_enter(__stem_wrap_puts);
  LIB_PIN(call, 0, s);
  if (stem_on) read_string(s, call.site);
  lib_leave(__stem_wrap_puts, 0);
  return puts(s);
}

STEM_EXPORT int __stem_wrap_fputs(const char* s, FILE* stream) {
  struct lib_call call = lib_enter(__stem_wrap_fputs);
  LIB_PIN(call, 0, s), LIB_PIN(call, 1, stream);
  if (stem_on) read_string(s, call.site);
  lib_leave(__stem_wrap_fputs, 0);
  return fputs(s, stream);
}

STEM_EXPORT size_t __stem_wrap_fwrite(const void* from, size_t size, size_t n, FILE* stream) {
  struct lib_call call = lib_enter(__stem_wrap_fwrite);
  LIB_PIN(call, 0, from), LIB_PIN(call, 1, size), LIB_PIN(call, 2, n), LIB_PIN(call, 3, stream);
  if (stem_on) stem_read_range(from, size * n, call.site);
  lib_leave(__stem_wrap_fwrite, 0);
  return fwrite(from, size, n, stream);
}

#define PUT_CHARACTER(name)                                      \
  STEM_EXPORT int __stem_wrap_##name(int c, FILE* stream) {      \
    struct lib_call call = lib_enter(__stem_wrap_##name);        \
    LIB_PIN32(call, 0, c), LIB_PIN(call, 1, stream);             \
    lib_leave(__stem_wrap_##name, 0);                            \
    return name(c, stream);                                      \
  }
PUT_CHARACTER(putc)
PUT_CHARACTER(fputc)

STEM_EXPORT int __stem_wrap_putchar(int c) {
  struct lib_call call = lib_enter(__stem_wrap_putchar);
  LIB_PIN32(call, 0, c);
  lib_leave(__stem_wrap_putchar, 0);
  return putchar(c);
}

STEM_EXPORT void __stem_wrap_perror(const char* s) {
  struct lib_call call = lib_enter(__stem_wrap_perror);
  LIB_PIN(call, 0, s);
  int error = errno;
  if (s && stem_on) read_string(s, call.site);
  errno = error;
  perror(s);
}
