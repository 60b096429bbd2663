/* What belongs to the system: libraries whose inside is none of the program's business, and system calls during which a
 * thread may have to wait for somebody else, so that others must be able to run. */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tracer/binary/engine.h"
#include "tracer/runtime/sys.h"

static int begins(const char* a, const char* b) {
  while (*b && *a == *b) a++, b++;
  return !*b;
}

/* What they do to memory counts as written by code that nobody sees. The C library and its like always; other libraries
 * of the system when there is nothing to name their lines and variables by. */
int bin_is_system(const char* path) {
  static const char* const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
  static const char* const names[] = {"libc.so",    "libc-2",    "ld-linux",  "ld-2",     "libpthread", "libm.so",
                                      "libm-2",     "libdl",     "librt",     "libgcc_s", "libstdc++",  "libc++",
                                      "vgpreload_", "libatomic", "libresolv", "libnss_",  "[vdso]"};
  const char* name = path;
  for (const char* p = path; *p; p++)
    if (*p == '/') name = p + 1;
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (begins(name, names[i])) return 1;
  for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
    if (begins(path, folders[i])) return !bin_elf(path).debug;
  return 0;
}

int bin_is_file(uint64_t fd) {
  struct stat st;
  return stem_sys4(SYS_fstat, fd, &st, 0, 0) == 0 && S_ISREG(st.st_mode);
}

int bin_may_block(uint64_t number, uint64_t first, uint64_t second) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
      return !bin_is_file(first);
    case SYS_futex: {
      unsigned op = (unsigned)second & 0x7f;
      return op == 0 || op == 6 || op == 9 || op == 11; /* the waiting ones */
    }
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_pause:
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_fsync:
    case SYS_fdatasync:
      return 1;
    default:
      return 0;
  }
}
