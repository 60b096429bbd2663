/* The memory shared with the collector, the collector itself, and what the trace says of the run.
 *
 * As the compiled runtime does it (tracer/runtime/collect.c): a memfd that both map, a grandchild so that the program's
 * wait() never sees it, a pipe that tells it when the program is gone. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "tracer/binary/engine.h"
#include "tracer/runtime/sys.h"

static int life = -1; /* open for as long as the process lives */
enum { F_DUPFD_ = 0, O_CLOEXEC_ = 02000000, MFD_CLOEXEC_ = 1, POLLOUT_ = 4, POLLERR_ = 8 };

static void fail(const char* why) {
  char buffer[256];
  struct bin_text text = {buffer, buffer + sizeof buffer};
  bin_text_add(&text, "stem: ");
  bin_text_add(&text, why);
  bin_text_add(&text, "\n");
  stem_sys4(SYS_write, 2, buffer, text.at - buffer, 0);
  stem_host_exit(3);
}

static const char* last_part(const char* path) {
  const char* name = path;
  for (; *path; path++)
    if (*path == '/') name = path + 1;
  return name;
}

static void become_collector(const char* collector, const char* program, int memfd, int alive, const char* folder) {
  char output[4600];
  struct bin_text text = {output, output + sizeof output};
  bin_text_add(&text, folder);
  bin_text_add(&text, "/");
  char* name = text.at;
  bin_text_add(&text, last_part(program));
  if (text.at - name > 200) text.at = name + 200;
  for (char* c = name; c < text.at; c++)
    if (*c <= ' ' || *c == 0x7f) *c = '_';
  bin_text_add(&text, "-");
  bin_text_number(&text, bin_control()->producer_pid, 10);
  bin_text_add(&text, ".stemtrace");
  int high_memfd = (int)stem_sys4(SYS_fcntl, memfd, F_DUPFD_, 10, 0),
      high_life = (int)stem_sys4(SYS_fcntl, alive, F_DUPFD_, 10, 0);
  stem_sys4(SYS_dup2, high_memfd, 3, 0, 0);
  stem_sys4(SYS_dup2, high_life, 4, 0, 0);
  stem_sys4(SYS_close_range, 5, ~0u, 0, 0);
  int null = (int)stem_sys4(SYS_open, "/dev/null", 2, 0, 0);
  if (null >= 0) {
    stem_sys4(SYS_dup2, null, 0, 0, 0);
    stem_sys4(SYS_dup2, null, 1, 0, 0);
  }
  uint64_t none = 0;
  stem_sys4(SYS_rt_sigprocmask, 2, &none, 0, 8);
  const char* arguments[] = {collector, "--fd", "3", "--life", "4", "--output", output, 0};
  const char* environment[] = {"PATH=/usr/bin:/bin", 0};
  stem_sys4(SYS_execve, collector, arguments, environment, 0);
  stem_sys4(SYS_exit_group, 127, 0, 0, 0);
}

static void start_collector(const char* program, int memfd, int alive, const char* folder) {
  char collector[4200];
  struct bin_text text = {collector, collector + sizeof collector};
  const char* libraries = bin_option("libdir");
  if (!libraries) libraries = stem_host_env("STEM_LIBDIR");
  bin_text_add(&text, libraries ? libraries : "");
  bin_text_add(&text, "/stem-collect");
  long middle = stem_sys4(SYS_fork, 0, 0, 0, 0);
  if (middle < 0) fail("cannot start the collector");
  if (middle == 0) {
    long grandchild = stem_sys4(SYS_fork, 0, 0, 0, 0);
    if (grandchild == 0) become_collector(collector, program, memfd, alive, folder);
    stem_sys4(SYS_exit_group, grandchild < 0, 0, 0, 0);
  }
  int status = 0;
  while (stem_sys4(SYS_wait4, middle, &status, 0, 0) == -4 /* EINTR */) {
  }
  if (status != 0) fail("cannot start the collector");
}

static void await_collector(void) {
  for (int i = 0; i < 3000; i++) {
    if (__atomic_load_n(&bin_control()->collector_pid, __ATOMIC_ACQUIRE)) return;
    if (__atomic_load_n(&bin_control()->failed, __ATOMIC_ACQUIRE)) break;
    struct {
      int fd;
      short events, revents;
    } p = {life, POLLOUT_, 0};
    if (stem_sys4(SYS_poll, &p, 1, 0, 0) == 1 && (p.revents & POLLERR_)) break;
    struct timespec ts = {0, i < 100 ? 200000 : 5000000};
    stem_sys4(SYS_nanosleep, &ts, 0, 0, 0);
  }
  fail("stem-collect did not start: nothing would be recorded");
}

static void read_plan(void) {
  static int was_read;
  if (was_read++) return;
  const char* path = stem_host_env(STEM_PLAN_ENV);
  int fd = path ? (int)stem_sys4(SYS_open, path, O_CLOEXEC_, 0, 0) : -1;
  if (fd < 0) return;
  long size = stem_sys4(SYS_lseek, fd, 0, 2, 0), done = 0;
  if (size > 0) {
    char* bytes = stem_host_pages((size_t)size);
    while (done < size) {
      long n = stem_sys6(SYS_pread64, fd, (long)(bytes + done), size - done, done, 0, 0);
      if (n <= 0) break;
      done += n;
    }
    bin_plan(bytes, (size_t)done);
  }
  stem_sys4(SYS_close, fd, 0, 0, 0);
}

/* --- which processes
 * -------------------------------------------------------------------------------------------------------- */

static int has_slash(const char* s) {
  while (*s && *s != '/') s++;
  return *s == '/';
}

/* As it was found: a name alone is looked for where a shell does. */
static void program_path(char* path, size_t size, const char* program, const char* cwd) {
  const char* at = has_slash(program) ? 0 : stem_host_env("PATH");
  while (at && *at) {
    struct bin_text text = {path, path + size};
    const char* end = at;
    while (*end && *end != ':') end++;
    while (at < end && text.at < text.end - 1) *text.at++ = *at++;
    *text.at = 0;
    bin_text_add(&text, "/");
    bin_text_add(&text, program);
    if (path[0] == '/' && stem_sys4(SYS_access, path, 1 /* X_OK */, 0, 0) == 0) return;
    at = *end ? end + 1 : end;
  }
  struct bin_text text = {path, path + size};
  if (program[0] != '/') {
    bin_text_add(&text, cwd);
    bin_text_add(&text, "/");
  }
  bin_text_add(&text, program);
}

/* The schedule, and what the launcher says of the program, are for the process that it started: the one that finds this
 * file. */
static int is_first(void) {
  char path[4200];
  struct bin_text text = {path, path + sizeof path};
  const char* folder = stem_host_env(STEM_RECORD_ENV);
  if (!folder) return 1;
  bin_text_add(&text, folder);
  bin_text_add(&text, "/" STEM_FIRST_FILE);
  return stem_sys4(SYS_unlink, path, 0, 0, 0) == 0;
}

/* Programs that somebody compiled with -g, and the one that was asked for. Shells, make and the like only start them.
 */
int bin_is_wanted(const char* program) {
  char path[8200], cwd[4096] = "";
  stem_sys4(SYS_getcwd, cwd, sizeof cwd, 0, 0);
  program_path(path, sizeof path, program, cwd);
  read_plan();
  struct bin_elf facts = bin_elf(path);
  int first = is_first();
  if (!first) bin_plan_options_only();
  return facts.program && (facts.debug || (first && bin_option_number("asked", 1)));
}

void bin_launch(const char* program) {
  read_plan();
  const char* folder = stem_host_env(STEM_RECORD_ENV);
  if (!folder) fail("use `stem record`: STEM_RECORD does not say where traces go");
  int memfd = (int)stem_sys4(SYS_memfd_create, "stem", MFD_CLOEXEC_, 0, 0), ends[2];
  if (memfd < 0 || stem_sys4(SYS_ftruncate, memfd, STEM_RAW_SIZE, 0, 0) < 0 ||
      stem_sys4(SYS_pipe2, ends, O_CLOEXEC_, 0, 0) < 0)
    fail("cannot make the memory that is shared with the collector");
  void* mapping = stem_host_share(memfd, STEM_RAW_SIZE);
  if (!mapping) fail("cannot map the memory that is shared with the collector");
  bin_open(mapping, (uint32_t)stem_sys4(SYS_getpid, 0, 0, 0, 0));
  if (life >= 0) stem_sys4(SYS_close, life, 0, 0, 0); /* the parent's, in a forked child */
  life = stem_host_hide_fd(ends[1]);
  start_collector(program, memfd, ends[0], folder);
  stem_sys4(SYS_close, ends[0], 0, 0, 0);
  stem_sys4(SYS_close, memfd, 0, 0, 0);
  await_collector();
}

/* --- what the trace says of the run
 * ------------------------------------------------------------------------------------------- */

static void member(struct bin_text* text, const char* name, const char* value) {
  bin_text_json(text, name);
  bin_text_add(text, ":");
  bin_text_json(text, value);
  bin_text_add(text, ",");
}

void bin_write_meta(const char* recorder, const char* program, bin_argument argument) {
  size_t size = 1 << 20;
  char* buffer = stem_host_pages(size);
  char path[8200], cwd[4096] = "";
  stem_sys4(SYS_getcwd, cwd, sizeof cwd, 0, 0);
  program_path(path, sizeof path, program, cwd);
  struct bin_text text = {buffer, buffer + size};
  bin_text_add(&text, "{");
  member(&text, "recorder", recorder);
  member(&text, "program", path);
  member(&text, "cwd", cwd);
  const char* mode = bin_option("mode");
  member(&text, "mode", mode ? mode : "default");
  if (bin.forked) bin_text_add(&text, "\"options\":{\"forked\":\"1\"},");
  bin_text_add(&text, "\"semantics\":false,\"seed\":");
  bin_text_number(&text, bin_option_number("seed", 1), 10);
  bin_text_add(&text, ",\"argv\":[");
  const char* word;
  for (int i = 0; (word = argument(i)); i++) {
    if (i) bin_text_add(&text, ",");
    bin_text_json(&text, word);
  }
  bin_text_add(&text, "]}");
  bin_blob(STEM_BLOB_META, buffer, (uint64_t)(text.at - buffer));
}
