// The Pin tool: who does what.
//   main.cpp        Pin's callbacks: start, threads, images, signals, fork
//   instrument.cpp  which instructions call the analysis routines
//   access.cpp      the analysis routines: memory, branches, escapes of stack addresses, system calls
//   calls.cpp       functions that stand in place of the C library's: pthread calls, allocation, memory
//   token.cpp       one thread at a time: who runs, who waits; what the engine (tracer/binary) needs of us
//   modules.cpp     the program and its libraries
//
// Pin runs the program's threads in parallel, the engine wants one at a time. The thread that runs owns a lock, in
// program code too, and gives it up only where it waits, goes into a system call that may block, or ends. Others wait
// for it in analysis routines and replacement functions, never in a callback: Pin holds locks of its own there. So a
// new thread, and one that comes back from a system call, run on until their next recorded operation, and take part
// from there (enter()).
//
// A write's value is known once its instruction is done: it is kept in the thread's Client and recorded by the thread's
// next analysis routine (settle()). Nobody else can have run in between.
#ifndef STEM_TRACER_PIN_TOOL_H
#define STEM_TRACER_PIN_TOOL_H

#include "pin.H"

extern "C" {
#include "tracer/binary/engine.h"
#include "tracer/runtime/sys.h"
}

namespace stem_pin {

enum State {
  ABSENT,
  /* not looked at yet */ OUTSIDE,
  INSIDE,
  /* owns the lock */ FOREIGN /* not made by pthread_create: not recorded */
};
enum Change { NONE, WRITE, EXCHANGE, COMPARE, COMPARE_FAILED };

// A thread of the program, by Pin's number of it.
struct Client {
  bin_thread* thread;
  uint32_t state;
  uint32_t busy;    // inside a replaced function: what that one calls is not replaced
  uint32_t change;  // the memory that its present instruction changes: a Change
  uint32_t change_size;
  uint64_t change_addr, change_site, old[2];
  uint64_t frame;    // the canonical frame address of the escape that is being reported; 0: unknown
  uint64_t handle;   // pthread_t
  uint64_t stack;    // its stack pointer when it began
  uint64_t counted;  // the instruction whose first access was counted
  uint64_t returns;  // from a system call whose end is an operation of the schedule
  uint64_t pad[4];   // two cache lines
};
static_assert(sizeof(Client) == 128, "no two threads share a cache line");
extern Client clients[];  // PIN_MAX_THREADS

// --- token.cpp
bin_thread* arrive(THREADID tid);    // 0: nothing is to be recorded of it
void settle(Client& c);              // records the change that its last instruction made
void leave(Client& c);               // gives the lock up
void let_others_in();                // those that came back from system calls want to be known to the scheduler
extern uint64_t handles[];           // pthread_t of each thread, by its index; known before the creation is told
extern volatile uint32_t attention;  // images that were not announced yet

inline bin_thread* enter(THREADID tid) {
  Client& c = clients[tid];
  if (__builtin_expect(c.state != INSIDE || attention, 0)) return arrive(tid);
  if (c.change) settle(c);
  return bin.on ? c.thread : 0;
}
inline int visible(bin_thread* t, unsigned kind, uint64_t addr, uint64_t site) {
  if (__builtin_expect(bin.countdown <= 0, 0)) let_others_in();
  return bin_visible(t, kind, addr, site, 0, 0, 0);
}
void main_begins(THREADID tid, const char* program, bin_argument argument);

// --- access.cpp
enum {
  FREE = 1,
  /* the address is constant or relative to the frame: no earlier read decides it */ MORE =
      2 /* not its instruction's first access */
};
void PIN_FAST_ANALYSIS_CALL on_read(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, UINT32 flags, ADDRINT sp);
void PIN_FAST_ANALYSIS_CALL on_write(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, UINT32 flags, ADDRINT sp);
void PIN_FAST_ANALYSIS_CALL on_exchange(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, UINT32 flags);
void PIN_FAST_ANALYSIS_CALL on_compare(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, ADDRINT expected,
                                       ADDRINT expected_high);
void PIN_FAST_ANALYSIS_CALL on_compare_halves(THREADID tid, ADDRINT addr, ADDRINT site, ADDRINT low, ADDRINT high);
void PIN_FAST_ANALYSIS_CALL on_branch(THREADID tid, ADDRINT site, BOOL taken);
void PIN_FAST_ANALYSIS_CALL on_pin(THREADID tid, ADDRINT site);  // indirect jumps and calls
void PIN_FAST_ANALYSIS_CALL on_leave(THREADID tid);              // calls and returns: code that nobody sees may follow
void PIN_FAST_ANALYSIS_CALL on_escape(THREADID tid, ADDRINT value, ADDRINT site, ADDRINT sp, ADDRINT cfa);
void PIN_FAST_ANALYSIS_CALL on_syscall(THREADID tid, ADDRINT number, ADDRINT a, ADDRINT b);
void drop_change(THREADID tid);  // a signal came in place of it
bool readable(uint64_t addr, uint64_t size);
bool writable(uint64_t addr, uint64_t size);

// --- calls.cpp
struct Call;
struct Function {  // one that is replaced
  const char* name;
  unsigned arguments;
  ADDRINT (*body)(Call& call);
  AFUNPTR original;  // where the real one is, for others that need it
};
extern Function functions[];
extern const unsigned function_count;
ADDRINT on_call(Function* function, const CONTEXT* context, THREADID tid, AFUNPTR original, ADDRINT ra, ADDRINT a0,
                ADDRINT a1, ADDRINT a2, ADDRINT a3, ADDRINT a4);
extern AFUNPTR errno_location;

// --- modules.cpp
struct Module {  // never forgotten: a library that was unloaded keeps its sites
  ADDRINT begin, end, bias;
  ADDRINT tables[4];  // .got and .got.plt: begin, end
  bool seen;          // accesses of its code are recorded
  bool announced;
  char path[4096];
};
Module* module_at(ADDRINT address);  // 0: none; also of the lower half of an address, if no module is there
Module* add_module(const char* path, ADDRINT begin, ADDRINT end, ADDRINT bias);
void announce();                                                  // by the thread that runs
ADDRINT site_of(const CONTEXT* context, ADDRINT return_address);  // the call in code that is recorded, or 0
unsigned callers(const CONTEXT* context, ADDRINT return_address, ADDRINT* sites, unsigned most);

}  // namespace stem_pin

#endif
