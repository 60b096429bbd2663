/* The memory shared with the collector, the collector itself, and what the trace says of the run.
 *
 * As the compiled runtime does it (tracer/runtime/collect.c): a memfd that both map, a grandchild so that the program's wait()
 * never sees it, a pipe that tells it when the program is gone. */
#include <sys/syscall.h>
#include <time.h>

#include "pub_tool_xarray.h"
#include "tracer/valgrind/tool.h"

static void fail(const HChar* why) {
  VG_(printf)("stem: %s\n", why);
  stem_host_exit(3);
}

static const HChar* program_path(HChar* resolved, SizeT size) {
  VG_(strncpy)(resolved, VG_(args_the_exename), size - 1);
  resolved[size - 1] = 0;
  return resolved;
}

static void become_collector(const HChar* collector, Int memfd, Int life, const HChar* folder) {
  HChar path[4096], output[4600];
  const HChar* name = VG_(strrchr)(program_path(path, sizeof path), '/');
  VG_(snprintf)(output, sizeof output, "%s/%.200s-%d.stemtrace", folder, name ? name + 1 : path, (Int)bin_control()->producer_pid);
  for (HChar* c = output + VG_(strlen)(folder) + 1; *c; c++)
    if (*c <= ' ' || *c == 0x7f) *c = '_';
  Int high_memfd = (Int)bin_sys(SYS_fcntl, memfd, VKI_F_DUPFD, 10, 0), high_life = (Int)bin_sys(SYS_fcntl, life, VKI_F_DUPFD, 10, 0);
  bin_sys(SYS_dup2, high_memfd, 3, 0, 0);
  bin_sys(SYS_dup2, high_life, 4, 0, 0);
  bin_sys(SYS_close_range, 5, ~0u, 0, 0);
  Int null = (Int)bin_sys(SYS_open, "/dev/null", 2, 0, 0);
  if (null >= 0) {
    bin_sys(SYS_dup2, null, 0, 0, 0);
    bin_sys(SYS_dup2, null, 1, 0, 0);
  }
  ULong none = 0;
  bin_sys(SYS_rt_sigprocmask, 2, &none, 0, 8);
  const HChar* arguments[] = {collector, "--fd", "3", "--life", "4", "--output", output, NULL};
  const HChar* environment[] = {"PATH=/usr/bin:/bin", NULL};
  bin_sys(SYS_execve, collector, arguments, environment, 0);
  stem_host_exit(127);
}

static void start_collector(Int memfd, Int life, const HChar* folder) {
  HChar collector[4200];
  const HChar* libraries = bin_option("libdir");
  VG_(snprintf)(collector, sizeof collector, "%s/stem-collect", libraries ? libraries : VG_(getenv)("STEM_LIBDIR"));
  Int middle = VG_(fork)();
  if (middle < 0) fail("cannot start the collector");
  if (middle == 0) {
    Int grandchild = VG_(fork)();
    if (grandchild == 0) become_collector(collector, memfd, life, folder);
    stem_host_exit(grandchild < 0);
  }
  Int status = 0;
  VG_(waitpid)(middle, &status, 0);
  if (status != 0) fail("cannot start the collector");
}

static void await_collector(Int life) {
  for (Int i = 0; i < 3000; i++) {
    if (__atomic_load_n(&bin_control()->collector_pid, __ATOMIC_ACQUIRE)) return;
    if (__atomic_load_n(&bin_control()->failed, __ATOMIC_ACQUIRE)) break;
    struct { Int fd; Short events, revents; } p = {life, 4 /* POLLOUT */, 0};
    if (bin_sys(SYS_poll, &p, 1, 0, 0) == 1 && (p.revents & 8 /* POLLERR */)) break;
    struct timespec ts = {0, i < 100 ? 200000 : 5000000};
    bin_sys(SYS_nanosleep, &ts, 0, 0, 0);
  }
  fail("stem-collect did not start: nothing would be recorded");
}

static void read_plan(void) {
  const HChar* path = VG_(getenv)(STEM_PLAN_ENV);
  struct vg_stat st;
  if (!path || sr_isError(VG_(stat)(path, &st)) || st.size <= 0) return;
  Int fd = VG_(fd_open)(path, VKI_O_RDONLY, 0);
  if (fd < 0) return;
  HChar* bytes = stem_host_pages((SizeT)st.size);
  Long done = 0;
  while (done < st.size) {
    Int n = VG_(read)(fd, bytes + done, (Int)(st.size - done > (1 << 20) ? 1 << 20 : st.size - done));
    if (n <= 0) break;
    done += n;
  }
  VG_(close)(fd);
  bin_plan(bytes, (size_t)done);
}

void stem_launch(void) {
  read_plan();
  const HChar* folder = VG_(getenv)(STEM_RECORD_ENV);
  if (!folder) fail("use `stem record`: STEM_RECORD does not say where traces go");
  Int memfd = (Int)bin_sys(SYS_memfd_create, "stem", 1 /* MFD_CLOEXEC */, 0, 0), ends[2];
  if (memfd < 0 || bin_sys(SYS_ftruncate, memfd, STEM_RAW_SIZE, 0, 0) < 0 || bin_sys(SYS_pipe2, ends, 02000000 /* O_CLOEXEC */, 0, 0) < 0)
    fail("cannot make the memory that is shared with the collector");
  SysRes map = VG_(am_shared_mmap_file_float_valgrind)(STEM_RAW_SIZE, VKI_PROT_READ | VKI_PROT_WRITE, memfd, 0);
  if (sr_isError(map)) fail("cannot map the memory that is shared with the collector");
  bin_open((void*)sr_Res(map), (uint32_t)VG_(getpid)());
  Int life = VG_(safe_fd)(ends[1]); /* stays open, out of the program's sight */
  start_collector(memfd, ends[0], folder);
  bin_sys(SYS_close, ends[0], 0, 0, 0);
  bin_sys(SYS_close, memfd, 0, 0, 0);
  await_collector(life);
}

/* --- what the trace says of the run ------------------------------------------------------------------------------------------- */

static void member(struct bin_text* text, const HChar* name, const HChar* value) {
  bin_text_json(text, name);
  bin_text_add(text, ":");
  bin_text_json(text, value);
  bin_text_add(text, ",");
}

void stem_write_meta(void) {
  SizeT size = 1 << 20;
  HChar* buffer = stem_host_pages(size);
  HChar path[4096], cwd[4096] = "";
  struct bin_text text = {buffer, buffer + size};
  bin_sys(SYS_getcwd, cwd, sizeof cwd, 0, 0);
  program_path(path, sizeof path);
  if (path[0] != '/') { /* as the launcher gave it */
    VG_(snprintf)(path, sizeof path, "%s/%s", cwd, VG_(args_the_exename));
  }
  bin_text_add(&text, "{");
  member(&text, "recorder", "valgrind");
  member(&text, "program", path);
  member(&text, "cwd", cwd);
  const HChar* mode = bin_option("mode");
  member(&text, "mode", mode ? mode : "default");
  bin_text_add(&text, "\"semantics\":false,\"seed\":");
  bin_text_number(&text, bin_option_number("seed", 1), 10);
  bin_text_add(&text, ",\"argv\":[");
  bin_text_json(&text, VG_(args_the_exename));
  for (Int i = 0; i < VG_(sizeXA)(VG_(args_for_client)); i++) {
    bin_text_add(&text, ",");
    bin_text_json(&text, *(HChar**)VG_(indexXA)(VG_(args_for_client), i));
  }
  bin_text_add(&text, "]}");
  bin_blob(STEM_BLOB_META, buffer, (uint64_t)(text.at - buffer));
}
