/* State that only the core of the runtime shares (not the models of library functions). */
#ifndef STEM_TRACER_RUNTIME_STATE_H
#define STEM_TRACER_RUNTIME_STATE_H

#include <sched.h>

#include "tracer/runtime/internal.h"
#include "trace/site_record.h"

extern int stem_launched;  /* a launcher reads our messages: say nothing ourselves */
extern int stem_parallel;
extern struct stem_control* stem_control; /* 0: nothing is recorded (the run may still follow a plan) */

static inline uint64_t stem_site_key(const void* site) { return site ? ((const struct stem_site*)site)->key : 0; }

/* A signal is to be delivered to it, and can be: not between a handler's SignalIn and its call, not before a thread's Start. */
static inline int stem_interrupted(const struct stem_thread* t) { return t->signal_ready && !t->busy && stem_signals_deliver; }

/* --- a small lock: a futex, spinning never, because serialised threads share one CPU ------------------------------------- */
struct stem_lock {
  uint32_t word; /* 0 free, 1 held, 2 held and somebody waits */
};
void stem_lock(struct stem_lock* lock);
void stem_unlock(struct stem_lock* lock);
int stem_try_lock(struct stem_lock* lock);

/* --- init.c, collect.c, stream.c, plan.c, module.c ------------------------------------------------------------------------- */
void stem_plan_open(char** envp);
const char* stem_environment(const char* name);
void stem_begin(struct stem_thread* self);           /* this process begins to record (again, in a forked child) */
void stem_recording_open(void);                      /* memfd and collector */
void stem_recording_drop(void);                      /* in a forked child: the parent's stream is not ours */
void stem_recording_forget(void);
void stem_end_init(void);
void stem_access_freeze(void);                       /* memory.c: the end of a parallel recording */
void stem_end_forget(void);
extern int stem_is_forked; /* the trace begins in the middle of the program */
extern uint32_t stem_owner_pid;                      /* the process that this state belongs to (a vfork child shares it) */
void stem_fault_init(void);
void stem_fork_init(void);
void stem_stream_open(struct stem_thread* self);     /* parallel recording: the thread's stream */
void stem_stream_close(struct stem_thread* self);
void stem_stream_finish(int wait);                   /* hand over the rest; wait: until the trace is complete */
void stem_modules_announce(struct stem_thread* self);
extern char** stem_argv;
extern char** stem_envp;
extern uint32_t stem_producer_pid;
extern uint32_t stem_collector_wait;                 /* the holder of the token waits for the collector: not asleep elsewhere */
uint64_t stem_ticket(void);                          /* parallel recording: the next place in the total order */

/* --- threads.c --------------------------------------------------------------------------------------------------------------- */
#define STEM_MAX_THREADS 65536
extern struct stem_thread** stem_live;             /* threads that have not ended, in no particular order */
extern uint32_t stem_live_count;
struct stem_thread* stem_thread_new(struct stem_thread* parent, const char* path);
void stem_thread_drop(struct stem_thread* t);        /* the last one made; pthread_create failed */
void stem_threads_reset(struct stem_thread* self);   /* in a forked child: self becomes the main thread */
void stem_thread_define(struct stem_thread* self, struct stem_thread* t); /* its Thread record */
void stem_threads_init(void);
int stem_join(pthread_t thread, void** result, int how, uint64_t deadline, const void* site); /* how: 0 as pthread_join */
int stem_create(pthread_t* out, const pthread_attr_t* attr, void* (*start)(void*), void* argument, int c11, const void* site);
void stem_shadow_free(struct stem_thread* self);
void stem_fault_thread(struct stem_thread* self);    /* its own signal stack */
void stem_fault_thread_end(struct stem_thread* self);
void stem_main_thread(struct stem_thread* self);
void __stem_stop_here(void);
void stem_pin_forget(void);                          /* in a forked child */
void stem_pin_cpu(void);                             /* affinity.c: from the second thread on */
void stem_unpin_cpu(void);                           /* before another program takes over this thread */
void stem_repin_cpu(void);

/* --- schedule.c, choose.c, guided.c, spin.c, watch.c, report.c ------------------------------------------------------------------ */
struct stem_sched {
  struct stem_lock lock;
  struct stem_thread* holder;    /* of the token; 0: everybody waits for something from outside */
  struct stem_thread* sentinel;  /* the parked thread that watches over the holder */
  uint64_t operations;           /* visible operations so far, without those the countdown still hides */
  int64_t granted;               /* what the countdown was set to */
  uint64_t random;               /* state of the generator */
  uint64_t switch_one_in;
  uint32_t switch_asked;         /* for that mean */
  uint64_t wait_order;
  uint64_t signal_at;            /* replay: call stem_signals_due before this operation; UINT64_MAX: never */
  uint64_t stop_at;              /* call __stem_stop_here before this operation; UINT64_MAX: never */
  uint64_t effects;              /* operations that changed something: spin.c */
  uint32_t outside;              /* threads outside */
  uint32_t detached;             /* threads that the watchdog detached: the countdown stays at 0 while there are any */
  uint32_t over;                 /* stem_finish was called */
  struct stem_thread* writer;    /* whose records the stream holds at its end */
  uint64_t idle_since;           /* real nanoseconds; 0 when somebody holds the token */
};
extern struct stem_sched stem_sched;

void stem_sched_init(void);
int stem_is_enabled(struct stem_thread* t);          /* parked, and its operation could be done now */
struct stem_thread* stem_choose(struct stem_thread* asking); /* among the enabled; 0 if nobody is */
int64_t stem_distance(void);                         /* default mode: operations until the next random switch */
uint64_t stem_random(void);
void stem_pct_init(void);
void stem_pct_thread(struct stem_thread* t);
int64_t stem_pct_distance(void);
void stem_leave(struct stem_thread* self);           /* the thread ends: the token goes on */
void stem_enables(void);                             /* an operation may have enabled somebody: pct looks again */
void stem_arrive(struct stem_thread* self);          /* wait for the token without an operation (re-attaching) */

enum stem_guided_answer { STEM_GUIDED_GRANT, STEM_GUIDED_WAIT, STEM_GUIDED_OVER };
void stem_guided_init(void);
void stem_guided_used(int64_t operations);           /* by the current step's thread */
enum stem_guided_answer stem_guided_choose(struct stem_thread** next, int64_t* countdown);
void stem_guided_give_up(const char* why);
extern uint32_t stem_guided_wakes;                   /* 1 + thread that the signal about to be sent must wake; 0: the oldest */
extern int stem_diverged;
uint32_t stem_plan_thread(const char* path);         /* its index in the plan, or UINT32_MAX */

void stem_spin_scan(void);                           /* reads the records since the last scan; before a chunk goes */
void stem_spin_ask(struct stem_thread* self);        /* at a question of a thread: is it going round in circles? */
int stem_spinning(struct stem_thread* t);
int64_t stem_spin_distance(struct stem_thread* t);
int stem_spin_hopeless(struct stem_thread* t);       /* and its state has come back unchanged, often */
void stem_spin_reset(void);                          /* the cursor moved to another chunk */

void stem_watch(struct stem_thread* self);           /* by a parked thread, from time to time */
void stem_pass_token(struct stem_thread* asking);    /* with the lock, and no holder: to whoever is chosen */
void stem_account(void);                             /* with the lock: count what the countdown hid */

void stem_report_stuck(struct stem_thread* self, const char* kind) __attribute__((noreturn)); /* deadlock, livelock: ends the run */
void stem_text_threads(struct stem_text* text);      /* "threads":[...] */
const char* stem_kind_text(unsigned kind);
struct stem_thread* stem_holder_of(struct stem_thread* waiting);  /* who holds what it waits for, or 0 */
uint64_t stem_real_nanoseconds(void);
int stem_can_lock_mutex(struct stem_thread* t, uintptr_t mutex);
int stem_futex_free(struct stem_thread* t, uintptr_t mutex);
struct stem_thread* stem_futex_holder(uint64_t mutex);
void stem_mutex_owner_ends(struct stem_thread* self);
int stem_mutex_owner(const void* mutex);             /* thread id of the kernel, 0 if nobody */
int stem_rwlock_writer(const void* rwlock);
struct stem_thread* stem_atomic_owner(void);
void stem_new_thread_is_there(void);

#endif
