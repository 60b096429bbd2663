/* Valgrind's callbacks: start, threads, system calls, requests of the preload, the end. */
#include <sys/syscall.h>

#include "tracer/valgrind/requests.h"
#include "tracer/valgrind/tool.h"
#include "valgrind.h"

/* --- threads
 * --------------------------------------------------------------------------------------------------------------------
 */

static void thread_created(ThreadId parent, ThreadId child) {
  struct bin_thread* by = bin_thread_by_host((Int)parent);
  if (!bin.on || !by) return;
  struct bin_thread* t = bin_thread_new(by);
  if (!t) {
    bin_note("more than 4096 threads: what comes after them is not recorded");
    bin_finish(BIN_EXITED, 0);
    return;
  }
  t->host = (Int)child;
}

static void take_stack(struct bin_thread* t, ThreadId tid) {
  t->tid = VG_(gettid)();
  t->stack_high = (VG_(get_SP)(tid) + 15) & ~15ul;
  Addr high = VG_(thread_get_stack_max)(tid);
  SizeT size = VG_(thread_get_stack_size)(tid);
  t->stack_low = high > size ? high + 1 - size : 0;
  if (t->stack_low >= t->stack_high) t->stack_low = t->stack_high;
  t->writer_bytes = t->stack_high - t->stack_low;
  if (t->writer_bytes > (8 << 20)) t->writer_bytes = 8 << 20;
  t->writers = stem_host_pages(t->writer_bytes + 64);
  if (t == bin.holder) bin_private_changed();
}

/* Sixteen random bytes of the kernel's, from which the C library makes what it guards frames and jumps with: a replay
 * has the same ones. They lie behind the arguments and the environment. */
static void settle_guards(Addr sp) {
  enum { END = 0, RANDOM = 25 };
  UWord* at = (UWord*)sp;
  at += 1 + at[0] + 1;
  while (*at++) {
  }
  for (; at[0] != END; at += 2)
    if (at[0] == RANDOM && stem_writable(at[1], 16))
      for (UInt i = 0; i < 16; i++) ((UChar*)at[1])[i] = (UChar)(i * 37 + 11);
}

static Bool recorded; /* else it only runs, because of what it may start */

static void first_instruction(ThreadId tid) {
  if (!recorded) return;
  if (tid == 1) {
    stem_pin_cpu();
    settle_guards(VG_(get_SP)(tid));
    stem_write_meta();
    bin_init();
    struct bin_thread* t = bin.all[0];
    t->host = 1;
    take_stack(t, tid);
    return;
  }
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  if (!t) return;
  take_stack(t, tid);
  bin_start(t);
}

static int can_access(uint64_t addr, unsigned size, int write) {
  return write ? stem_writable(addr, size) : stem_readable(addr, size);
}

/* An instruction has faulted: what its block did before. */
static void end_group(struct bin_thread* t) {
  Addr pc = VG_(get_IP)((ThreadId)t->host);
  uint64_t addr = 0;
  bin_group_cut(t, pc, can_access, &addr);
  if (addr) stem_faulting = (struct stem_fault){addr, pc};
}

static void thread_ends(ThreadId tid) {
  stem_host_thread_gone();
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  if (t && t == bin.holder) end_group(t);
  if (!t || !bin.on) return;
  if (stem_is_dying(t, tid) || (t->state != BIN_RUNNING && t->state != BIN_OUTSIDE)) return;
  uint64_t head = 0, size = 0;
  if (t == bin.holder && stem_sys4(SYS_get_robust_list, 0, &head, &size, 0) == 0 && head && stem_readable(head, 8))
    bin_leave_robust(t, head);
  bin_end(t);
}

/* --- system calls: one that may block gives the token up
 * ------------------------------------------------------------------------- */

static Bool spawning; /* the present system call makes a child that will become another program (posix_spawn, system) */
static Int sent;      /* the signal that the present system call sends to its own caller */

static void before_syscall(ThreadId tid, UInt number, UWord* args, UInt count) {
  if (number == SYS_execve) VG_(clo_trace_children) = stem_is_followed(args[0], args[2]);
  spawning = number == SYS_vfork || (number == SYS_clone && args[0] & VKI_CLONE_VFORK);
  if (!bin.on) return;
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  if (bin.live_count > 1 && (number == SYS_fork || (number == SYS_clone && !(args[0] & VKI_CLONE_VM))))
    bin_note("fork in a process that has threads: the child runs unrecorded until it calls exec");
  sent = number == SYS_tgkill && args[1] == (UWord)VG_(gettid)()  ? (Int)args[2]
         : number == SYS_tkill && args[0] == (UWord)VG_(gettid)() ? (Int)args[1]
         : number == SYS_kill && args[0] == (UWord)VG_(getpid)()  ? (Int)args[1]
                                                                  : 0;
  if (t && number == SYS_exit) t->ending = 1; /* before Valgrind calls it leaving: nobody shall take that for the process's end */
  if (number == SYS_exit_group) {
    bin_finish(BIN_EXITED, (Int)args[0]);
    stem_host_exit((Int)args[0]);
  }
  if (number == SYS_execve && stem_readable(args[0], 1) && stem_sys4(SYS_access, args[0], 1 /* X_OK */, 0, 0) == 0) {
    bin_note("the program became another one by exec");
    bin_finish(BIN_EXITED, 0);
  }
  if (number == SYS_execve || number == SYS_execveat) { /* another program: this trace ends where it is */
    stem_unpin_cpu();
    return;
  }
  if (t && t == bin.holder && bin.live_count > 1 && bin_may_block(number, args[0], args[1])) bin_outside_begin(t);
}

static void after_syscall(ThreadId tid, UInt number, UWord* args, UInt count, SysRes res) {
  if ((number == SYS_sched_getaffinity || number == SYS_sched_setaffinity) && !sr_isError(res))
    stem_affinity_asked(number, args, sr_Res(res));
  if (number == SYS_execve || number == SYS_execveat) stem_repin_cpu(); /* it failed */
  if (!bin.on) return;
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  /* sigwait() goes on waiting when it was interrupted, which depends on more than the schedule. */
  Bool again = number == SYS_rt_sigtimedwait && sr_isError(res) && sr_Err(res) == VKI_EINTR;
  if (t) bin_outside_end(t, number != SYS_futex && !again);
}

/* --- handlers of signals
 * ---------------------------------------------------------------------------------------------------------- */

static void handler_begins(ThreadId tid, Int number, Bool alternate) {
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  if (!bin.on || !t || t != bin.holder) return;
  end_group(t);
  bin_pin(t, 0);
  bin_visible(t, STEM_KIND_SignalIn, 0, 0, 0, 0, 0);
  bin_event(t, STEM_KIND_SignalIn, 0, 0, (ULong)number, 0);
}

static void handler_returns(ThreadId tid, Int number) {
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  if (!bin.on || !t || t != bin.holder) return;
  bin_pin(t, 0);
  bin_event(t, STEM_KIND_SignalOut, 0, 0, (ULong)number, 0);
}

/* --- requests of the preload
 * ------------------------------------------------------------------------------------------------------ */

static void allocated(struct bin_thread* t, ThreadId tid, Addr addr, UWord size, Bool zeroed) {
  Addr ips[24];
  uint64_t callers[8] = {0};
  UInt n = VG_(get_StackTrace)(tid, ips, 24, NULL, NULL, 0), k = 0;
  Addr site = 0;
  for (UInt i = 1; i < n && k < 8; i++) {
    struct module* m = stem_module_at(ips[i]);
    if (!m || !m->seen) continue;
    if (!site)
      site = ips[i];
    else
      callers[k++] = ips[i] + 1;
  }
  if (!addr || !site)
    return; /* the C library's own: nothing of the program's, and it would not tell us when it frees */
  bin_pin(t, site);
  bin_append(stem_head(STEM_KIND_Alloc, zeroed ? BIN_ZEROED : 0, addr), size, 0, (UInt)site);
  t->last_read = 0;
  t->since_branch = 1;
  bin_blob(STEM_BLOB_CALLERS, callers, k * sizeof *callers);
}

static void freed(struct bin_thread* t, ThreadId tid, Addr addr, Addr return_address) {
  Addr site = stem_site_of(tid, return_address);
  bin_pin(t, site);
  bin_append(stem_head(STEM_KIND_Free, 0, addr), 0, 0, (UInt)site);
  t->last_read = 0;
  t->since_branch = 1;
}

static UWord copy(struct bin_thread* t, Addr to, Addr from, UWord size, Addr return_address) {
  if (size == 0) return 1;
  if (!stem_readable(from, size) || !stem_writable(to, size)) return 0;
  struct module* m = stem_module_at(return_address - 1);
  if (t && m && m->seen)
    bin_copy(t, to, from, size, return_address - 1, VG_(get_SP)(VG_(get_running_tid)()));
  else
    VG_(memmove)((void*)to, (void*)from, size);
  return 1;
}

static UWord fill(struct bin_thread* t, Addr to, UWord byte, UWord size, Addr return_address) {
  if (size == 0) return 1;
  if (!stem_writable(to, size)) return 0;
  struct module* m = stem_module_at(return_address - 1);
  if (t && m && m->seen)
    bin_fill(t, to, (UInt)byte, size, return_address - 1, VG_(get_SP)(VG_(get_running_tid)()));
  else
    VG_(memset)((void*)to, (Int)byte, size);
  return 1;
}

static Bool request(ThreadId tid, UWord* args, UWord* ret) {
  if (!VG_IS_TOOL_USERREQ('S', 'T', args[0])) return False;
  UWord op = args[0] - STEM_REQUEST_BASE;
  struct bin_thread* t = bin_thread_by_host((Int)tid);
  if (!bin.on || bin.holder != t) t = NULL;
  *ret = 0;
  switch (op) {
    case BIN_COPY:
      *ret = copy(t, args[1], args[2], args[3], args[4]);
      return True;
    case BIN_FILL:
      *ret = fill(t, args[1], args[2], args[3], args[4]);
      return True;
    case BIN_KEPT:
      *ret = t && (args[1] == 0 || !bin_is_file(args[1]));
      return True;
    case BIN_SCHEDULED:
      *ret = t != NULL;
      return True;
    case BIN_CALLED: {
      struct module* m = t ? stem_module_at(args[4] - 1) : NULL;
      *ret = m && m->seen;
      return True;
    }
    case BIN_SKIPPED:
      *ret = bin.skipped;
      return True;
    default:
      break;
  }
  if (!t) return True;
  switch (op) {
    case BIN_ALLOCATED:
      allocated(t, tid, args[1], args[2], args[3] != 0);
      return True;
    case BIN_FED:
    case BIN_TOLD: {
      struct bin_result* answer = (struct bin_result*)args[3];
      Addr site = stem_site_of(tid, args[4]);
      bin_pin(t, site);
      if (op == BIN_FED)
        *ret = (UWord)bin_fed(t, answer->kind, (void*)args[1], args[2], answer, site);
      else
        bin_told(t, answer->kind, (void*)args[1], args[2], answer, site);
      return True;
    }
    case BIN_WRITTEN: {
      struct module* m = stem_module_at(args[4] - 1);
      if (m && m->seen) bin_written(t, args[1], args[2], args[4] - 1, VG_(get_SP)(tid));
      return True;
    }
    case BIN_FREE:
      freed(t, tid, args[1], args[4]);
      return True;
    case BIN_READ_RANGE: {
      struct module* m = stem_module_at(args[4] - 1);
      if (!m || !m->seen || args[2] == 0 || !stem_readable(args[1], args[2])) return True;
      bin_pin(t, args[4] - 1);
      bin_read_range(t, args[1], args[2], args[4] - 1, VG_(get_SP)(tid));
      return True;
    }
    default:
      break;
  }
  if (op == BIN_YIELD && args[2]) {
    struct module* m = stem_module_at(args[4] - 1);
    if (!m || !m->seen) return True;
  }
  if (op <= BIN_RW_UNLOCKED && stem_is_internal(args[1], args[4])) return True; /* the real call does it alone */
  *ret = bin_call(t, (enum bin_op)op, args[1], args[2], args[3], stem_site_of(tid, args[4]));
  return True;
}

/* --- the rest
 * -----------------------------------------------------------------------------------------------------------------------
 */

static void memory_gone(Addr a, SizeT size) { stem_pages_changed(a, size); }
static void memory_protected(Addr a, SizeT size, Bool r, Bool w, Bool x) { stem_pages_changed(a, size); }

/* The child of a process with one thread has a trace of its own, from here on; with several it has lost all but one of
 * them, and what they held. */
static void forked(ThreadId tid) {
  Bool alone = bin.on && bin.live_count == 1 && bin.holder && !spawning;
  bin.on = 0;
  stem_pin_forget();
  bin_forget();
  if (!alone) return;
  bin.forked = 1;
  bin_plan_options_only(); /* the schedule is the parent's */
  stem_launch_again();
  stem_announce_modules();
  bin_groups_again();
  stem_write_meta();
  bin_again();
  bin.holder->tid = VG_(gettid)();
}

static void after_options(void) {
  recorded = stem_launch();
  const char* groups = stem_host_env("STEM_GROUPS");
  stem_groups = !groups || groups[0] != '0';
}

static IRSB* instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout, const VexGuestExtents* vge,
                        const VexArchInfo* arch, IRType guest, IRType host) {
  return recorded ? stem_instrument(closure, in, layout, vge, arch, guest, host) : in;
}

/* Which signal ends the program Valgrind does not tell. We know it when the thread sent it to itself (abort), or cannot
 * access what it was about to; else the trace says nothing, and the launcher knows. */
static void record_end(struct bin_thread* t) {
  Addr addr = 0;
  UInt site = 0;
  if (!sent && stem_faulting.site) {
    addr = stem_faulting.addr;
    site = (UInt)stem_faulting.site;
  } else if (!sent && t->last_event && t->last_event + 1 == bin.cursor &&
             ((t->last_event->head >> 48) & 0xff) == STEM_KIND_Write) {
    Addr last = t->last_event->head & 0xffffffffffffull;
    if (stem_writable(last, (t->last_event->head >> 56) & 15)) return;
    addr = last;
    site = t->last_event->site;
  } else if (!sent) {
    return;
  }
  bin_append(stem_head(STEM_KIND_Fault, 0, addr), sent ? (ULong)sent : VKI_SIGSEGV, 0, site);
}

/* Reached when a signal ends the program; exit_group does not come here. The trace ends there, and the launcher knows
 * the signal. */
static void finish(Int code) {
  if (bin.holder && bin.holder->host > 0) end_group(bin.holder);
  if (bin.holder) record_end(bin.holder);
  bin.on = 0;
  bin_close(1);
}

static void before_options(void) {
  VG_(details_name)("STEM");
  VG_(details_version)(NULL);
  VG_(details_description)("records runs of multithreaded programs");
  VG_(details_copyright_author)("MIT licence; see stem --help");
  VG_(details_bug_reports_to)("the STEM project");
  VG_(details_avg_translation_sizeB)(400);
  /* Where an address of the stack gets out the stack pointer must be the present one (tracer/binary/stack.c). Less
   * where groups are recorded (groups.c). */
  VG_(clo_vex_control).iropt_register_updates_default = VexRegUpdAllregsAtEachInsn;
  VG_(basic_tool_funcs)(after_options, instrument, finish);
  VG_(needs_client_requests)(request);
  VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
  VG_(track_pre_thread_ll_create)(thread_created);
  VG_(track_pre_thread_first_insn)(first_instruction);
  VG_(track_pre_thread_ll_exit)(thread_ends);
  VG_(track_pre_deliver_signal)(handler_begins);
  VG_(track_post_deliver_signal)(handler_returns);
  VG_(track_die_mem_munmap)(memory_gone);
  VG_(track_die_mem_brk)(memory_gone);
  VG_(track_change_mem_mprotect)(memory_protected);
  VG_(atfork)(NULL, NULL, forked);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
