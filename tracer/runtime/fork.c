/* fork, exec and what starts programs.
 *
 * A fork of a process with one thread: the child records for itself, with a stream, a collector and a trace of its own, in
 * default mode (the plan's schedule was the parent's). With several threads alive the child has lost all but one of them, and
 * so the state they held: it runs unrecorded until it calls exec, and that is said. Registered with pthread_atfork before anybody
 * else, so that the child leaves the parent's stream before any handler of the program runs in it.
 * exec: the descriptors close, which tells the collector; the new program, if STEM is in it, starts its own.
 * Programs started otherwise (posix_spawn, system, popen) get back the CPUs that we keep our own threads from. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

uint32_t stem_owner_pid;
int stem_is_forked;
static int had_threads;
static uint32_t forks;

static void before_fork(void) { had_threads = stem_live_count > 1; }

static void in_child(void) {
  if (!stem_on) return;
  struct stem_thread* self = stem_current;
  stem_on = 0;
  stem_recording_drop();
  stem_pin_forget();
  stem_end_forget();
  stem_owner_pid = (uint32_t)stem_getpid();
  if (!self || had_threads || stem_parallel) stem_threads_reset(self ? self : stem_thread_at(0));
}

/* After the program's own handlers, which run unrecorded. */
static void child_begins(void) {
  struct stem_thread* self = stem_current;
  if (!self || had_threads) return;
  stem_threads_reset(self);
  stem_is_forked = 1;
  if (stem_mode == STEM_MODE_GUIDED) stem_mode = STEM_MODE_DEFAULT;
  stem_begin(self);
  if (stem_library_forked) stem_library_forked();
}

static pid_t told(pid_t pid, const void* site) { return stem_library_child && stem_active() ? stem_library_child(pid, site) : pid; }

STEM_EXPORT pid_t fork(void) {
  if (!stem_on) return STEM_REAL(fork)();
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  if (stem_live_count > 1)
    stem_refuse("fork in a process that has threads: the child runs unrecorded until it calls exec", site);
  forks++;
  pid_t pid = STEM_REAL(fork)();
  if (pid == 0)
    child_begins();
  else if (pid > 0)
    stem_event(self, STEM_KIND_Fork, 0, 0, (uint64_t)(pid = told(pid, site)), 0, site);
  return pid;
}

/* --- exec: leave with a proper end if the file is there to be executed --------------------------------------------------------------- */

static int found_in(const char* folder, size_t length, const char* file) {
  char path[4200];
  if (length + __builtin_strlen(file) + 2 > sizeof path) return 0;
  __builtin_memcpy(path, folder, length);
  path[length] = '/';
  __builtin_strcpy(path + length + 1, file);
  return stem_sys(SYS_access, path, X_OK, 0) == 0;
}

static int can_execute(const char* file, int search) {
  int slash = 0;
  for (const char* s = file; *s; s++) slash |= *s == '/';
  if (slash || !search) return stem_sys(SYS_access, file, X_OK, 0) == 0;
  const char* path = 0;
  for (char** e = environ; e && *e; e++)
    if (__builtin_strncmp(*e, "PATH=", 5) == 0) path = *e + 5;
  if (!path) path = "/bin:/usr/bin";
  while (*path) {
    size_t n = 0;
    while (path[n] && path[n] != ':') n++;
    if (n ? found_in(path, n, file) : stem_sys(SYS_access, file, X_OK, 0) == 0) return 1;
    path += n + (path[n] == ':');
  }
  return 0;
}

static void before_exec(const char* file, int search) {
  stem_unpin_cpu();
  if (stem_on && (uint32_t)stem_getpid() == stem_owner_pid && can_execute(file, search)) {
    stem_note("the program became another one by exec");
    stem_finish(STEM_EXITED, 0);
  }
}

static int after_exec(int r) {
  stem_repin_cpu();
  return r;
}

STEM_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) {
  before_exec(path, 0);
  return after_exec(STEM_REAL(execve)(path, argv, envp));
}

STEM_EXPORT int execv(const char* path, char* const argv[]) {
  before_exec(path, 0);
  return after_exec(STEM_REAL(execv)(path, argv));
}

STEM_EXPORT int execvp(const char* file, char* const argv[]) {
  before_exec(file, 1);
  return after_exec(STEM_REAL(execvp)(file, argv));
}

STEM_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) {
  before_exec(file, 1);
  return after_exec(STEM_REAL(execvpe)(file, argv, envp));
}

STEM_EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) {
  stem_unpin_cpu();
  return after_exec(STEM_REAL(fexecve)(fd, argv, envp));
}

#define STEM_COLLECT_ARGUMENTS(first)                                                    \
  va_list list;                                                                          \
  size_t n = 1;                                                                          \
  va_start(list, first);                                                                 \
  while (va_arg(list, char*)) n++;                                                       \
  va_end(list);                                                                          \
  char* arguments[n + 1];                                                                \
  arguments[0] = (char*)first;                                                           \
  va_start(list, first);                                                                 \
  for (size_t i = 1; i <= n; i++) arguments[i] = va_arg(list, char*)

STEM_EXPORT int execl(const char* path, const char* first, ...) {
  STEM_COLLECT_ARGUMENTS(first);
  va_end(list);
  return execv(path, arguments);
}

STEM_EXPORT int execlp(const char* file, const char* first, ...) {
  STEM_COLLECT_ARGUMENTS(first);
  va_end(list);
  return execvp(file, arguments);
}

STEM_EXPORT int execle(const char* path, const char* first, ...) {
  STEM_COLLECT_ARGUMENTS(first);
  char** envp = va_arg(list, char**);
  va_end(list);
  return execve(path, arguments, envp);
}

/* --- other ways to start a program --------------------------------------------------------------------------------------------------------- */

static void give_pid(pid_t* to, pid_t pid, const void* site) {
  pid = told(pid, site);
  if (to && site && stem_active())
    stem_write(to, (uint32_t)pid, 0, sizeof *to, site);
  else if (to)
    *to = pid;
}

STEM_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attr,
                            char* const argv[], char* const envp[]) {
  const void* site = stem_take_site();
  pid_t child = 0;
  stem_unpin_cpu();
  int r = STEM_REAL(posix_spawn)(&child, path, actions, attr, argv, envp);
  stem_repin_cpu();
  if (r == 0) give_pid(pid, child, site);
  return r;
}

STEM_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attr,
                             char* const argv[], char* const envp[]) {
  const void* site = stem_take_site();
  pid_t child = 0;
  stem_unpin_cpu();
  int r = STEM_REAL(posix_spawnp)(&child, file, actions, attr, argv, envp);
  stem_repin_cpu();
  if (r == 0) give_pid(pid, child, site);
  return r;
}

STEM_EXPORT int system(const char* command) {
  if (!stem_on) return STEM_REAL(system)(command);
  struct stem_thread* self = stem_self();
  stem_outside_begin(self); /* it waits for the command */
  stem_unpin_cpu();
  int r = STEM_REAL(system)(command);
  stem_repin_cpu();
  stem_outside_end(self);
  return r;
}

STEM_EXPORT FILE* popen(const char* command, const char* mode) {
  stem_unpin_cpu();
  FILE* f = STEM_REAL(popen)(command, mode);
  stem_repin_cpu();
  return f;
}

STEM_EXPORT int pclose(FILE* f) {
  if (!stem_on) return STEM_REAL(pclose)(f);
  struct stem_thread* self = stem_self();
  stem_outside_begin(self);
  int r = STEM_REAL(pclose)(f);
  stem_outside_end(self);
  return r;
}

void stem_fork_init(void) {
  stem_owner_pid = (uint32_t)stem_getpid();
  pthread_atfork(before_fork, 0, in_child);
}
