/* The Valgrind tool: who does what.
 *   main.c        Valgrind's callbacks: start, threads, system calls, requests of the preload, the end
 *   host.c        what the engine (tracer/binary) needs of Valgrind: waiting, waking, memory, modules
 *   affinity.c    all threads on one CPU
 *   instrument.c  which accesses, branches and escapes of stack addresses call the helpers
 *   groups.c      how most accesses are recorded without a call
 *   helpers.c     the helpers that translated code calls
 *   launch.c      what starting the collector needs of Valgrind */
#ifndef STEM_TRACER_VALGRIND_TOOL_H
#define STEM_TRACER_VALGRIND_TOOL_H

#include "pub_tool_aspacemgr.h"
#include "pub_tool_basics.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_guest.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"
#include "tracer/binary/engine.h"
#include "tracer/runtime/sys.h"

/* Parts of Valgrind's core that have no public header; CMake checks that it is a version we know. */
typedef enum { VgTs_Empty, VgTs_Init, VgTs_Runnable, VgTs_WaitSys, VgTs_Yielding, VgTs_Zombie } ThreadStatus;
extern void VG_(acquire_BigLock)(ThreadId tid, const HChar* who);
extern void VG_(release_BigLock)(ThreadId tid, ThreadStatus state, const HChar* who);
extern Bool VG_(in_generated_code);
extern Bool VG_(translate)(ThreadId tid, Addr orig_addr, Bool debugging_translation, Int debugging_verbosity,
                           ULong bbs_done, Bool allow_redirection);
extern Bool VG_(search_transtab)(Addr* host, UInt* sector, UInt* entry, Addr guest, Bool keep);
extern UInt VG_(stats__n_xIndirs_32), VG_(stats__n_xIndir_hits1_32), VG_(stats__n_xIndir_hits2_32),
    VG_(stats__n_xIndir_hits3_32), VG_(stats__n_xIndir_misses_32);
extern Bool VG_(is_exiting)(ThreadId tid);
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd, Off64T offset);
extern Int VG_(safe_fd)(Int oldfd);
extern const HChar* VG_(args_the_exename);
extern Bool VG_(clo_trace_children);
extern Addr ML_(get_CFA)(Addr ip, Addr sp, Addr fp, Addr min_accessible, Addr max_accessible);

/* --- host.c --- */
struct module {
  Addr begin, end; /* its code */
  Addr bias;
  Bool seen; /* accesses of its code are recorded */
  Bool announced;
  Bool symbols; /* the file has its symbol table */
  Addr plt, plt_end, got, got_end, gotplt, gotplt_end;
  HChar* path;
};
Bool stem_is_dying(const struct bin_thread* self, ThreadId tid);
void stem_host_thread_gone(void);                        /* called by a thread that ends */
struct module* stem_module_at(Addr pc);                  /* NULL: none */
void stem_announce_modules(void);                        /* to another collector */
Bool stem_is_seen(Addr pc);                              /* its accesses are recorded */
Bool stem_is_internal(Addr object, Addr return_address); /* a library locks what is its own */
Addr stem_site_of(ThreadId tid, Addr return_address);    /* the call in code that is recorded, or 0 */
Bool stem_readable(Addr addr, SizeT size);
Bool stem_writable(Addr addr, SizeT size);
void stem_pages_changed(Addr addr, SizeT size);

/* --- affinity.c --- */
void stem_pin_cpu(void);
void stem_unpin_cpu(void);
void stem_repin_cpu(void);
void stem_pin_forget(void);
void stem_affinity_asked(UInt number, const UWord* args, UWord result); /* a system call about it has succeeded */

/* --- launch.c --- */
Bool stem_launch(void); /* False: this process is not recorded */
void stem_write_meta(void);
void stem_launch_again(void); /* a forked child */
Bool stem_is_followed(Addr path,
                      Addr environment); /* what a process becomes by exec: does it run under the tool, too? */

/* --- helpers.c: what is known when code is translated, in one word --- */
#define STEM_AT(pc, size, flags) ((ULong)(UInt)(pc) | (ULong)(size) << 32 | (ULong)(flags) << 40)
enum {
  STEM_AT_FREE = 1, /* the address is constant or relative to the frame: no earlier read decides it */
  STEM_AT_MORE = 2, /* not the first piece of its instruction's access */
  STEM_AT_NOTED = 4 /* a branch: stem_help_flags was called before it */
};
extern struct stem_fault {
  Addr addr, site;
} stem_faulting; /* a read that cannot be made */
void stem_help_read(Addr addr, ULong at);
void stem_help_write(Addr addr, ULong value, ULong at);
void stem_help_cas_before(Addr addr, ULong at);
void stem_help_cas_after(Addr addr, ULong old, ULong expected, ULong now, ULong at);
void stem_help_xchg_before(Addr addr, ULong at);
void stem_help_xchg_after(Addr addr, ULong old, ULong now, ULong at);
void stem_help_branch(ULong taken, ULong at);
void stem_help_flags(void); /* what is read from here on has no part in the next branch */
void stem_help_pin(ULong at);
void stem_help_escape(Addr value, ULong at);

/* --- groups.c --- */
#define STEM_SLOW (1ull << 62) /* in the address under which the other translation of a block is kept */
extern Bool stem_groups;       /* off: everything is recorded by calls */

/* --- instrument.c --- */
IRSB* stem_instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout, const VexGuestExtents* vge,
                      const VexArchInfo* arch, IRType guest, IRType host);

#endif
