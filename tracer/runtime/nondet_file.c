/* Descriptors: open, read, write, seek, stat, folders. What came back is recorded and fed back (nondet_io.c); writes are done
 * again on replay, except where that could block or where nobody is at the other end. */
#include "tracer/runtime/nondet_io.h"
#include "tracer/runtime/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracer/runtime/sys.h"

/* --- opening ---------------------------------------------------------------------------------------------------------------------- */

/* The real descriptor, opened by the caller, as what the program is told. */
static int opened(const struct lib_call* call, const char* what, const char* path, int fd) {
  if (!lib_live()) return fd;
  struct lib_answer answer = {fd, fd < 0 ? errno : 0, 0, 0};
  if (lib_fed(what, call->site, &answer)) {
    fd = lib_descriptor(fd, answer.result, call->site);
    answer.result = fd;
  }
  lib_record(what, answer.result, answer.error, 0, 0, call->site);
  lib_opened(fd, path);
  if (answer.error) errno = answer.error;
  return fd;
}

#define MODE(flags)                                        \
  mode_t mode = 0;                                         \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                 \
    va_list ap;                                            \
    va_start(ap, flags);                                   \
    mode = va_arg(ap, mode_t);                             \
    va_end(ap);                                            \
  }

#define OPEN(name)                                                              \
  STEM_EXPORT int name(const char* path, int flags, ...) {                      \
    struct lib_call call = lib_enter(name);                                     \
    LIB_PIN(call, 0, path), LIB_PIN32(call, 1, flags);                          \
    MODE(flags)                                                                 \
    int fd = opened(&call, "open", path, STEM_REAL(name)(path, flags, mode));   \
    lib_leave(name, 0);                                                         \
    return fd;                                                                  \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                      \
  STEM_EXPORT int name(int folder, const char* path, int flags, ...) {                    \
    struct lib_call call = lib_enter(name);                                               \
    LIB_PIN32(call, 0, folder), LIB_PIN(call, 1, path), LIB_PIN32(call, 2, flags);        \
    MODE(flags)                                                                           \
    int fd = opened(&call, "openat", path, STEM_REAL(name)(folder, path, flags, mode));   \
    lib_leave(name, 0);                                                                   \
    return fd;                                                                            \
  }
OPENAT(openat)
OPENAT(openat64)

STEM_EXPORT int creat(const char* path, mode_t mode) {
  struct lib_call call = lib_enter(creat);
  LIB_PIN(call, 0, path), LIB_PIN32(call, 1, mode);
  int fd = opened(&call, "creat", path, STEM_REAL(creat)(path, mode));
  lib_leave(creat, 0);
  return fd;
}

STEM_EXPORT int close(int fd) {
  struct lib_call call = lib_enter(close);
  LIB_PIN32(call, 0, fd);
  lib_closed(fd);
  lib_leave(close, 0);
  return STEM_REAL(close)(fd);
}

/* --- reading ---------------------------------------------------------------------------------------------------------------------- */

struct request {
  int fd;
  size_t n;
  off_t at;
};

static int64_t ask_read(void* context, void* bytes) {
  struct request* r = context;
  return STEM_REAL(read)(r->fd, bytes, r->n);
}

STEM_EXPORT ssize_t read(int fd, void* to, size_t n) {
  struct lib_call call = lib_enter(read);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n);
  if (!lib_live() || !n) return STEM_REAL(read)(fd, to, n);
  struct request r = {fd, n, 0};
  ssize_t result = (ssize_t)lib_receive(&call, "read", (struct lib_source){.fd = fd, .moves = true}, to, n, ask_read, &r);
  lib_leave(read, 0);
  return result;
}

static int64_t ask_pread(void* context, void* bytes) {
  struct request* r = context;
  return STEM_REAL(pread)(r->fd, bytes, r->n, r->at);
}

#define PREAD(name)                                                                                                       \
  STEM_EXPORT ssize_t name(int fd, void* to, size_t n, off_t at) {                                                        \
    struct lib_call call = lib_enter(name);                                                                               \
    LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n), LIB_PIN(call, 3, at);                              \
    if (!lib_live() || !n) return STEM_REAL(name)(fd, to, n, at);                                                         \
    struct request r = {fd, n, at};                                                                                       \
    ssize_t result = (ssize_t)lib_receive(&call, "pread", (struct lib_source){.fd = fd, .at = at}, to, n, ask_pread, &r);   \
    lib_leave(name, 0);                                                                                                   \
    return result;                                                                                                        \
  }
PREAD(pread)
PREAD(pread64)

STEM_EXPORT ssize_t readv(int fd, const struct iovec* parts, int count) {
  struct lib_call call = lib_enter(readv);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, parts), LIB_PIN32(call, 2, count);
  size_t n = 0;
  for (int i = 0; i < count; i++) n += parts[i].iov_len;
  if (!lib_live() || !n) return STEM_REAL(readv)(fd, parts, count);
  char* bytes = stem_pages(n);
  struct request r = {fd, n, 0};
  struct lib_call library = {0};
  ssize_t result = (ssize_t)lib_receive(&library, "readv", (struct lib_source){.fd = fd, .moves = true}, bytes, n, ask_read, &r);
  for (ssize_t i = 0, given = 0; i < count && given < result; i++) {
    size_t piece = parts[i].iov_len < (size_t)(result - given) ? parts[i].iov_len : (size_t)(result - given);
    lib_give(&call, parts[i].iov_base, bytes + given, piece);
    given += (ssize_t)piece;
  }
  int error = errno;
  stem_pages_free(bytes, n);
  errno = error;
  lib_leave(readv, 0);
  return result;
}

/* --- writing ---------------------------------------------------------------------------------------------------------------------- */

/* Replay: standard output, files and terminals are written again; a pipe if it takes it; a socket never. */
static bool writes_again(int fd) {
  struct stat st;
  if (fd == 1 || fd == 2) return true;
  if (stem_sys(SYS_fstat, fd, &st, 0) < 0 || S_ISSOCK(st.st_mode)) return false;
  if (!S_ISFIFO(st.st_mode)) return true;
  struct pollfd p = {fd, POLLOUT, 0};
  return stem_sys(SYS_poll, &p, 1, 0) == 1 && (p.revents & POLLOUT);
}

static int64_t send_out(const struct lib_call* call, const char* what, int fd, lib_world world, void* context) {
  struct lib_answer answer = {0, 0, 0, 0};
  if (lib_fed(what, call->site, &answer)) {
    if (answer.result > 0 && writes_again(fd)) world(context, 0);
  } else {
    errno = 0;
    answer.result = lib_outside(fd, POLLOUT, world, context, 0);
    answer.error = errno;
  }
  lib_record(what, answer.result, answer.error, 0, 0, call->site);
  if (answer.error) errno = answer.error;
  return answer.result;
}

struct output {
  int fd;
  const void* from;
  size_t n;
  off_t at;
};

static int64_t do_write(void* context, void* bytes) {
  struct output* o = context;
  return STEM_REAL(write)(o->fd, o->from, o->n);
}

STEM_EXPORT ssize_t write(int fd, const void* from, size_t n) {
  struct lib_call call = lib_enter(write);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n);
  if (!lib_live()) return STEM_REAL(write)(fd, from, n);
  if (call.site) stem_read_range(from, n, call.site);
  struct output o = {fd, from, n, 0};
  ssize_t result = (ssize_t)send_out(&call, "write", fd, do_write, &o);
  lib_leave(write, 0);
  return result;
}

static int64_t do_pwrite(void* context, void* bytes) {
  struct output* o = context;
  return STEM_REAL(pwrite)(o->fd, o->from, o->n, o->at);
}

#define PWRITE(name)                                                                            \
  STEM_EXPORT ssize_t name(int fd, const void* from, size_t n, off_t at) {                      \
    struct lib_call call = lib_enter(name);                                                     \
    LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n), LIB_PIN(call, 3, at);  \
    if (!lib_live()) return STEM_REAL(name)(fd, from, n, at);                                   \
    if (call.site) stem_read_range(from, n, call.site);                                         \
    struct output o = {fd, from, n, at};                                                        \
    ssize_t result = (ssize_t)send_out(&call, "pwrite", fd, do_pwrite, &o);                     \
    lib_leave(name, 0);                                                                         \
    return result;                                                                              \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

static int64_t do_writev(void* context, void* bytes) {
  struct output* o = context;
  return STEM_REAL(writev)(o->fd, o->from, (int)o->n);
}

STEM_EXPORT ssize_t writev(int fd, const struct iovec* parts, int count) {
  struct lib_call call = lib_enter(writev);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, parts), LIB_PIN32(call, 2, count);
  if (!lib_live()) return STEM_REAL(writev)(fd, parts, count);
  for (int i = 0; call.site && i < count; i++) stem_read_range(parts[i].iov_base, parts[i].iov_len, call.site);
  struct output o = {fd, parts, (size_t)count, 0};
  ssize_t result = (ssize_t)send_out(&call, "writev", fd, do_writev, &o);
  lib_leave(writev, 0);
  return result;
}

/* --- where and what ------------------------------------------------------------------------------------------------------------------ */

struct seek {
  int fd;
  off_t at;
  int whence;
};

static int64_t do_seek(void* context, void* bytes) {
  struct seek* s = context;
  return STEM_REAL(lseek)(s->fd, s->at, s->whence);
}

/* Done on replay as well, for the writes that follow; what it says is what it said. */
static off_t seek(const struct lib_call* call, struct seek s) {
  if (!lib_live()) return (off_t)do_seek(&s, 0);
  struct lib_answer answer = {do_seek(&s, 0), 0, 0, 0};
  if (answer.result < 0) answer.error = errno;
  lib_fed("lseek", call->site, &answer);
  lib_record("lseek", answer.result, answer.error, 0, 0, call->site);
  if (answer.error) errno = answer.error;
  return (off_t)answer.result;
}

#define SEEK(name)                                                              \
  STEM_EXPORT off_t name(int fd, off_t at, int whence) {                        \
    struct lib_call call = lib_enter(name);                                     \
    LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, at), LIB_PIN32(call, 2, whence);   \
    off_t result = seek(&call, (struct seek){fd, at, whence});                  \
    lib_leave(name, 0);                                                         \
    return result;                                                              \
  }
SEEK(lseek)
SEEK(lseek64)

struct status {
  const char* path;
  int fd;
  bool follow;
};

static int64_t ask_status(void* context, void* bytes) {
  struct status* s = context;
  if (!s->path) return STEM_REAL(fstat)(s->fd, bytes);
  return s->follow ? STEM_REAL(stat)(s->path, bytes) : STEM_REAL(lstat)(s->path, bytes);
}

static int status(const struct lib_call* call, const char* what, struct status s, void* to) {
  struct stat answer;
  memset(&answer, 0, sizeof answer);
  int result = (int)lib_ask(call, what, &answer, sizeof answer, ask_status, &s);
  if (result == 0) lib_give(call, to, &answer, sizeof answer);
  return result;
}

#define STAT(name, type, how)                                                                     \
  STEM_EXPORT int name(const char* restrict path, struct type* restrict to) {                     \
    struct lib_call call = lib_enter(name);                                                       \
    LIB_PIN(call, 0, path), LIB_PIN(call, 1, to);                                                 \
    int result = status(&call, #name, (struct status){path, -1, how}, to);                        \
    lib_leave(name, 0);                                                                           \
    return result;                                                                                \
  }
STAT(stat, stat, true)
STAT(stat64, stat64, true)
STAT(lstat, stat, false)
STAT(lstat64, stat64, false)

#define FSTAT(name, type)                                                       \
  STEM_EXPORT int name(int fd, struct type* to) {                               \
    struct lib_call call = lib_enter(name);                                     \
    LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, to);                               \
    int result = status(&call, #name, (struct status){0, fd, true}, to);        \
    lib_leave(name, 0);                                                         \
    return result;                                                              \
  }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

struct accessed {
  const char* path;
  int mode;
};

static int64_t ask_access(void* context, void* bytes) {
  struct accessed* a = context;
  return STEM_REAL(access)(a->path, a->mode);
}

STEM_EXPORT int access(const char* path, int mode) {
  struct lib_call call = lib_enter(access);
  LIB_PIN(call, 0, path), LIB_PIN32(call, 1, mode);
  struct accessed a = {path, mode};
  int result = (int)lib_ask(&call, "access", 0, 0, ask_access, &a);
  lib_leave(access, 0);
  return result;
}

/* --- folders: a program gets its entries in memory of ours, in a replay as in the first run: the same address for the same entry. One stays
 * valid until the next of the same folder ------------------------------------------------------------------------------------------- */

#define FOLDERS 64
static struct {
  DIR* folder;
  struct dirent* entry;
} folders[FOLDERS];

static struct dirent* entry_of(DIR* folder) {
  static unsigned next;
  static struct stem_lock lock;
  stem_lock(&lock);
  unsigned i = 0;
  while (i < FOLDERS && folders[i].folder != folder) i++;
  if (i == FOLDERS) i = next++ % FOLDERS;
  folders[i].folder = folder;
  if (!folders[i].entry) folders[i].entry = stem_pages(sizeof(struct dirent));
  stem_unlock(&lock);
  return folders[i].entry;
}

static struct dirent* entry(const struct lib_call* call, DIR* folder) {
  struct dirent* e = STEM_REAL(readdir)(folder);
  if (!lib_live()) return e;
  struct lib_answer answer = {e != 0, 0, e ? e->d_reclen : 0, e};
  lib_fed("readdir", call->site, &answer);
  lib_record("readdir", answer.result, answer.error, answer.bytes, answer.size, call->site);
  if (!answer.result) return 0;
  e = entry_of(folder);
  lib_give(call, e, answer.bytes, answer.size < sizeof *e ? answer.size : sizeof *e);
  return e;
}

/* One that was there and is not any more: its entries are fed back, any other folder stands in for it. */
STEM_EXPORT DIR* opendir(const char* path) {
  struct lib_call call = lib_enter(opendir);
  LIB_PIN(call, 0, path);
  DIR* folder = STEM_REAL(opendir)(path);
  if (lib_live()) {
    struct lib_answer answer = {folder != 0, folder ? 0 : errno, 0, 0};
    if (lib_fed("opendir", call.site, &answer)) {
      if (answer.result && !folder) folder = STEM_REAL(opendir)("/");
      if (!answer.result && folder) closedir(folder), folder = 0;
    }
    lib_record("opendir", answer.result, answer.error, 0, 0, call.site);
    if (!folder) errno = answer.error;
  }
  lib_leave(opendir, 0);
  return folder;
}

STEM_EXPORT struct dirent* readdir(DIR* folder) {
  struct lib_call call = lib_enter(readdir);
  LIB_PIN(call, 0, folder);
  struct dirent* e = entry(&call, folder);
  lib_leave(readdir, 0);
  return e;
}

STEM_EXPORT struct dirent64* readdir64(DIR* folder) {
  struct lib_call call = lib_enter(readdir64);
  LIB_PIN(call, 0, folder);
  struct dirent* e = entry(&call, folder);
  lib_leave(readdir64, 0);
  return (struct dirent64*)e;
}
