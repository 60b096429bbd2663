/* Who and where we are: process ids, environment, host, folder, processors. Recorded and fed back. */
#include "tracer/runtime/lib.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define IDENTITY(name, type)                                                                      \
  static int64_t ask_##name(void* context, void* bytes) { return (int64_t)STEM_REAL(name)(); }    \
  STEM_EXPORT type name(void) {                                                                   \
    struct lib_call call = lib_enter(name);                                                       \
    type result = (type)lib_ask(&call, #name, 0, 0, ask_##name, 0);                               \
    lib_leave(name, 0);                                                                           \
    return result;                                                                                \
  }
IDENTITY(getppid, pid_t)
IDENTITY(gettid, pid_t)
IDENTITY(sched_getcpu, int)
IDENTITY(get_nprocs, int)

static pid_t recorded_pid = -1;

pid_t lib_recorded_pid(void) { return recorded_pid; }

static int64_t ask_getpid(void* context, void* bytes) { return STEM_REAL(getpid)(); }

STEM_EXPORT pid_t getpid(void) {
  struct lib_call call = lib_enter(getpid);
  pid_t result = (pid_t)lib_ask(&call, "getpid", 0, 0, ask_getpid, 0);
  if (lib_live() && lib_feeding()) recorded_pid = result;
  lib_leave(getpid, 0);
  return result;
}

/* --- children: they really run, also on replay, where the program knows them by their recorded numbers -------------------------- */

#define CHILDREN 1024
static struct { pid_t real, told; } children[CHILDREN];
static unsigned child_count;

pid_t lib_real_child(pid_t told) {
  for (unsigned i = child_count < CHILDREN ? child_count : CHILDREN; i-- > 0;)
    if (children[i].told == told) return children[i].real;
  return told;
}

pid_t lib_told_child(pid_t real) {
  for (unsigned i = child_count < CHILDREN ? child_count : CHILDREN; i-- > 0;)
    if (children[i].real == real) return children[i].told;
  return real;
}

pid_t stem_library_child(pid_t real, const void* site) {
  struct lib_answer answer = {real, 0, 0, 0};
  if (!lib_live()) return real;
  if (lib_fed("child", site, &answer)) {
    unsigned i = child_count++ % CHILDREN;
    children[i].real = real;
    children[i].told = (pid_t)answer.result;
  }
  lib_record("child", answer.result, 0, 0, 0, site);
  return (pid_t)answer.result;
}

/* --- the environment: what a variable said then, even if it says something else now ------------------------------------------- */

/* Fed-back values stay: a program may keep the pointer. */
static char* keep(const char* bytes, size_t n) {
  static char* pool;
  static size_t left;
  static int lock;
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
  if (n + 1 > left) {
    left = n + 1 > 65536 ? n + 1 : 65536;
    pool = stem_pages(left);
  }
  char* copy = pool;
  pool += n + 1;
  left -= n + 1;
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  memcpy(copy, bytes, n);
  return copy;
}

/* result: length, or -1 for a variable that is not there. */
static char* environment(const struct lib_call* call, const char* what, char* present) {
  if (!lib_live()) return present;
  struct lib_answer answer = {present ? (int64_t)strlen(present) : -1, 0, present ? (uint32_t)strlen(present) : 0, present};
  if (lib_fed(what, call->site, &answer)) {
    if (answer.result < 0)
      present = 0;
    else if (!present || strlen(present) != answer.size || memcmp(present, answer.bytes, answer.size) != 0)
      present = keep(answer.bytes, answer.size);
  }
  lib_record(what, answer.result, 0, answer.bytes, answer.size, call->site);
  return present;
}

STEM_EXPORT char* getenv(const char* name) {
  struct lib_call call = lib_enter(getenv);
  LIB_PIN(call, 0, name);
  char* value = environment(&call, "getenv", STEM_REAL(getenv)(name));
  lib_leave(getenv, 0);
  return value;
}

STEM_EXPORT char* secure_getenv(const char* name) {
  struct lib_call call = lib_enter(secure_getenv);
  LIB_PIN(call, 0, name);
  char* value = environment(&call, "secure_getenv", STEM_REAL(secure_getenv)(name));
  lib_leave(secure_getenv, 0);
  return value;
}

/* --- host and folder ------------------------------------------------------------------------------------------------------------- */

static int64_t ask_hostname(void* context, void* bytes) { return STEM_REAL(gethostname)(bytes, *(size_t*)context); }

STEM_EXPORT int gethostname(char* to, size_t n) {
  struct lib_call call = lib_enter(gethostname);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n);
  char name[256] = {0};
  size_t room = n < sizeof name ? n : sizeof name;
  int result = (int)lib_ask(&call, "gethostname", name, room, ask_hostname, &room);
  if (result == 0) lib_give(&call, to, name, strnlen(name, room - 1) + 1);
  lib_leave(gethostname, 0);
  return result;
}

static int64_t ask_uname(void* context, void* bytes) { return STEM_REAL(uname)(bytes); }

STEM_EXPORT int uname(struct utsname* to) {
  struct lib_call call = lib_enter(uname);
  LIB_PIN(call, 0, to);
  struct utsname answer;
  memset(&answer, 0, sizeof answer);
  int result = (int)lib_ask(&call, "uname", &answer, sizeof answer, ask_uname, 0);
  if (result == 0) lib_give(&call, to, &answer, sizeof answer);
  lib_leave(uname, 0);
  return result;
}

static int64_t ask_cwd(void* context, void* bytes) {
  char* path = STEM_REAL(getcwd)(bytes, 4096);
  return path ? (int64_t)strlen(path) : -1;
}

STEM_EXPORT char* getcwd(char* to, size_t n) {
  struct lib_call call = lib_enter(getcwd);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n);
  if (!lib_live()) return STEM_REAL(getcwd)(to, n);
  char path[4096] = {0};
  int64_t length = lib_ask(&call, "getcwd", path, sizeof path, ask_cwd, 0);
  char* result = 0;
  if (length >= 0 && !to) {
    size_t room = n ? n : (size_t)length + 1;
    if (room > (size_t)length) to = malloc(room);
    if (to && call.site) lib_alloc(&call, to, room);
    n = room;
  }
  if (length >= 0 && to && n > (size_t)length) {
    lib_give(&call, to, path, (size_t)length + 1);
    result = to;
  } else if (length >= 0) {
    errno = ERANGE;
  }
  lib_leave(getcwd, 0);
  return result;
}

static int64_t ask_sysconf(void* context, void* bytes) { return STEM_REAL(sysconf)(*(int*)context); }

/* Only what differs between machines or moments is an answer of the outside. */
STEM_EXPORT long sysconf(int name) {
  struct lib_call call = lib_enter(sysconf);
  LIB_PIN32(call, 0, name);
  bool varies = name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN || name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES;
  long result = varies ? (long)lib_ask(&call, "sysconf", 0, 0, ask_sysconf, &name) : STEM_REAL(sysconf)(name);
  lib_leave(sysconf, 0);
  return result;
}
