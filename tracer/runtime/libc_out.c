/* Functions of the C library that leave an answer behind a pointer, and are nothing else to us: the answer goes into memory of
 * ours first and then, as Write events, into the program's. What they read is read as the program's memory, pinned.
 * What is not here is still noticed: tracer/runtime/expose.c. */
#include "tracer/runtime/nondet_io.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static void take(const struct lib_call* call, void* own, const void* from, size_t n) {
  if (call->site && lib_live())
    lib_read(own, from, n, call->site);
  else
    memcpy(own, from, n);
}

/* --- keys of thread-specific data ------------------------------------------------------------------------------------------------- */

STEM_EXPORT int __stem_wrap_pthread_key_create(pthread_key_t* to, void (*destroy)(void*)) {
  struct lib_call call = lib_enter(__stem_wrap_pthread_key_create);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, destroy);
  pthread_key_t own;
  int result = pthread_key_create(&own, destroy);
  if (result == 0) lib_give(&call, to, &own, sizeof own);
  lib_leave(__stem_wrap_pthread_key_create, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_tss_create(tss_t* to, tss_dtor_t destroy) {
  struct lib_call call = lib_enter(__stem_wrap_tss_create);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, destroy);
  tss_t own;
  int result = tss_create(&own, destroy);
  if (result == thrd_success) lib_give(&call, to, &own, sizeof own);
  lib_leave(__stem_wrap_tss_create, 0);
  return result;
}

/* --- descriptors ------------------------------------------------------------------------------------------------------------------ */

STEM_EXPORT int __stem_wrap_pipe(int to[2]) {
  struct lib_call call = lib_enter(__stem_wrap_pipe);
  LIB_PIN(call, 0, to);
  int own[2], result = pipe(own);
  if (result == 0) lib_give(&call, to, own, sizeof own);
  lib_leave(__stem_wrap_pipe, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_pipe2(int to[2], int flags) {
  struct lib_call call = lib_enter(__stem_wrap_pipe2);
  LIB_PIN(call, 0, to), LIB_PIN32(call, 1, flags);
  int own[2], result = pipe2(own, flags);
  if (result == 0) lib_give(&call, to, own, sizeof own);
  lib_leave(__stem_wrap_pipe2, 0);
  return result;
}

STEM_EXPORT int __stem_wrap_socketpair(int domain, int type, int protocol, int to[2]) {
  struct lib_call call = lib_enter(__stem_wrap_socketpair);
  LIB_PIN32(call, 0, domain), LIB_PIN32(call, 1, type), LIB_PIN32(call, 2, protocol), LIB_PIN(call, 3, to);
  int own[2], result = socketpair(domain, type, protocol, own);
  if (result == 0) lib_give(&call, to, own, sizeof own);
  lib_leave(__stem_wrap_socketpair, 0);
  return result;
}

/* The result is the address's length: ports are given out as they come. */
#define ADDRESS(name)                                                                          \
  static int64_t ask_##name(void* fd, void* bytes) {                                           \
    socklen_t length = sizeof(struct sockaddr_storage);                                        \
    return name(*(int*)fd, bytes, &length) < 0 ? -1 : (int64_t)length;                         \
  }                                                                                            \
  STEM_EXPORT int __stem_wrap_##name(int fd, struct sockaddr* to, socklen_t* size) {           \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                      \
    LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, to), LIB_PIN(call, 2, size);                      \
    struct sockaddr_storage own;                                                               \
    memset(&own, 0, sizeof own);                                                               \
    socklen_t room = 0;                                                                        \
    take(&call, &room, size, sizeof room);                                                     \
    int result = (int)lib_ask(&call, #name, &own, sizeof own, ask_##name, &fd);                \
    if (result >= 0) lib_give(&call, to, &own, room < (socklen_t)result ? room : (socklen_t)result); \
    if (result >= 0) lib_give(&call, size, &result, sizeof *size);                             \
    result = result < 0 ? result : 0;                                                          \
    lib_leave(__stem_wrap_##name, 0);                                                          \
    return result;                                                                             \
  }
ADDRESS(getsockname)
ADDRESS(getpeername)

STEM_EXPORT int __stem_wrap_getsockopt(int fd, int level, int option, void* to, socklen_t* size) {
  struct lib_call call = lib_enter(__stem_wrap_getsockopt);
  LIB_PIN32(call, 0, fd), LIB_PIN32(call, 1, level), LIB_PIN32(call, 2, option), LIB_PIN(call, 3, to), LIB_PIN(call, 4, size);
  char own[256];
  socklen_t length = 0;
  take(&call, &length, size, sizeof length);
  if (length > sizeof own) length = sizeof own;
  int result = getsockopt(fd, level, option, own, &length);
  if (result == 0) lib_give(&call, to, own, length);
  if (result == 0) lib_give(&call, size, &length, sizeof length);
  lib_leave(__stem_wrap_getsockopt, 0);
  return result;
}

/* --- names ---------------------------------------------------------------------------------------------------------------------------- */

STEM_EXPORT ssize_t __stem_wrap_readlink(const char* path, char* to, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_readlink);
  LIB_PIN(call, 0, path), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n);
  char own[4096];
  ssize_t length = readlink(path, own, n < sizeof own ? n : sizeof own);
  if (length > 0) lib_give(&call, to, own, (size_t)length);
  lib_leave(__stem_wrap_readlink, 0);
  return length;
}

STEM_EXPORT char* __stem_wrap_realpath(const char* path, char* to) {
  struct lib_call call = lib_enter(__stem_wrap_realpath);
  LIB_PIN(call, 0, path), LIB_PIN(call, 1, to);
  char own[4096], *result = realpath(path, own);
  if (result) {
    if (!to && (to = malloc(strlen(own) + 1)) && call.site) lib_alloc(&call, to, strlen(own) + 1);
    if (to) lib_give(&call, to, own, strlen(own) + 1);
    result = to;
  }
  lib_leave(__stem_wrap_realpath, 0);
  return result;
}

/* The template's last six characters are what it changes; on replay the file has the recorded name. */
static int64_t ask_mkstemp(void* context, void* bytes) {
  struct lib_copy* name = context;
  int fd = mkstemp(name->text);
  if (fd >= 0) memcpy(bytes, name->text + name->length - 6, 6);
  return fd;
}

STEM_EXPORT int __stem_wrap_mkstemp(char* name) {
  struct lib_call call = lib_enter(__stem_wrap_mkstemp);
  LIB_PIN(call, 0, name);
  struct lib_copy own;
  lib_copy_string(&own, name, SIZE_MAX, call.site);
  struct lib_answer answer;
  char suffix[6] = {0};
  if (lib_live() && lib_fed("mkstemp", call.site, &answer)) {
    memcpy(suffix, answer.bytes, answer.size < 6 ? answer.size : 6);
    if (own.length >= 6) memcpy(own.text + own.length - 6, suffix, 6);
    answer.result = lib_descriptor(answer.result < 0 ? -1 : STEM_REAL(open)(own.text, O_RDWR | O_CREAT, 0600), answer.result, call.site);
  } else {
    errno = 0;
    answer.result = ask_mkstemp(&own, suffix);
    answer.error = answer.result < 0 ? errno : 0;
  }
  lib_record("mkstemp", answer.result, answer.error, suffix, 6, call.site);
  int fd = (int)answer.result;
  if (fd >= 0) lib_give(&call, name + own.length - 6, suffix, 6);
  if (answer.error) errno = answer.error;
  lib_copy_free(&own);
  lib_leave(__stem_wrap_mkstemp, 0);
  return fd;
}

STEM_EXPORT const char* __stem_wrap_inet_ntop(int family, const void* from, char* to, socklen_t n) {
  struct lib_call call = lib_enter(__stem_wrap_inet_ntop);
  LIB_PIN32(call, 0, family), LIB_PIN(call, 1, from), LIB_PIN(call, 2, to), LIB_PIN32(call, 3, n);
  char address[16] = {0}, own[INET6_ADDRSTRLEN];
  if (family == AF_INET || family == AF_INET6) take(&call, address, from, family == AF_INET ? 4 : 16);
  const char* result = inet_ntop(family, address, own, n < sizeof own ? n : sizeof own);
  if (result) lib_give(&call, to, own, strlen(own) + 1);
  lib_leave(__stem_wrap_inet_ntop, 0);
  return result ? to : 0;
}

STEM_EXPORT int __stem_wrap_inet_pton(int family, const char* from, void* to) {
  struct lib_call call = lib_enter(__stem_wrap_inet_pton);
  LIB_PIN32(call, 0, family), LIB_PIN(call, 1, from), LIB_PIN(call, 2, to);
  char own[16];
  struct lib_copy text;
  lib_copy_string(&text, from, SIZE_MAX, call.site);
  int result = inet_pton(family, text.text, own);
  if (result == 1) lib_give(&call, to, own, family == AF_INET ? 4 : 16);
  lib_copy_free(&text);
  lib_leave(__stem_wrap_inet_pton, 0);
  return result;
}

/* --- dates ---------------------------------------------------------------------------------------------------------------------------- */

#define BROKEN_DOWN(name)                                                                      \
  STEM_EXPORT struct tm* __stem_wrap_##name(const time_t* from, struct tm* to) {               \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                      \
    LIB_PIN(call, 0, from), LIB_PIN(call, 1, to);                                              \
    time_t when;                                                                               \
    struct tm own;                                                                             \
    memset(&own, 0, sizeof own);                                                               \
    take(&call, &when, from, sizeof when);                                                     \
    struct tm* result = name(&when, &own);                                                     \
    if (result) lib_give(&call, to, &own, sizeof own);                                         \
    lib_leave(__stem_wrap_##name, 0);                                                          \
    return result ? to : 0;                                                                    \
  }
BROKEN_DOWN(localtime_r)
BROKEN_DOWN(gmtime_r)

#define MAKE(name)                                                                             \
  STEM_EXPORT time_t __stem_wrap_##name(struct tm* t) {                                        \
    struct lib_call call = lib_enter(__stem_wrap_##name);                                      \
    LIB_PIN(call, 0, t);                                                                       \
    struct tm own;                                                                             \
    take(&call, &own, t, sizeof own);                                                          \
    time_t result = name(&own);                                                                \
    lib_give(&call, t, &own, sizeof own);                                                      \
    lib_leave(__stem_wrap_##name, 0);                                                          \
    return result;                                                                             \
  }
MAKE(mktime)
MAKE(timegm)

STEM_EXPORT size_t __stem_wrap_strftime(char* to, size_t n, const char* format, const struct tm* t) {
  struct lib_call call = lib_enter(__stem_wrap_strftime);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n), LIB_PIN(call, 2, format), LIB_PIN(call, 3, t);
  char small[512], *own = n <= sizeof small ? small : stem_pages(n);
  struct tm when;
  take(&call, &when, t, sizeof when);
  size_t length = strftime(own, n, format, &when);
  if (length) lib_give(&call, to, own, length + 1);
  if (own != small) stem_pages_free(own, n);
  lib_leave(__stem_wrap_strftime, 0);
  return length;
}

/* --- the rest --------------------------------------------------------------------------------------------------------------------------- */

/* GNU's answers with a string that may be its own, POSIX's puts it there. */
STEM_EXPORT char* __stem_wrap_strerror_r(int error, char* to, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap_strerror_r);
  LIB_PIN32(call, 0, error), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n);
  char own[256];
  size_t room = n < sizeof own ? n : sizeof own;
  char* result = strerror_r(error, own, room);
  if (result == own) lib_give(&call, to, own, room ? strnlen(own, room - 1) + 1 : 0);
  lib_leave(__stem_wrap_strerror_r, 0);
  return result == own ? to : result;
}

extern int __xpg_strerror_r(int, char*, size_t);
STEM_EXPORT int __stem_wrap___xpg_strerror_r(int error, char* to, size_t n) {
  struct lib_call call = lib_enter(__stem_wrap___xpg_strerror_r);
  LIB_PIN32(call, 0, error), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n);
  char own[256];
  size_t room = n < sizeof own ? n : sizeof own;
  int result = __xpg_strerror_r(error, own, room);
  if (room) lib_give(&call, to, own, strnlen(own, room - 1) + 1);
  lib_leave(__stem_wrap___xpg_strerror_r, 0);
  return result;
}
