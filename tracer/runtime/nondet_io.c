/* Reading from outside: files, pipes, sockets, terminals.
 *
 * The bytes are read into private memory first and only then given to the program, because a call that blocks lets other
 * threads run and must not change their memory behind the recorder's back. On replay nothing is read: the recorded bytes are
 * given, and the real file's position follows them, so that what the program writes still lands where it did.
 *
 * With --symbolic-stdin and --symbolic-file the bytes are inputs, one a call, named after the source and the position:
 * "stdin@0", "notes.txt@512". A plan gives them under these names, or the whole content under "stdin", "notes.txt". */
#include "tracer/runtime/nondet_io.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/runtime/inputs.h"
#include "tracer/runtime/sys.h"

#define FILES 1024

/* Descriptors that are declared inputs. */
static struct symbolic {
  const char* name; /* 0: it is not one */
  uint64_t at;      /* bytes read so far */
  uint64_t limit;   /* what lies behind is not an input */
} symbolic[FILES];

bool lib_is_regular(int fd) {
  struct stat st;
  return stem_sys(SYS_fstat, fd, &st, 0) == 0 && S_ISREG(st.st_mode);
}

int64_t lib_outside(int fd, short events, lib_world world, void* context, void* bytes) {
  struct pollfd p = {fd, events, 0};
  struct stem_thread* self = stem_current;
  if (stem_sys(SYS_poll, &p, 1, 0) != 0) return world(context, bytes);
  int64_t result;
  int error;
  {
    STEM_OUTSIDE(self);
    result = world(context, bytes);
    error = errno;
  }
  self->library[LIB_BLOCKED] = 1;
  errno = error;
  return result;
}

int64_t lib_outside_stream(void* stream, size_t n, lib_world world, void* context, void* bytes) {
  FILE* f = stream;
  struct stem_thread* self = stem_current;
  if ((size_t)(f->_IO_read_end - f->_IO_read_ptr) >= n || lib_is_regular(fileno(f))) return world(context, bytes);
  int64_t result;
  int error;
  {
    STEM_OUTSIDE(self);
    result = world(context, bytes);
    error = errno;
  }
  self->library[LIB_BLOCKED] = 1;
  errno = error;
  return result;
}

static int64_t ask(struct lib_source source, size_t n, lib_world world, void* context, void* bytes) {
  return source.stream ? lib_outside_stream(source.stream, n, world, context, bytes)
                       : lib_outside(source.fd, POLLIN, world, context, bytes);
}

/* --- declared inputs ------------------------------------------------------------------------------------------------------------ */

static const char* after_slash(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The name under which a file is declared in the option symbolic-file (one a line), kept; a name without a folder means the
 * file in any folder. */
static const char* declared_file(const char* path) {
  static const char* names;
  if (!names) {
    names = stem_option("symbolic-file");
    if (!names) names = "";
  }
  for (const char* name = names; *name;) {
    size_t length = strcspn(name, "\n");
    const char* candidate = memchr(name, '/', length) ? path : after_slash(path);
    if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) {
      char* copy = stem_pages(length + 1);
      memcpy(copy, name, length);
      return copy;
    }
    name += length + (name[length] == '\n');
  }
  return 0;
}

void lib_opened(int fd, const char* path) {
  if (fd >= 0 && fd < FILES) symbolic[fd] = (struct symbolic){declared_file(path), 0, UINT64_MAX};
}

void lib_closed(int fd) {
  if (fd >= 0 && fd < FILES) symbolic[fd] = (struct symbolic){0, 0, 0};
}

void lib_symbolic_stdin(uint64_t limit) { symbolic[0] = (struct symbolic){"stdin", 0, limit}; }

/* Bytes of a declared input: the plan's, or else the world's. */
static int64_t read_input(const struct lib_call* call, struct symbolic* s, uint64_t at, void* to, char* bytes, size_t n,
                          struct lib_source source, lib_world world, void* context) {
  char name[512];
  struct stem_text text = {name, name + sizeof name};
  stem_text_add(&text, s->name);
  stem_text_add(&text, "@");
  stem_text_number(&text, at, 10);
  const uint8_t* given;
  size_t size;
  int64_t result;
  if (lib_planned(name, 0, &given, &size)) {
    result = (int64_t)(size < n ? size : n);
    memcpy(bytes, given, (size_t)result);
  } else if (lib_planned(s->name, 0, &given, &size)) {
    uint64_t left = at < size ? size - at : 0;
    result = (int64_t)(left < n ? left : n);
    memcpy(bytes, given + (left ? at : 0), (size_t)result);
  } else {
    result = ask(source, n, world, context, bytes);
    stem_current->library[LIB_BLOCKED] = 0; /* the bytes are the plan's next time, and nothing says that they blocked */
  }
  if (result < 0) return result;
  uint32_t index = lib_input_event(name, bytes, (size_t)result, call->site);
  if (!source.own)
    lib_input_write(index, 0, to, bytes, (size_t)result, call->site);
  else if (result == 1)
    __stem_tls.result_id = stem_expr_input(stem_self(), index, 0, 8);
  return result;
}

/* --- reading ---------------------------------------------------------------------------------------------------------------------- */

/* On replay the real file follows, where it has a position at all. */
static void skip(struct lib_source source, int64_t n) {
  if (!source.moves || n <= 0 || !lib_is_regular(source.fd)) return;
  if (source.stream)
    fseeko(source.stream, n, SEEK_CUR);
  else
    stem_sys(SYS_lseek, source.fd, n, SEEK_CUR);
}

int64_t lib_receive(const struct lib_call* call, const char* what, struct lib_source source, void* to, size_t n, lib_world world,
                    void* context) {
  struct symbolic* s = source.fd >= 0 && source.fd < FILES ? &symbolic[source.fd] : 0;
  char small[512];
  bool direct = !call->site || source.own; /* a library's own buffer: nobody looks at it meanwhile */
  char* bytes = direct ? to : n <= sizeof small ? small : stem_pages(n);
  struct lib_answer answer = {0, 0, 0, 0};
  bool given = false; /* to the program already */
  __stem_tls.result_id = 0;
  if (s && s->name && source.moves && s->at >= s->limit) s = 0; /* behind what was declared */
  if (s && s->name && call->site) {
    if (source.moves && n > s->limit - s->at) n = (size_t)(s->limit - s->at); /* read up to there: a short read is allowed */
    errno = 0;
    answer.result = read_input(call, s, source.moves ? s->at : (uint64_t)source.at, to, bytes, n, source, world, context);
    answer.error = errno;
    given = answer.result >= 0;
    if (given && source.moves) s->at += (uint64_t)answer.result;
  } else {
    if (lib_fed(what, call->site, &answer)) {
      memcpy(bytes, answer.bytes, answer.size < n ? answer.size : n);
      skip(source, answer.result);
    } else {
      errno = 0;
      answer.result = ask(source, n, world, context, bytes);
      answer.error = errno;
    }
    lib_record(what, answer.result, answer.error, bytes, answer.result > 0 ? (size_t)answer.result : 0, call->site);
  }
  if (!given && !direct && answer.result > 0) lib_give(call, to, bytes, (size_t)answer.result);
  if (bytes != small && !direct) stem_pages_free(bytes, n);
  if (answer.error) errno = answer.error;
  return answer.result;
}

/* --- descriptors ---------------------------------------------------------------------------------------------------------------------- */

int lib_descriptor(int real, int64_t recorded, const void* site) {
  if (recorded < 0) {
    if (real >= 0) stem_sys(SYS_close, real, 0, 0);
    return -1;
  }
  if (real < 0) real = (int)stem_sys(SYS_open, "/dev/null", O_RDWR | O_CLOEXEC, 0);
  if (real == recorded || real < 0) return real;
  if (stem_sys(SYS_fcntl, recorded, F_GETFD, 0) >= 0) { /* somebody else has that number: the program must live with ours */
    stem_refuse("a file was opened under another descriptor number than in the recorded run", site);
    return real;
  }
  long flags = stem_sys(SYS_fcntl, real, F_GETFD, 0);
  long moved = stem_sys(SYS_dup3, real, recorded, flags > 0 ? O_CLOEXEC : 0);
  if (moved < 0) return real;
  stem_sys(SYS_close, real, 0, 0);
  return (int)moved;
}
