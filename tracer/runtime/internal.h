/* What the parts of the runtime share. Ground rules: we live in other people's processes, so there is no C++ library, no
 * malloc (mmap through stem_pages), no stdio, no static constructor but init.c's one; everything not marked STEM_EXPORT is
 * hidden; libc functions that we interpose are called through STEM_REAL.
 *
 * The life of an operation on shared state, for a program that is recorded (stem_on != 0):
 *
 *   struct stem_thread* self = stem_self();
 *   stem_visible(self, STEM_KIND_SemWait, sem, site, can_wait, sem, 0);  returns when this thread may do it
 *   ... do it, with a call that cannot block (sem_trywait) ...
 *   stem_event(self, STEM_KIND_SemWait, 0, sem, 0, 0, site);             exactly one visible record for one stem_visible
 *   stem_done(self);                                                     always, also when nothing was recorded
 *
 * Serialised (default, random, pct, guided): only the thread that holds the token is between two stem_visible calls; all
 * others wait inside theirs, with what they are about to do published, so the scheduler picks among enabled ones only.
 * Parallel: stem_visible .. stem_done is one critical section over all synchronisation, with a ticket drawn inside it.
 * A call that may really block (read from a pipe) goes between stem_outside_begin and stem_outside_end.
 */
#ifndef STEM_TRACER_RUNTIME_INTERNAL_H
#define STEM_TRACER_RUNTIME_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/plan.h"
#include "trace/raw.h"
#include "tracer/runtime/abi.h"
#include "tracer/runtime/real.h"

#define STEM_EXPORT __attribute__((visibility("default")))
#define STEM_LIKELY(x) __builtin_expect(!!(x), 1)
#define STEM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* trace::Flag, for `flags` of stem_event. */
enum {
  STEM_FLAG_ATOMIC = 1 << 0,
  STEM_FLAG_TRY = 1 << 1,
  STEM_FLAG_TIMED = 1 << 2,
  STEM_FLAG_TIMEOUT = 1 << 3,
  STEM_FLAG_SPURIOUS = 1 << 4,
  STEM_FLAG_STACK = 1 << 5,
  STEM_FLAG_ZEROED = 1 << 6,
  STEM_FLAG_SERIAL = 1 << 7,
  STEM_FLAG_SPIN = 1 << 10,
};

/* trace::Outcome. */
enum stem_outcome {
  STEM_EXITED,
  STEM_SIGNALLED,
  STEM_DEADLOCK,
  STEM_LIVELOCK,
  STEM_DIVERGED,
  STEM_ASSERT_FAILED,
  STEM_TRUNCATED
};

enum stem_mode { STEM_MODE_DEFAULT, STEM_MODE_RANDOM, STEM_MODE_PCT, STEM_MODE_GUIDED, STEM_MODE_PARALLEL };

enum stem_thread_state {
  STEM_THREAD_NEW,     /* created, has not reached its Start */
  STEM_THREAD_RUNNING, /* holds the token (parallel: runs) */
  STEM_THREAD_PARKED,  /* inside stem_visible, with `pending` published */
  STEM_THREAD_OUTSIDE, /* in a call that may block for real, or found sleeping there by the watchdog */
  STEM_THREAD_ENDED,
};

#define STEM_MAX_PATH 256
#define STEM_NO_DEADLINE 0u

struct stem_thread;
typedef int (*stem_enabled_fn)(struct stem_thread* t, uintptr_t arg); /* pure; called with the scheduler's lock held */

/* What a parked thread is about to do. */
struct stem_pending {
  stem_enabled_fn enabled; /* 0: always */
  uintptr_t arg;
  uint64_t addr;
  const void* site;
  uint64_t deadline;       /* virtual nanoseconds (stem_now), STEM_NO_DEADLINE if none */
  uint8_t kind;            /* STEM_KIND_ */
  uint8_t external;        /* somebody outside this process may enable it: not a deadlock */
  uint8_t arriving;        /* no operation yet: the thread only wants the token back */
};

struct stem_shadow;
struct stem_spin;

struct stem_thread {
  struct stem_rec* cursor;       /* parallel recording: this thread's stream */
  struct stem_rec* limit;
  uint32_t index;                /* dense; 0 is the main thread */
  uint32_t parent;
  uint32_t state;                /* enum stem_thread_state */
  uint32_t go;                   /* futex: 1 when it may run */
  int tid;
  pthread_t handle;
  struct stem_pending pending;
  uint32_t timed_out;            /* set by the scheduler with `go`: the deadline, not the condition, enabled it */
  uint32_t detached;             /* pthread_detach was called */
  uint32_t joined;
  uint32_t watched;              /* somebody asked whether it had ended, before it had */
  uint32_t watchdog;             /* the watchdog took the token from it: it re-attaches at its next visible operation */
  uint32_t children;             /* created so far: the next child's path is path/(children + 1) */
  uint32_t busy;                 /* > 0: inside the runtime; signals that arrive are kept for later */
  uint32_t plan_index;           /* its index among the plan's STEM_PLAN_THREAD items, UINT32_MAX if it is not there */
  uint32_t chunk;                /* parallel recording: the chunk being filled, and how many there were */
  uint64_t chunks;
  /* condition variables */
  uint64_t waiting_on;           /* the condition variable it waits for, 0 once woken */
  uint64_t wait_order;
  uint32_t woken_by;             /* 1 + thread */
  uint32_t barrier_generation;   /* of the barrier it waits at */
  uint64_t futex_mutex;          /* futex.c: the mutex that a look at a futex is told as, while held */
  uint32_t signal_ready;         /* an asynchronous signal waits to be delivered to it: it may run for that, whatever it waits for */
  uint32_t cancelled;            /* pthread_cancel was called on it: it may run for that at a cancellation point */
  uint32_t cancel_disabled, cancel_wanted, cancel_async;
  uint32_t c11;                  /* start returns an int */
  uint32_t stop_here;            /* a debugger wants to be told before the operation just granted */
  /* spin loops: spin.c */
  struct stem_spin* spin;
  const void* entry;             /* where the slow path that runs now returns to, */
  const uint64_t* entry_frame;   /* and the stack above its frame */
  const uint64_t* stack_top;
  uint64_t granted_at;
  uint64_t priority;             /* pct */
  struct stem_shadow* shadow;
  uint32_t stripe_a, stripe_b;   /* parallel recording: 1 + stripes that an access holds */
  const volatile void* last_read;
  uint64_t last_value, same_reads;
  const volatile void* faulting; /* what the slow path is about to access */
  const void* faulting_site;
  void* (*start)(void*);
  void* argument;
  void* signal_stack;
  const uint64_t* alloc_frame;   /* a model allocates: frame of the function that the program called; 0 else */
  uint64_t library[8];           /* for the libc models, signals and feeds; zero at the thread's start */
  struct stem_tls* tls;          /* valid while the thread lives */
  char path[STEM_MAX_PATH];      /* "main/1/2" */
};

extern int stem_on;              /* 1 while operations of this process are scheduled and recorded */
extern enum stem_mode stem_mode; /* guided becomes default once the schedule is used up or was diverged from */
extern struct stem_hot __stem_hot STEM_EXPORT;
extern _Thread_local struct stem_tls __stem_tls STEM_EXPORT __attribute__((tls_model("initial-exec")));
extern _Thread_local struct stem_thread* stem_current __attribute__((tls_model("initial-exec")));

extern uint32_t stem_id_step;    /* what id_step of every thread's stem_tls is */

static inline uint32_t stem_next_id(void) {
  uint32_t id = __stem_tls.next_id;
  __stem_tls.next_id = id + __stem_tls.id_step;
  return id;
}

struct stem_thread* stem_adopt(void); /* a thread that nobody announced (a library made it without pthread_create) */

static inline struct stem_thread* stem_self(void) {
  struct stem_thread* t = stem_current;
  return STEM_LIKELY(t != 0) ? t : stem_adopt();
}

/* Whether an interposed function is to be modelled: not when nothing is recorded, and not when the runtime itself (or a library
 * that it calls, like the unwinder) is the caller. */
static inline int stem_active(void) { return STEM_LIKELY(stem_on) && !(stem_current && stem_current->busy); }

/* At the start of a function that the program calls and that may be part of a spin loop. */
#define STEM_ENTER(self)                                            \
  ((self)->entry = __builtin_return_address(0),                     \
   (self)->entry_frame = (const uint64_t*)__builtin_frame_address(0) + 2)

/* The site that instrumented code left for the call under way; taken once. */
static inline const void* stem_take_site(void) {
  const void* site = __stem_tls.site;
  __stem_tls.site = 0;
  return site;
}

static inline uint32_t stem_site_id(const void* site) { return (uint32_t)(uintptr_t)site; }

/* --- records (stream.c) ------------------------------------------------------------------------------------------------ */

void stem_append_slowly(struct stem_thread* self, uint64_t head, uint64_t value, uint32_t expr, uint32_t site);
/* Within the countdown the token is ours, and recording is serialised, or nobody records. */
static inline void stem_append(struct stem_thread* self, uint64_t head, uint64_t value, uint32_t expr, uint32_t site) {
  struct stem_rec* r = __stem_hot.cursor;
  if (STEM_UNLIKELY(r >= __stem_hot.limit || __stem_hot.countdown <= 0)) return stem_append_slowly(self, head, value, expr, site);
  r->head = head;
  r->value = value;
  r->expr = expr;
  r->site = site;
  __atomic_store_n(&__stem_hot.cursor, r + 1, __ATOMIC_RELEASE);
}
void stem_blob(struct stem_thread* self, enum stem_blob what, const void* bytes, uint64_t length);

/* An event; flags are STEM_FLAG_ bits (for memory accesses: aux as in trace/raw.h). */
static inline void stem_event(struct stem_thread* self, unsigned kind, unsigned flags, const volatile void* addr, uint64_t value,
                              uint32_t expr, const void* site) {
  stem_append(self, stem_head(kind, flags & 0xff, (uint64_t)(uintptr_t)addr), value, expr | (flags & 0xff00), stem_site_id(site));
}

/* Memory as events, for models of library functions. Every piece of at most 8 bytes is one visible operation. */
uint64_t stem_read(const volatile void* address, unsigned size, int leaf, const void* site, uint32_t* id); /* id: new leaf, or 0 */
void stem_write(volatile void* address, uint64_t value, uint32_t id, unsigned size, const void* site);
void stem_read_range(const void* address, size_t size, const void* site);  /* pinned reads */
void stem_write_range(const void* address, size_t size, const void* site); /* the bytes are there already */

/* --- the scheduler (schedule.c) ----------------------------------------------------------------------------------------- */

/* Returns 0 when the operation may be done, 1 when its deadline passed first (the operation then records its failure). */
int stem_visible(struct stem_thread* self, unsigned kind, const volatile void* addr, const void* site, stem_enabled_fn enabled,
                 uintptr_t arg, uint64_t deadline);
int stem_visible_external(struct stem_thread* self, unsigned kind, const volatile void* addr, const void* site,
                          stem_enabled_fn enabled, uintptr_t arg, uint64_t deadline);
void stem_done(struct stem_thread* self);

/* Around a call that may block outside (read, poll, waitpid, sigwait ...): others run meanwhile; not itself visible. */
void stem_outside_begin(struct stem_thread* self);
void stem_outside_end(struct stem_thread* self);

/* The same until the end of the block, also when a cancellation unwinds out of it: no cleanup handler runs without the token. */
static inline void stem_outside_leave(struct stem_thread** self) { stem_outside_end(*self); }
#define STEM_OUTSIDE(self)                                                        \
  __attribute__((cleanup(stem_outside_leave))) struct stem_thread* outside_ = self; \
  stem_outside_begin(outside_)

/* Any sleep: one Yield event; returns once others had their chance until `deadline` (virtual), 0 for sched_yield. */
void stem_sleep_until(struct stem_thread* self, uint64_t deadline, const void* site);

/* --- virtual time (clock.c): nanoseconds. Real time plus what sleeping threads skipped. ----------------------------------- */

uint64_t stem_now(clockid_t clock);                       /* CLOCK_MONOTONIC and CLOCK_REALTIME jump together */
uint64_t stem_deadline(clockid_t clock, const struct timespec* absolute); /* as a deadline for stem_visible; never 0 */
uint64_t stem_deadline_in(uint64_t nanoseconds);
void stem_clock_reached(clockid_t clock, uint64_t nanoseconds); /* a fed-back clock said so: virtual time is not behind it */

/* --- the plan (plan.c) --------------------------------------------------------------------------------------------------- */

const char* stem_option(const char* key);                 /* from the plan, else STEM_<KEY> in the environment, else 0 */
uint64_t stem_option_number(const char* key, uint64_t otherwise);
const struct stem_plan_item* stem_plan_next(enum stem_plan_type type, const struct stem_plan_item* after); /* 0: first/none */
static inline const void* stem_plan_bytes(const struct stem_plan_item* item) { return item + 1; }

/* --- messages and text (text.c) -------------------------------------------------------------------------------------------- */

/* A growing text in fixed memory: what does not fit is cut. JSON strings are escaped by stem_text_json. */
struct stem_text {
  char* at;
  char* end;
};
void stem_text_add(struct stem_text* text, const char* s);
void stem_text_number(struct stem_text* text, uint64_t number, unsigned base);
void stem_text_json(struct stem_text* text, const char* s, size_t length); /* with the quotes */
void stem_text_site(struct stem_text* text, const void* site);            /* "0123456789abcdef" with the quotes */

/* A message of tracer/launch/message.h: recorded, and shown on standard error when no launcher will show it. */
void stem_message(struct stem_thread* self, const char* json);
void stem_note(const char* why);                          /* {"kind":"note"} */
void stem_refuse(const char* why, const void* site);      /* {"kind":"refused"} */
void stem_die(const char* why) __attribute__((noreturn)); /* the runtime cannot go on: a line on standard error, exit 3 */

/* --- expressions and shadows (expr.c, shadow.c) ------------------------------------------------------------------------------ */

uint32_t stem_expr(struct stem_thread* self, uint64_t head, uint32_t a, uint32_t b, uint64_t constant);
void stem_rounds_forget(void); /* a new recording: rounds of loops must be told again */
uint32_t stem_expr_input(struct stem_thread* self, uint32_t input, uint32_t offset, unsigned width);
void stem_pin(struct stem_thread* self, uint32_t id, uint64_t value, const void* site);
void stem_cancellation_point(struct stem_thread* self); /* after an operation that POSIX lets be cancelled */
uint32_t stem_shadow_get(const void* address, unsigned size, uint64_t value); /* 0: concrete */
void stem_shadow_set(const void* address, unsigned size, uint32_t id);
void stem_shadow_clear(const void* address, size_t size);

/* --- threads and the end (threads.c, end.c, fault.c, fork.c) ------------------------------------------------------------------ */

extern uint32_t stem_thread_count;                        /* threads ever made */
struct stem_thread* stem_thread_at(uint32_t index);
struct stem_thread* stem_thread_by_tid(int tid);

/* Writes the Exit event and hands everything to the collector; once. The caller then ends the process. */
void stem_finish(enum stem_outcome outcome, int code);

/* An assertion failed (reach_error and its like): the event, and the outcome if the program then ends by a signal. */
void stem_assertion_failed(const void* site);

/* Synchronous signals (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS) are caught by fault.c from the start; the
 * interposed sigaction keeps the program's own action here instead of installing it, and reads it back from here. */
int stem_fault_signal(int sig); /* 1 if it is one of them */
void stem_fault_action(int sig, const struct sigaction* action, struct sigaction* old);

/* Asynchronous signals. A handler of ours notes the signal, sets signal_ready of the thread that shall run the program's
 * handler and then stem_signals_pending; that thread's next visible operation (or the futex it is parked on, which the signal
 * interrupts) calls stem_signals_deliver while it holds the token. It clears signal_ready, and stem_signals_pending when no
 * thread is left, and runs the handler between SignalIn (through stem_visible) and SignalOut. */
extern volatile uint32_t stem_signals_pending;
void stem_signals_deliver(struct stem_thread* self) __attribute__((weak));

/* A child was started: by which number the program shall know it (on replay the recorded one). */
pid_t stem_library_child(pid_t real, const void* site) __attribute__((weak));
extern uint32_t stem_signal_sources;                      /* > 0: a signal is to be expected (a timer runs): no deadlock yet */
extern uint32_t stem_signal_handlers;                     /* signals that the program handles: one may come from outside */

/* Hooks for the library's own state; weak. */
void stem_library_init(void) __attribute__((weak));                          /* end of start-up, before main */
void stem_library_thread(struct stem_thread* self) __attribute__((weak));    /* in a new thread, before its Start event */
void stem_library_forked(void) __attribute__((weak));                        /* in the child, after its own recording began */

/* --- memory and bytes -------------------------------------------------------------------------------------------------------- */

void* stem_pages(size_t bytes);                           /* zeroed; ends the program when there is none */
void* stem_map(size_t bytes, int protection, int flags, int fd); /* mmap, away from the program's own; 0: failed */
void stem_pages_free(void* p, size_t bytes);
/* System calls without the C library: tracer/runtime/sys.h. */

#endif
