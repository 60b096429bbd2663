/* What the engine needs of Valgrind.
 *
 * Waiting. Valgrind runs one thread at a time, whoever holds its big lock; each client thread is a kernel thread with a
 * stack of its own for Valgrind's code. So a thread can wait inside a helper, in the middle of a translated block: it
 * gives the big lock up, sleeps on a futex, and takes it again. Nothing of the block is lost or repeated, and registers
 * need not be precise: this is why accesses of one instruction can be separated. Two things belong to whoever runs: the
 * flag that tells Valgrind's fault handler that client code runs is put back, and the counts of indirect jumps, which
 * must be 0 when a block is entered, are forgotten (statistics that nobody asks for). A thread that waits while the
 * process dies (another was killed by a signal) has to get back to Valgrind's scheduler: by the signal that Valgrind
 * itself uses for that, because it may be in the middle of a block. */
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "trace/code_key.h"
#include "tracer/valgrind/tool.h"

#define VG_SIGVGKILL 64

uint64_t stem_host_now(void) {
  struct timespec ts;
  stem_sys4(SYS_clock_gettime, CLOCK_MONOTONIC, &ts, 0, 0);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static Int killer_in_code = -1; /* -1: the process is not dying */

/* The one that kills the others waits for them in the middle of its own work, which may be translated code: Valgrind's
 * flag for that is its, while our own leaving needs it as it was for us. */
static void leave_dying(ThreadId tid, Bool in_code) {
  VG_(acquire_BigLock)(tid, "stem");
  if (killer_in_code < 0) killer_in_code = VG_(in_generated_code);
  bin.on = 0;
  bin.countdown = 0;    /* no groups */
  if (!in_code) return; /* the scheduler looks as soon as we return */
  VG_(in_generated_code) = True;
  VG_(release_BigLock)(tid, VgTs_Yielding, "stem");
  uint64_t mask = 1ull << (VG_SIGVGKILL - 1);
  stem_sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, 8);
  stem_sys4(SYS_tkill, VG_(gettid)(), VG_SIGVGKILL, 0, 0); /* takes the big lock and does not return here */
}

/* Is somebody killing all threads? A thread that comes to its end by itself is leaving too, as far as Valgrind is
 * concerned: then the others tell, while they are there. */
Bool stem_is_dying(const struct bin_thread* self, ThreadId tid) {
  static Bool dying;
  if (self->state == BIN_PARKED && !self->ending && VG_(is_exiting)(tid)) dying = True;
  for (uint32_t i = 0; !dying && i < bin.live_count; i++) {
    const struct bin_thread* t = bin.live[i];
    dying = t != self && !t->ending && t->host > 0 && VG_(is_exiting)((ThreadId)t->host);
  }
  return dying;
}

/* Whoever is woken wants the big lock first: better once it is free. */
static struct bin_thread* to_wake;

static void wake(struct bin_thread* t) { stem_sys4(SYS_futex, &t->go, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0); }

void stem_host_wake(struct bin_thread* t, int blocks) {
  if (blocks)
    to_wake = t;
  else
    wake(t);
}

void stem_host_block(struct bin_thread* self, uint64_t until) {
  ThreadId tid = VG_(get_running_tid)();
  Bool in_code = VG_(in_generated_code);
  int64_t left = 100000000;
  if (until) {
    int64_t to = (int64_t)(until - stem_host_now());
    if (to < left) left = to < 1 ? 1 : to;
  }
  struct timespec ts = {left / 1000000000, left % 1000000000};
  VG_(in_generated_code) = False;
  VG_(stats__n_xIndirs_32) = VG_(stats__n_xIndir_hits1_32) = VG_(stats__n_xIndir_hits2_32) = 0;
  VG_(stats__n_xIndir_hits3_32) = VG_(stats__n_xIndir_misses_32) = 0;
  struct bin_thread* next = to_wake;
  to_wake = NULL;
  VG_(release_BigLock)(tid, VgTs_Yielding, "stem");
  if (next) wake(next);
  stem_sys4(SYS_futex, &self->go, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &ts);
  if (stem_is_dying(self, tid)) {
    leave_dying(tid, in_code);
    return;
  }
  VG_(acquire_BigLock)(tid, "stem");
  VG_(in_generated_code) = in_code;
}

void stem_host_thread_gone(void) {
  if (killer_in_code >= 0) VG_(in_generated_code) = (Bool)killer_in_code;
}

void stem_host_exit(int code) {
  stem_sys4(SYS_exit_group, code, 0, 0, 0);
  __builtin_trap();
}

void* stem_host_pages(size_t bytes) {
  void* p = VG_(am_shadow_alloc)((bytes + 4095) & ~4095ul);
  if (!p) stem_host_exit(3);
  return p;
}

/* --- modules
 * ------------------------------------------------------------------------------------------------------------------ */

static struct module modules[4096]; /* never forgotten: a library that was unloaded keeps its sites */
static UInt module_count;

struct module* stem_module_at(Addr pc) {
  static struct module* last;
  if (last && pc - last->begin < last->end - last->begin) return last;
  for (UInt i = module_count; i-- > 0;)
    if (pc - modules[i].begin < modules[i].end - modules[i].begin) return last = &modules[i];
  DebugInfo* di = VG_(find_DebugInfo)(VG_(current_DiEpoch)(), pc);
  if (!di || module_count == sizeof modules / sizeof *modules) return NULL;
  struct module* m = &modules[module_count++];
  m->begin = VG_(DebugInfo_get_text_avma)(di);
  m->end = m->begin + VG_(DebugInfo_get_text_size)(di);
  if (pc < m->begin) m->begin = pc; /* .init and .plt come before .text */
  m->plt = VG_(DebugInfo_get_plt_avma)(di), m->plt_end = m->plt + VG_(DebugInfo_get_plt_size)(di);
  m->got = VG_(DebugInfo_get_got_avma)(di), m->got_end = m->got + VG_(DebugInfo_get_got_size)(di);
  m->gotplt = VG_(DebugInfo_get_gotplt_avma)(di), m->gotplt_end = m->gotplt + VG_(DebugInfo_get_gotplt_size)(di);
  if (m->plt && m->plt < m->begin) m->begin = m->plt;
  if (pc >= m->end) m->end = pc + 1; /* .fini */
  m->bias = (Addr)VG_(DebugInfo_get_text_bias)(di);
  m->path = VG_(strdup)("stem.module", VG_(DebugInfo_get_filename)(di));
  m->seen = !bin_is_system(m->path);
  m->announced = False;
  m->symbols = m->seen && bin_elf(m->path).symbols;
  if (m->seen) {
    bin_module(m->path, m->bias, m->begin, m->end - m->begin);
    m->announced = True;
  }
  return last = m;
}

void stem_announce_modules(void) {
  for (UInt i = 0; i < module_count; i++)
    if (modules[i].announced)
      bin_module(modules[i].path, modules[i].bias, modules[i].begin, modules[i].end - modules[i].begin);
}

Bool stem_is_seen(Addr pc) {
  struct module* m = stem_module_at(pc);
  return m && m->seen;
}

uint64_t stem_host_key(uint64_t site) {
  struct module* m = site ? stem_module_at(site) : NULL;
  return m ? stem_code_key(m->path, site - m->bias) : 0;
}

int stem_host_same_function(uint64_t site, uint64_t other) {
  static HChar first[512];
  const HChar* name;
  DiEpoch ep = VG_(current_DiEpoch)();
  if (!VG_(get_fnname)(ep, other, &name)) return 0;
  VG_(strncpy)(first, name, sizeof first - 1);
  return VG_(get_fnname)(ep, site, &name) && VG_(strncmp)(first, name, sizeof first - 1) == 0;
}

uint64_t stem_host_frame(uint64_t site, uint64_t sp) {
  Addr fp = 0;
  VG_(get_shadow_regs_area)(VG_(get_running_tid)(), (UChar*)&fp, 0, offsetof(VexGuestAMD64State, guest_RBP), sizeof fp);
  return ML_(get_CFA)(site, sp, fp, sp - 4096, sp + (16 << 20));
}

Addr stem_site_of(ThreadId tid, Addr return_address) {
  struct module* m = stem_module_at(return_address - 1);
  if (m && m->seen) return return_address - 1;
  Addr ips[16];
  UInt n = VG_(get_StackTrace)(tid, ips, 16, NULL, NULL, 0);
  for (UInt i = 1; i < n; i++) {
    m = stem_module_at(ips[i]);
    if (m && m->seen) return ips[i];
  }
  return 0;
}

Bool stem_is_internal(Addr object, Addr return_address) {
  struct module* m = stem_module_at(return_address - 1);
  const HChar* name = NULL;
  if ((m && m->seen) || !object) return False;
  return VG_(DebugInfo_sect_kind)(&name, object) != Vg_SectUnknown && name && bin_is_system(name);
}

/* --- is memory there? Asked before every read that we make for the program, so it has to be cheap: pages known to be
 * --------- */

static Addr readable[4096]; /* page numbers plus one */

Bool stem_readable(Addr addr, SizeT size) {
  Addr first = addr >> 12, last = (addr + size - 1) >> 12;
  for (Addr page = first; page <= last; page++) {
    if (readable[page & 4095] == page + 1) continue;
    if (!VG_(am_is_valid_for_client)(page << 12, 4096, VKI_PROT_READ)) return False;
    readable[page & 4095] = page + 1;
  }
  return True;
}

Bool stem_writable(Addr addr, SizeT size) { return VG_(am_is_valid_for_client)(addr, size, VKI_PROT_WRITE); }

void stem_pages_changed(Addr addr, SizeT size) {
  if (size >> 12 >= 4096) {
    VG_(memset)(readable, 0, sizeof readable);
    return;
  }
  for (Addr page = addr >> 12; page <= (addr + size) >> 12; page++)
    if (readable[page & 4095] == page + 1) readable[page & 4095] = 0;
}
