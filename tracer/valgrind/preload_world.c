/* Loaded into the program: the answers of the outside world, and the processes it starts. */
#include "tracer/valgrind/preload.h"

/* --- answers of the outside world: recorded, and fed back on replay (tracer/binary/answers.c)
 * --------------------------------------- */

enum {
#define BIN_ANSWER(name, text) ANSWER_##name,
#include "tracer/binary/answers.def"
};
struct answer {
  long value;
  int error;
  unsigned kind;
};

/* The program's clocks are ahead of the real ones by what nobody had to wait for. */
static void advance(unsigned long ra, struct timespec* ts) {
  unsigned long all = (unsigned long)ts->tv_nsec + ASK(SKIPPED, 0, 0, 0) % 1000000000ul;
  ts->tv_sec += (time_t)(ASK(SKIPPED, 0, 0, 0) / 1000000000ul + all / 1000000000ul);
  ts->tv_nsec = (long)(all % 1000000000ul);
}
static int is_clock(clockid_t clock) {
  return clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID && clock >= 0;
}

static int read_clock(OrigFn fn, unsigned long ra, clockid_t clock, struct timespec* out) {
  struct answer a = {0, 0, ANSWER_TIME};
  struct timespec ts = {0, 0};
  if (!ASK(FED, &ts, sizeof ts, &a)) {
    a.value = REAL2(fn, clock, &ts);
    a.error = a.value ? errno : 0;
    if (!a.value && is_clock(clock)) advance(ra, &ts);
  }
  ASK(TOLD, &ts, a.value ? 0 : sizeof ts, &a);
  if (a.value)
    errno = a.error;
  else
    move(ra, (char*)out, (const char*)&ts, sizeof ts);
  return (int)a.value;
}
WRAP(int, clock_gettime, clockZugettime, (clock, out), clockid_t clock, struct timespec* out) {
  if (!busy) return read_clock(fn, ra, clock, out);
  int r = REAL2(fn, clock, out);
  if (r == 0 && is_clock(clock)) advance(ra, out);
  return r;
}
WRAP(int, gettimeofday, gettimeofday, (out, zone), struct timeval* out, struct timezone* zone) {
  struct answer a = {0, 0, ANSWER_TIME};
  struct {
    struct timeval tv;
    struct timezone zone;
  } told = {{0, 0}, {0, 0}};
  if (busy) return REAL2(fn, out, zone);
  if (!ASK(FED, &told, sizeof told, &a)) {
    busy++;
    a.value = REAL2(fn, &told.tv, &told.zone);
    busy--;
    unsigned long all = (unsigned long)told.tv.tv_usec + ASK(SKIPPED, 0, 0, 0) / 1000;
    told.tv.tv_sec += (time_t)(all / 1000000);
    told.tv.tv_usec = (long)(all % 1000000);
  }
  ASK(TOLD, &told, sizeof told, &a);
  if (out) move(ra, (char*)out, (const char*)&told.tv, sizeof told.tv);
  if (zone) move(ra, (char*)zone, (const char*)&told.zone, sizeof told.zone);
  return (int)a.value;
}
WRAP(time_t, time, time, (out), time_t* out) {
  struct answer a = {0, 0, ANSWER_TIME};
  if (busy || !ASK(FED, &a, 0, &a)) {
    busy++;
    CALL_FN_W_W(a.value, fn, 0);
    busy--;
    a.value += (long)(ASK(SKIPPED, 0, 0, 0) / 1000000000ul);
  }
  if (!busy) ASK(TOLD, &a, 0, &a);
  if (out) move(ra, (char*)out, (const char*)&a.value, sizeof *out);
  return a.value;
}

static ssize_t receive(OrigFn fn, unsigned long ra, unsigned kind, void* buffer, size_t n, unsigned long a0,
                       unsigned long a1, unsigned long a2) {
  struct answer a = {0, 0, kind};
  if (!ASK(FED, buffer, n, &a)) {
    CALL_FN_W_WWW(a.value, fn, a0, a1, a2);
    a.error = a.value < 0 ? errno : 0;
  }
  ASK(TOLD, buffer, a.value > 0 ? a.value : 0, &a);
  if (a.value > 0) ASK(WRITTEN, buffer, a.value, 0);
  if (a.value < 0) errno = a.error;
  return a.value;
}
WRAP(ssize_t, read, read, (fd, buffer, n), int fd, void* buffer, size_t n) {
  if (!busy && ASK(KEPT, fd, 0, 0))
    return receive(fn, ra, ANSWER_READ, buffer, n, (unsigned long)fd, (unsigned long)buffer, n);
  ssize_t r;
  CALL_FN_W_WWW(r, fn, fd, buffer, n);
  if (r > 0 && !busy) ASK(WRITTEN, buffer, r, 0);
  return r;
}
WRAP(ssize_t, getrandom, getrandom, (buffer, n, flags), void* buffer, size_t n, unsigned flags) {
  if (!busy) return receive(fn, ra, ANSWER_RANDOM, buffer, n, (unsigned long)buffer, n, flags);
  ssize_t r;
  CALL_FN_W_WWW(r, fn, buffer, n, flags);
  return r;
}

/* --- processes: children really run, also on replay, where the program knows them by their recorded numbers
 * ------------------------- */

/* What a replay tells the program, and what it really is: no signal may go to a stranger who has that number now. */
static struct {
  int real, told;
} known[1024];
static unsigned known_count;

static void remember(int real, int told) {
  if (real == told) return;
  unsigned i = __atomic_fetch_add(&known_count, 1, __ATOMIC_RELAXED) % 1024;
  known[i].real = real;
  known[i].told = told;
}

int stem_real_process(int told) {
  for (unsigned i = known_count < 1024 ? known_count : 1024; i-- > 0;)
    if (known[i].told == told) return known[i].real;
  return told;
}

#define IDENTITY(name)                                                                    \
  int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, name)(void);                                    \
  int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, name)(void) {                                   \
    OrigFn fn;                                                                            \
    HERE;                                                                                 \
    struct answer a = {0, 0, ANSWER_IDENTITY};                                            \
    VALGRIND_GET_ORIG_FN(fn);                                                             \
    long real;                                                                            \
    CALL_FN_W_v(real, fn);                                                                \
    if (busy || !ASK(CALLED, 0, 0, 0)) return (int)real; /* raise() asks, and means it */ \
    if (ASK(FED, &a, 0, &a))                                                              \
      remember((int)real, (int)a.value);                                                  \
    else                                                                                  \
      a.value = (int)real;                                                                \
    ASK(TOLD, &a, 0, &a);                                                                 \
    return (int)a.value;                                                                  \
  }
IDENTITY(getpid)
IDENTITY(getppid)
IDENTITY(gettid)

static pid_t tell_child(unsigned long ra, pid_t real) {
  struct answer a = {real, 0, ANSWER_CHILD};
  if (ASK(FED, &a, 0, &a)) remember(real, (pid_t)a.value);
  ASK(TOLD, &a, 0, &a);
  return (pid_t)a.value;
}

int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, fork)(void);
int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, fork)(void) {
  OrigFn fn;
  HERE;
  long r;
  VALGRIND_GET_ORIG_FN(fn);
  CALL_FN_W_v(r, fn);
  return (int)r > 0 && !busy ? tell_child(ra, (pid_t)r) : (int)r;
}

#define SPAWN(name, encoded)                                                                           \
  WRAP(int, name, encoded, (pid, path, actions, attributes, argv, envp), pid_t* pid, const char* path, \
       const void* actions, const void* attributes, char* const* argv, char* const* envp) {            \
    unsigned long r;                                                                                   \
    pid_t child = 0;                                                                                   \
    busy++;                                                                                            \
    CALL_FN_W_6W(r, fn, &child, path, actions, attributes, argv, envp);                                \
    busy--;                                                                                            \
    if ((int)r) return (int)r;                                                                         \
    if (!busy) child = tell_child(ra, child);                                                          \
    if (pid) move(ra, (char*)pid, (const char*)&child, sizeof child);                                  \
    return 0;                                                                                          \
  }
SPAWN(posix_spawn, posixZuspawn)
SPAWN(posix_spawnp, posixZuspawnp)

/* A replay waits for the child that was waited for, and has its recorded end. */
static pid_t wait_for(OrigFn fn, unsigned long ra, int arguments, pid_t pid, int* status, int options, void* usage) {
  struct answer a = {0, 0, ANSWER_WAITED};
  int ended = 0;
  int fed = (int)ASK(FED, &ended, sizeof ended, &a);
  busy++;
  if (!fed) {
    a.value = arguments == 1   ? REAL1(fn, &ended)
              : arguments == 3 ? REAL3(fn, pid, &ended, options)
                               : REAL4(fn, pid, &ended, options, usage);
    a.error = a.value < 0 ? errno : 0;
  } else if (a.value > 0) {
    int real = 0;
    pid_t child = stem_real_process((pid_t)a.value);
    ASK(ALONE, 0, 1, 0);
    if (arguments == 1)
      waitpid(child, &real, 0);
    else if (arguments == 3)
      REAL3(fn, child, &real, options & ~WNOHANG);
    else
      REAL4(fn, child, &real, options & ~WNOHANG, usage);
    ASK(ALONE, 0, 0, 0);
  }
  busy--;
  ASK(TOLD, &ended, a.value > 0 ? sizeof ended : 0, &a);
  if (a.value > 0 && status) move(ra, (char*)status, (const char*)&ended, sizeof ended);
  if (a.value < 0) errno = a.error;
  return (pid_t)a.value;
}
WRAP(pid_t, wait_child, wait, (status), int* status) {
  return busy ? REAL1(fn, status) : wait_for(fn, ra, 1, -1, status, 0, 0);
}
WRAP(pid_t, waitpid, waitpid, (pid, status, options), pid_t pid, int* status, int options) {
  return busy ? REAL3(fn, pid, status, options) : wait_for(fn, ra, 3, pid, status, options, 0);
}
WRAP(pid_t, wait4, wait4, (pid, status, options, usage), pid_t pid, int* status, int options, void* usage) {
  return busy ? REAL4(fn, pid, status, options, usage) : wait_for(fn, ra, 4, pid, status, options, usage);
}
static int real_target(int pid) { return pid < -1 ? -stem_real_process(-pid) : pid > 0 ? stem_real_process(pid) : pid; }
WRAP(int, kill, kill, (pid, number), pid_t pid, int number) { return REAL2(fn, real_target(pid), number); }
WRAP(int, killpg, killpg, (group, number), pid_t group, int number) { return REAL2(fn, real_target(group), number); }
WRAP(int, tgkill, tgkill, (pid, thread, number), pid_t pid, pid_t thread, int number) {
  return REAL3(fn, real_target(pid), real_target(thread), number);
}
WRAP(int, sigqueue, sigqueue, (pid, number, value), pid_t pid, int number, unsigned long value) {
  return REAL3(fn, real_target(pid), number, value);
}
