// One thread at a time: the lock that the running thread owns, arriving, and what the engine needs of its host.
//
// The lock is a ticket lock on a futex: who gives it up and takes it again has let in everybody who waited. The engine
// sleeps a thread on its own futex (bin_thread::go) with the lock given up.
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "tracer/pin/tool.h"

namespace stem_pin {

Client clients[PIN_MAX_THREADS];
volatile uint32_t attention;
uint64_t handles[BIN_MAX_THREADS];

namespace {

uint32_t next_ticket, serving;

void lock() {
  const uint32_t mine = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    const uint32_t now = __atomic_load_n(&serving, __ATOMIC_SEQ_CST);
    if (now == mine) return;
    stem_sys4(SYS_futex, &serving, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, now, 0);
  }
}

void unlock() {
  const uint32_t now = __atomic_add_fetch(&serving, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&next_ticket, __ATOMIC_SEQ_CST) != now)
    stem_sys4(SYS_futex, &serving, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, 0);
}

uint64_t hex(const char*& at) {
  uint64_t n = 0;
  for (;; ++at) {
    const char c = *at;
    if (c >= '0' && c <= '9')
      n = n * 16 + static_cast<uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      n = n * 16 + static_cast<uint64_t>(c - 'a' + 10);
    else
      return n;
  }
}

// Where the mapping begins that an address lies in; 0: nowhere.
uint64_t mapping_of(uint64_t address) {
  static char bytes[1 << 16];  // by the thread that owns the lock
  const int fd = static_cast<int>(stem_sys4(SYS_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0));
  if (fd < 0) return 0;
  uint64_t found = 0;
  long kept = 0, n;
  while (!found && (n = stem_sys4(SYS_read, fd, bytes + kept, sizeof bytes - 1 - static_cast<size_t>(kept), 0)) > 0) {
    const long total = kept + n;
    bytes[total] = 0;
    const char* line = bytes;
    for (const char* end; !found; line = end + 1) {
      for (end = line; *end && *end != '\n'; ++end) {
      }
      if (!*end) break;
      const char* at = line;
      const uint64_t low = hex(at);
      if (*at == '-' && address - low < hex(++at) - low) found = low;
    }
    kept = bytes + total - line;
    if (kept == total) kept = 0;  // a line longer than the buffer
    for (long i = 0; i < kept; ++i) bytes[i] = line[i];
  }
  stem_sys4(SYS_close, fd, 0, 0, 0);
  return found;
}

void take_stack(bin_thread* t, uint64_t sp, bool main) {
  t->stack_high = (sp + 15) & ~15ull;
  t->stack_low = main ? t->stack_high - (8u << 20) : mapping_of(sp);
  if (!t->stack_low || t->stack_low > t->stack_high) t->stack_low = t->stack_high;
  t->writer_bytes = t->stack_high - t->stack_low;
  if (t->writer_bytes > (8u << 20)) t->writer_bytes = 8u << 20;
  t->writers = static_cast<uint32_t*>(stem_host_pages(t->writer_bytes + 64));
}

// The creator owns the lock from before the thread was there until its handle is known. Handles are used again: the
// latest counts.
bin_thread* newcomer(uint64_t handle) {
  for (uint32_t i = bin.thread_count; handle && i-- > 0;)
    if (handles[i] == handle) return bin.all[i]->host == -1 && bin.all[i]->state != BIN_ENDED ? bin.all[i] : 0;
  return 0;
}

void adopt(THREADID tid, bin_thread* t) {
  Client& c = clients[tid];
  c.thread = t;
  c.state = INSIDE;
  t->host = static_cast<int>(tid);
  t->tid = static_cast<int>(stem_sys4(SYS_gettid, 0, 0, 0, 0));
  take_stack(t, c.stack, t->index == 0);
}

}  // namespace

void leave(Client& c) {
  c.state = OUTSIDE;
  unlock();
}

void let_others_in() {
  if (__atomic_load_n(&next_ticket, __ATOMIC_RELAXED) == __atomic_load_n(&serving, __ATOMIC_RELAXED) + 1) return;
  unlock();
  lock();
}

void main_begins(THREADID tid, const char* program, bin_argument argument) {
  lock();  // nobody else is there: it does not wait
  announce();
  bin_write_meta("pin", program, argument);
  bin_init();
  adopt(tid, bin.all[0]);
}

bin_thread* arrive(THREADID tid) {
  Client& c = clients[tid];
  if (!bin.on || c.state == FOREIGN) return 0;
  if (c.state == OUTSIDE) {
    lock();
    c.state = INSIDE;
    if (attention) announce();
    bin_outside_end(c.thread, c.returns != 0);
  } else if (c.state == ABSENT) {
    lock();
    bin_thread* t = newcomer(c.handle);
    if (!t || !bin.on) {
      c.state = FOREIGN;
      unlock();
      return 0;
    }
    adopt(tid, t);
    if (attention) announce();
    bin_start(t);
  } else {
    if (attention) announce();
    if (c.change) settle(c);
  }
  return bin.on ? c.thread : 0;
}

}  // namespace stem_pin

using namespace stem_pin;

extern "C" {

uint64_t stem_host_now(void) {
  struct timespec ts;
  stem_sys4(SYS_clock_gettime, CLOCK_MONOTONIC, &ts, 0, 0);
  return static_cast<uint64_t>(ts.tv_sec) * 1000000000u + static_cast<uint64_t>(ts.tv_nsec);
}

void stem_host_block(bin_thread* self, uint64_t until) {
  int64_t left = 100000000;
  if (until) {
    const int64_t to = static_cast<int64_t>(until - stem_host_now());
    if (to < left) left = to < 1 ? 1 : to;
  }
  struct timespec ts;
  ts.tv_sec = 0;
  ts.tv_nsec = left;
  unlock();
  stem_sys4(SYS_futex, &self->go, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &ts);
  lock();
}

void stem_host_wake(bin_thread* t, int) { stem_sys4(SYS_futex, &t->go, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0); }

void stem_host_exit(int code) {
  stem_sys4(SYS_exit_group, code, 0, 0, 0);
  __builtin_trap();
}

void* stem_host_pages(size_t bytes) {
  const long p = stem_sys6(SYS_mmap, 0, static_cast<long>((bytes + 4095) & ~4095ul), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p < 0 && p > -4096) stem_host_exit(3);
  return reinterpret_cast<void*>(p);
}

void* stem_host_share(int fd, size_t bytes) {
  const long p = stem_sys6(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p < 0 && p > -4096 ? 0 : reinterpret_cast<void*>(p);
}

int stem_host_hide_fd(int fd) {
  const long high = stem_sys4(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 800, 0);
  if (high < 0) return fd;
  stem_sys4(SYS_close, fd, 0, 0, 0);
  return static_cast<int>(high);
}

const char* stem_host_env(const char* name) { return getenv(name); }

uint64_t stem_host_frame(uint64_t site, uint64_t sp) {
  (void)site;
  (void)sp;
  return bin.holder && bin.holder->host >= 0 ? clients[bin.holder->host].frame : 0;
}

}  // extern "C"
