/* stdio that reads. The C library's buffers stay in use while recording; on replay the recorded bytes are given and the stream
 * only follows them (nondet_io.c). Streams without a descriptor (fmemopen) are not the outside: they are left to the library.
 * scanf is in nondet_scan.c. */
#include "tracer/runtime/nondet_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/runtime/sys.h"

static struct lib_source source_of(FILE* stream) { return (struct lib_source){.fd = fileno(stream), .moves = true, .stream = stream}; }

/* Streams that are the outside's. */
static bool outside(FILE* stream) { return lib_live() && fileno(stream) >= 0; }

/* --- opening and closing ---------------------------------------------------------------------------------------------------------------- */

static FILE* opened(const struct lib_call* call, const char* path, FILE* stream) {
  if (!lib_live()) return stream;
  struct lib_answer answer = {stream ? fileno(stream) : -1, stream ? 0 : errno, 0, 0};
  if (lib_fed("fopen", call->site, &answer)) {
    if (answer.result < 0 && stream) {
      STEM_REAL(fclose)(stream);
      stream = 0;
    } else if (answer.result >= 0 && !stream) {
      stream = STEM_REAL(fopen)("/dev/null", "r+");
    }
  }
  lib_record("fopen", answer.result, answer.error, 0, 0, call->site);
  if (stream) lib_opened(fileno(stream), path);
  if (answer.error) errno = answer.error;
  return stream;
}

#define OPEN(name)                                                                    \
  STEM_EXPORT FILE* name(const char* restrict path, const char* restrict mode) {      \
    struct lib_call call = lib_enter(name);                                           \
    LIB_PIN(call, 0, path), LIB_PIN(call, 1, mode);                                   \
    FILE* stream = opened(&call, path, STEM_REAL(name)(path, mode));                  \
    lib_leave(name, 0);                                                               \
    return stream;                                                                    \
  }
OPEN(fopen)
OPEN(fopen64)

STEM_EXPORT int fclose(FILE* stream) {
  struct lib_call call = lib_enter(fclose);
  LIB_PIN(call, 0, stream);
  lib_closed(fileno(stream));
  lib_leave(fclose, 0);
  return STEM_REAL(fclose)(stream);
}

/* --- bytes ------------------------------------------------------------------------------------------------------------------------------ */

struct request {
  FILE* stream;
  size_t n;
  int stop; /* read up to and with this character; -1: none */
};

static int64_t ask_fread(void* context, void* bytes) {
  struct request* r = context;
  return (int64_t)STEM_REAL(fread)(bytes, 1, r->n, r->stream);
}

STEM_EXPORT size_t fread(void* restrict to, size_t size, size_t count, FILE* restrict stream) {
  struct lib_call call = lib_enter(fread);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, size), LIB_PIN(call, 2, count), LIB_PIN(call, 3, stream);
  if (!outside(stream) || !size || !count) return STEM_REAL(fread)(to, size, count, stream);
  struct request r = {stream, size * count, -1};
  int64_t n = lib_receive(&call, "fread", source_of(stream), to, r.n, ask_fread, &r);
  lib_leave(fread, 0);
  return n < 0 ? 0 : (size_t)n / size;
}

static int64_t ask_until(void* context, void* bytes) {
  struct request* r = context;
  size_t n = 0;
  flockfile(r->stream);
  while (n < r->n) {
    int c = getc_unlocked(r->stream);
    if (c == EOF) break;
    ((char*)bytes)[n++] = (char)c;
    if (c == r->stop) break;
  }
  funlockfile(r->stream);
  return (int64_t)n;
}

STEM_EXPORT char* fgets(char* restrict to, int size, FILE* restrict stream) {
  struct lib_call call = lib_enter(fgets);
  LIB_PIN(call, 0, to), LIB_PIN32(call, 1, size), LIB_PIN(call, 2, stream);
  if (!outside(stream) || size < 2) return STEM_REAL(fgets)(to, size, stream);
  struct request r = {stream, (size_t)size - 1, '\n'};
  int64_t n = lib_receive(&call, "fgets", source_of(stream), to, r.n, ask_until, &r);
  if (n > 0) lib_give(&call, to + n, "", 1);
  lib_leave(fgets, 0);
  return n > 0 ? to : 0;
}

/* One character, read into memory of ours: no event. What it is stays free if the stream is an input. */
static int character(const struct lib_call* call, FILE* stream, uint32_t* id) {
  unsigned char c = 0;
  struct request r = {stream, 1, -1};
  *id = 0;
  if (!outside(stream)) return STEM_REAL(getc)(stream);
  struct lib_source source = source_of(stream);
  source.own = true;
  int64_t n = lib_receive(call, "getc", source, &c, 1, ask_until, &r);
  if (n > 0 && __stem_tls.result_id) *id = (uint32_t)__stem_convert(STEM_OP_ZExt, 32, 8, 0, __stem_tls.result_id);
  return n > 0 ? c : EOF;
}

#define CHARACTER(name)                                        \
  STEM_EXPORT int name(FILE* stream) {                         \
    struct lib_call call = lib_enter(name);                    \
    LIB_PIN(call, 0, stream);                                  \
    uint32_t id;                                               \
    int c = character(&call, stream, &id);                     \
    lib_leave(name, id);                                       \
    return c;                                                  \
  }
#undef getc
CHARACTER(getc)
CHARACTER(fgetc)

#undef getchar
STEM_EXPORT int getchar(void) {
  struct lib_call call = lib_enter(getchar);
  uint32_t id;
  int c = character(&call, stdin, &id);
  lib_leave(getchar, id);
  return c;
}

STEM_EXPORT int ungetc(int c, FILE* stream) {
  struct lib_call call = lib_enter(ungetc);
  LIB_PIN32(call, 0, c), LIB_PIN(call, 1, stream);
  int result = STEM_REAL(ungetc)(c, stream);
  if (outside(stream) && lib_feeding()) result = c == EOF ? EOF : (unsigned char)c;
  lib_leave(ungetc, 0);
  return result;
}

/* --- lines of any length ---------------------------------------------------------------------------------------------------------------- */

static int64_t ask_line(void* context, void* bytes) {
  struct request* r = context;
  char** line = bytes;
  size_t room = 0;
  return STEM_REAL(getdelim)(line, &room, r->stop, r->stream);
}

/* The library reads the line into memory of its own; from there it goes into the program's buffer, which may have to grow. */
static ssize_t read_line(const struct lib_call* call, char** to, size_t* room, int stop, FILE* stream) {
  struct request r = {stream, 0, stop};
  char* line = 0;
  struct lib_answer answer = {0, 0, 0, 0};
  if (lib_fed("getline", call->site, &answer)) {
    if (answer.result > 0 && lib_is_regular(fileno(stream))) fseeko(stream, answer.result, SEEK_CUR);
  } else {
    errno = 0;
    answer.result = lib_outside_stream(stream, SIZE_MAX, ask_line, &r, &line);
    answer.error = answer.result < 0 ? errno : 0;
    answer.bytes = line;
    answer.size = answer.result > 0 ? (uint32_t)answer.result : 0;
  }
  lib_record("getline", answer.result, answer.error, answer.bytes, answer.size, call->site);
  if (answer.result > 0) {
    size_t needed = (size_t)answer.result + 1;
    char* buffer = *to;
    if (!buffer || *room < needed) {
      size_t grown = needed < 120 ? 120 : needed;
      if (buffer && call->site) __stem_free(buffer, (void*)call->site);
      buffer = realloc(buffer, grown);
      if (call->site) lib_alloc(call, buffer, grown);
      lib_give(call, to, &buffer, sizeof buffer);
      lib_give(call, room, &grown, sizeof grown);
    }
    lib_give(call, buffer, answer.bytes, answer.size);
    lib_give(call, buffer + answer.size, "", 1);
  }
  free(line);
  if (answer.error) errno = answer.error;
  return (ssize_t)answer.result;
}

/* The headers turn getline into __getdelim when they optimise. */
#define DELIMITED(name)                                                                                           \
  STEM_EXPORT ssize_t name(char** restrict to, size_t* restrict room, int stop, FILE* restrict stream) {          \
    struct lib_call call = lib_enter(name);                                                                       \
    LIB_PIN(call, 0, to), LIB_PIN(call, 1, room), LIB_PIN32(call, 2, stop), LIB_PIN(call, 3, stream);             \
    ssize_t n = outside(stream) ? read_line(&call, to, room, stop, stream) : STEM_REAL(name)(to, room, stop, stream); \
    lib_leave(name, 0);                                                                                           \
    return n;                                                                                                     \
  }
ssize_t __getdelim(char** restrict, size_t* restrict, int, FILE* restrict);
DELIMITED(getdelim)
DELIMITED(__getdelim)

#undef getline
STEM_EXPORT ssize_t getline(char** restrict to, size_t* restrict room, FILE* restrict stream) {
  struct lib_call call = lib_enter(getline);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, room), LIB_PIN(call, 2, stream);
  ssize_t n = outside(stream) ? read_line(&call, to, room, '\n', stream) : STEM_REAL(getdelim)(to, room, '\n', stream);
  lib_leave(getline, 0);
  return n;
}

/* --- state -------------------------------------------------------------------------------------------------------------------------------- */

#undef feof
#undef ferror
static int64_t ask_feof(void* context, void* bytes) { return STEM_REAL(feof)(context); }
static int64_t ask_ferror(void* context, void* bytes) { return STEM_REAL(ferror)(context); }

#define STATE(name)                                                                                         \
  STEM_EXPORT int name(FILE* stream) {                                                                      \
    struct lib_call call = lib_enter(name);                                                                 \
    LIB_PIN(call, 0, stream);                                                                               \
    int error = errno;                                                                                      \
    int result = outside(stream) ? (int)lib_ask(&call, #name, 0, 0, ask_##name, stream) : STEM_REAL(name)(stream); \
    errno = error;                                                                                          \
    lib_leave(name, 0);                                                                                     \
    return result;                                                                                          \
  }
STATE(feof)
STATE(ferror)
