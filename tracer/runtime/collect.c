/* Starts the collector: a memfd that both map, and a process of its own that nobody in the program can wait for.
 *
 * The collector is a grandchild: the program's wait() never sees it, and it outlives whatever happens to the program. It
 * inherits the memfd as descriptor 3 and the read end of a pipe as 4, which tells it when the program is gone; everything
 * else is closed, so that it holds nobody's pipe open. About 2 ms, once a process. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

__attribute__((aligned(4096), section(".data.stem_hot"), visibility("default"))) union {
  struct stem_hot hot;
  char page[STEM_PAGE];
} stem_hot_page __asm__("__stem_hot") = {.page = {0}};

/* The folder of stem-collect, baked in by stem-cc with -Wl,--defsym or a generated object; weak: it may be missing. */
extern const char stem_libdir[] __attribute__((weak, visibility("default")));

uint32_t stem_producer_pid;
static void* mapping;
static int life_fd = -1;

static const char* library_folder(void) {
  const char* folder = stem_option("libdir");
  if (!folder) folder = stem_environment("STEM_LIBDIR");
  if (!folder && stem_libdir) folder = stem_libdir;
  return folder;
}

/* In the grandchild; never returns. Only system calls: the program may have had threads. */
static void become_collector(const char* path, int memfd, int life) {
  char* environment[1024];
  int n = 0;
  for (char** e = stem_envp; e && *e && n < 1020; e++)
    if (__builtin_strncmp(*e, "LD_PRELOAD=", 11) != 0) environment[n++] = *e;
  environment[n++] = (char*)STEM_RAW_ENV "=3";
  environment[n++] = (char*)STEM_RAW_LIFE_ENV "=4";
  environment[n] = 0;
  int high_memfd = (int)stem_sys(SYS_fcntl, memfd, F_DUPFD, 10), high_life = (int)stem_sys(SYS_fcntl, life, F_DUPFD, 10);
  stem_sys(SYS_dup2, high_memfd, 3, 0);
  stem_sys(SYS_dup2, high_life, 4, 0);
  stem_sys(SYS_close_range, 5, ~0u, 0);
  int null = (int)stem_sys(SYS_open, "/dev/null", O_RDWR, 0);
  if (null >= 0) {
    stem_sys(SYS_dup2, null, 0, 0);
    stem_sys(SYS_dup2, null, 1, 0);
  }
  uint64_t none = 0;
  stem_sys4(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
  char* arguments[] = {(char*)path, 0};
  stem_sys(SYS_execve, path, arguments, environment);
  stem_sys(SYS_exit_group, 127, 0, 0);
}

static int start_collector(int memfd, int life) {
  char path[4200];
  struct stem_text text = {path, path + sizeof path};
  const char* folder = library_folder();
  if (!folder) {
    stem_die("cannot tell where stem-collect is: set STEM_LIBDIR to STEM's lib/stem folder");
  }
  stem_text_add(&text, folder);
  stem_text_add(&text, "/stem-collect");
  if (stem_sys(SYS_access, path, X_OK, 0) < 0) return -1;
  pid_t middle = _Fork();
  if (middle < 0) return -1;
  if (middle == 0) {
    pid_t collector = _Fork();
    if (collector == 0) become_collector(path, memfd, life);
    stem_sys(SYS_exit_group, collector < 0, 0, 0);
  }
  int status = 0;
  while (stem_sys4(SYS_wait4, middle, &status, 0, 0) == -4 /* EINTR */) {
  }
  return status == 0 ? 0 : -1;
}

/* Until the trace file is there: from then on nothing that happens to us can lose it. */
static int await_collector(int life) {
  for (int i = 0; i < 3000; i++) {
    if (__atomic_load_n(&stem_control->collector_pid, __ATOMIC_ACQUIRE)) return 0;
    if (__atomic_load_n(&stem_control->failed, __ATOMIC_ACQUIRE)) return -1;
    /* Nobody reads the pipe any more: the collector could not start, and said why on standard error. */
    struct { int fd; short events, revents; } p = {life, 4 /* POLLOUT */, 0};
    if (stem_sys(SYS_poll, &p, 1, 0) == 1 && (p.revents & 8 /* POLLERR */)) return -1;
    struct timespec ts = {0, i < 100 ? 200000 : 5000000};
    stem_sys(SYS_nanosleep, &ts, 0, 0);
  }
  return -1;
}

static void open_mapping(int memfd) {
  mapping = stem_map(STEM_RAW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd);
  if (!mapping) stem_die("no memory left for recording");
  long p = stem_sys6(SYS_mmap, (long)&stem_hot_page, STEM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd, 0);
  if (p < 0 && p > -4096) stem_die("cannot map the page that instrumented code appends by");
  stem_control = (struct stem_control*)((char*)mapping + STEM_PAGE);
  stem_control->version = STEM_RAW_VERSION;
  stem_control->parallel = (uint32_t)stem_parallel;
  stem_control->base = (uint64_t)(uintptr_t)mapping;
  stem_control->producer_pid = stem_producer_pid;
  __atomic_store_n(&stem_control->magic, STEM_RAW_MAGIC, __ATOMIC_RELEASE);
}

/* Descriptors of ours stay out of the range that programs expect theirs in. */
static int high_fd(int fd) {
  int high = (int)stem_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 900);
  if (high < 0) return fd;
  stem_sys(SYS_close, fd, 0, 0);
  return high;
}

/* A limit on file sizes (ulimit -f) counts for the memfd too, and going over it kills: lifted for this call as far as allowed. */
static int make_room(int memfd) {
  struct rlimit limit = {0, 0}, all;
  stem_sys(SYS_getrlimit, RLIMIT_FSIZE, &limit, 0);
  all.rlim_cur = all.rlim_max = limit.rlim_max;
  if (limit.rlim_max < STEM_RAW_SIZE) stem_die("the limit on file sizes (ulimit -f) leaves no room for recording: raise it");
  if (limit.rlim_cur < STEM_RAW_SIZE) stem_sys(SYS_setrlimit, RLIMIT_FSIZE, &all, 0);
  long r = stem_sys(SYS_ftruncate, memfd, STEM_RAW_SIZE, 0);
  if (limit.rlim_cur < STEM_RAW_SIZE) stem_sys(SYS_setrlimit, RLIMIT_FSIZE, &limit, 0);
  return r < 0 ? -1 : 0;
}

void stem_recording_open(void) {
  stem_producer_pid = (uint32_t)stem_getpid();
  int memfd = (int)stem_sys(SYS_memfd_create, "stem", 1 /* MFD_CLOEXEC */, 0);
  int ends[2];
  if (memfd < 0 || make_room(memfd) < 0 || stem_sys(SYS_pipe2, ends, O_CLOEXEC, 0) < 0)
    stem_die("cannot make the memory that is shared with the collector");
  life_fd = high_fd(ends[1]);
  open_mapping(memfd);
  int started = start_collector(memfd, ends[0]);
  stem_sys(SYS_close, ends[0], 0, 0);
  stem_sys(SYS_close, memfd, 0, 0);
  if (started < 0 || await_collector(life_fd) < 0) {
    stem_control->failed = 1;
    stem_die("stem-collect did not start: nothing would be recorded");
  }
}

void stem_recording_drop(void) {
  if (mapping) {
    stem_sys6(SYS_mmap, (long)&stem_hot_page, STEM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    stem_sys(SYS_munmap, mapping, STEM_RAW_SIZE, 0);
    mapping = 0;
  }
  if (life_fd >= 0) stem_sys(SYS_close, life_fd, 0, 0);
  life_fd = -1;
  stem_recording_forget();
}
