/* What recorders of unmodified binaries share: the stream of records, the scheduler, the rule that pins reads, the
 * model of pthread calls. The Valgrind tool and the Pin tool are thin around it: they see instructions and calls, and
 * tell.
 *
 * Ground rules. C without any library and without thread-local storage; every function is called by the thread that
 * runs, under the host's one lock, so nothing here is concurrent. A thread that has to wait calls stem_host_block(),
 * which gives that lock up. Threads run one at a time: `bin.holder` has the token, everybody else is parked at what it
 * is about to do (`pending`), outside in a system call, or ended. A switch happens just before a visible operation and
 * nowhere else.
 *
 * A site is the address of an instruction (of a call: of its last byte). */
#ifndef STEM_TRACER_BINARY_ENGINE_H
#define STEM_TRACER_BINARY_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/plan.h"
#include "trace/raw.h"

/* trace::Flag */
enum {
  BIN_ATOMIC = 1 << 0,
  BIN_TRY = 1 << 1,
  BIN_TIMED = 1 << 2,
  BIN_TIMEOUT = 1 << 3,
  BIN_SPURIOUS = 1 << 4,
  BIN_STACK = 1 << 5,
  BIN_ZEROED = 1 << 6,
  BIN_SERIAL = 1 << 7,
  BIN_SPIN = 1 << 10,
};
enum bin_outcome { BIN_EXITED = 0, BIN_DEADLOCK = 2 }; /* trace::Outcome */
enum bin_mode { BIN_DEFAULT, BIN_RANDOM, BIN_PCT, BIN_GUIDED };
enum bin_state { BIN_RUNNING, BIN_PARKED, BIN_OUTSIDE, BIN_ENDED, BIN_UNBORN /* its Create is yet to come */ };

#define BIN_MAX_THREADS 4096
#define BIN_MAX_PATH 256
#define BIN_MAX_UNPINNED 64

struct bin_thread;
typedef int (*bin_enabled)(struct bin_thread* t, uint64_t arg); /* pure */

struct bin_pending {
  bin_enabled enabled; /* 0: always */
  uint64_t arg, addr, site;
  uint64_t deadline; /* stem_host_now(); 0: none */
  uint8_t kind;
  uint8_t arriving; /* no operation yet: it only wants the token back */
};

struct bin_thread {
  uint32_t go; /* futex: 1 when it may run */
  uint32_t index, parent, state;
  int host;        /* the host's number of it */
  int tid;         /* the kernel's */
  uint64_t handle; /* pthread_t */
  uint32_t timed_out, detached, joined, children, plan_index, defined;
  uint32_t creating, joining; /* inside pthread_create; inside the real call for a thread or a child that has ended */
  uint32_t ending;            /* it has left its code; its End may yet have to be granted */
  uint32_t cancelled, cancel_wanted, cancel_disabled,
      cancel_async; /* cancelled: it may run for that at a cancellation point */
  uint32_t yields;  /* one after the other, while nobody else could run */
  struct bin_pending pending;
  uint64_t granted_at, priority;
  /* condition variables and barriers */
  uint64_t waiting_on, wait_order, generation;
  uint32_t woken_by;
  uint64_t futex_mutex; /* held between its system call's looking and sleeping, or while it wakes (futex.c) */
  /* expressions: reads that nothing has pinned yet, oldest first; `combined` stands for the first `combined_count` of
   * them */
  uint32_t next_id, combined, combined_count, reserved;
  uint32_t since_branch,
      unpinned_count; /* since_branch: events since the last branch. Looked at together, as one word */
  uint32_t unpinned[BIN_MAX_UNPINNED];
  uint64_t unpinned_value[BIN_MAX_UNPINNED];
  uint32_t flag_reads;                     /* how many of them the processor's flags can depend on */
  struct stem_rec *last_read, *last_event; /* records in the present chunk, or 0 */
  /* its stack (stack.c) */
  uint64_t stack_low, stack_high;
  uint64_t marks[64]; /* what lies above the last one may be known to others */
  uint32_t mark_count;
  uint32_t* writers; /* who wrote each four bytes that are still private */
  uint64_t writer_bytes;
  uint64_t start;                   /* its function */
  const struct stem_plan_item* fed; /* the last answer that it was given (answers.c) */
  uint32_t fed_lost,
      came_back; /* came_back: from a system call that let others run, since it last asked for an answer */
  char path[BIN_MAX_PATH];
};

struct bin {
  struct stem_rec *cursor, *limit; /* of the present chunk; the collector reads the copy in the mapping */
  int64_t countdown;               /* visible operations left before the scheduler is asked */
  struct bin_thread *holder, *writer;
  struct bin_thread* runs; /* the last holder; nobody, who has unpinned reads, before there is one */
  /* Of the holder's stack: what is private now (stack.c), so that translated code need not ask. An access of at most
   * eight bytes at an address less than `private_span` above `private_low` is; who made it goes to `private_writers`
   * minus the address. */
  uint64_t private_low, private_span, private_writers;
  uint64_t private_last; /* private_low + private_span - 1 */
  int on;                /* 1 while operations are scheduled and recorded */
  enum bin_mode mode;
  uint64_t operations;
  int64_t granted;
  uint64_t random, switch_one_in, wait_order;
  int switch_asked; /* the user named switch_one_in */
  uint64_t skipped; /* ns that nobody had to wait for: sleeping is the scheduler's choice */
  uint32_t outside, live_count, thread_count;
  struct bin_thread* live[BIN_MAX_THREADS];
  struct bin_thread* all[BIN_MAX_THREADS];
  uint32_t guided_wakes;
  int forked; /* the trace begins in the middle of the program */
  int diverged;
  struct stem_rec *told_from, *told_to; /* a group was told of between two records of the thread that runs */
};
extern struct bin bin;

/* --- what a host provides
 * ------------------------------------------------------------------------------------------------- */

void stem_host_block(struct bin_thread* self,
                     uint64_t until); /* gives the lock up until self->go, `until` passed (0: never) or 100 ms */
void stem_host_wake(struct bin_thread* t, int blocks); /* blocks: the caller calls stem_host_block next */
void stem_host_exit(int code) __attribute__((noreturn));
void* stem_host_pages(size_t bytes);         /* zeroed, touched only when used */
uint64_t stem_host_now(void);                /* CLOCK_MONOTONIC, ns */
uint64_t stem_host_key(uint64_t site);       /* trace/code_key.h of the module it lies in; 0: none */
void* stem_host_share(int fd, size_t bytes); /* a shared mapping that the program does not see; 0: failed */
int stem_host_hide_fd(int fd);               /* the same file, open until the end, where the program does not look */
const char* stem_host_env(const char* name); /* 0: not set */

/* --- starting (launch.c), the system (system.c)
 * ------------------------------------------------------------------------------ */

typedef const char* (*bin_argument)(int index); /* 0 after the last */
void bin_launch(const char* program);           /* reads the plan, starts the collector; fails for good or returns */
void bin_write_meta(const char* recorder, const char* program, bin_argument argument);
int bin_is_system(const char* path);
struct bin_elf {
  int program;      /* a dynamically linked one for this machine */
  int script;       /* begins with #! */
  int instrumented; /* stem-cc's */
  int symbols, debug;
};
struct bin_elf bin_elf(const char* path); /* of a file (elf.c) */
int bin_is_wanted(
    const char* program);     /* of a process that the recorder runs: is it to be recorded? Asked before bin_launch */
int bin_is_file(uint64_t fd); /* a regular one */
int bin_may_block(uint64_t number, uint64_t first, uint64_t second); /* a system call and its first arguments */

/* --- records (stream.c)
 * ------------------------------------------------------------------------------------------------------ */

int bin_open(void* mapping, uint32_t pid); /* the memory of trace/raw.h */
struct stem_control* bin_control(void);
void bin_next_chunk(void);
void bin_blob(enum stem_blob what, const void* bytes, uint64_t length);
void bin_close(int wait); /* hands everything to the collector */
void bin_forget(void);    /* a forked child: nothing of it goes to its parent's trace */
void bin_module(const char* path, uint64_t bias, uint64_t begin, uint64_t size);
void bin_publish(void); /* the cursor, where the collector looks */
extern struct stem_hot* bin_hot;

static inline struct stem_rec* bin_append(uint64_t head, uint64_t value, uint32_t expr, uint32_t site) {
  if (__builtin_expect(bin.cursor >= bin.limit, 0)) bin_next_chunk();
  struct stem_rec* r = bin.cursor;
  r->head = head;
  r->value = value;
  r->expr = expr;
  r->site = site;
  if (r + 1 < bin.limit) r[1].head = 0; /* no group has begun there (group.c) */
  bin.cursor = r + 1;
  __atomic_store_n(&bin_hot->cursor, r + 1, __ATOMIC_RELEASE);
  return r;
}
void bin_event(struct bin_thread* t, unsigned kind, unsigned flags, uint64_t addr, uint64_t value, uint64_t site);

/* --- the scheduler (schedule.c, guided.c)
 * ------------------------------------------------------------------------------------ */

void bin_init(void);  /* main is there and runs */
void bin_again(void); /* a forked child: as bin_init, and its one thread keeps its stack */
struct bin_thread* bin_thread_new(struct bin_thread* parent);
void bin_thread_undo(struct bin_thread* t); /* the one made last: it was not created after all */
void bin_thread_define(struct bin_thread* t);
struct bin_thread* bin_thread_by_host(int host); /* a live one */
struct bin_thread* bin_thread_by_handle(uint64_t handle);
int bin_ask(struct bin_thread* self, const struct bin_pending* pending);
void bin_outside_begin(struct bin_thread* self);
void bin_outside_end(struct bin_thread* self, int operation);
void bin_start(struct bin_thread* self); /* in the new thread, before its first instruction */
void bin_end(struct bin_thread* self);
void bin_finish(enum bin_outcome outcome, int code);
int bin_skip_to_deadline(void); /* nobody can do anything before: 0 if there is none */
void bin_looked(void);          /* a parked thread's time was up: look whether anybody can run */
uint64_t bin_random(void);
uint64_t bin_now(void); /* what the program's clocks say, CLOCK_MONOTONIC, ns */

/* 0: the operation may be done; 1: its deadline passed first. */
static inline int bin_visible(struct bin_thread* self, unsigned kind, uint64_t addr, uint64_t site, bin_enabled enabled,
                              uint64_t arg, uint64_t deadline) {
  if (__builtin_expect(bin.countdown > 0, 1) && (!enabled || enabled(self, arg))) {
    bin.countdown--;
    return 0;
  }
  struct bin_pending pending = {enabled, arg, addr, site, deadline, (uint8_t)kind, 0};
  return bin_ask(self, &pending);
}

/* One instruction makes several accesses: the others come with the first, nobody can run between them. */
static inline void bin_also_visible(void) { bin.countdown--; }

enum bin_answer { BIN_GRANT, BIN_WAIT, BIN_OVER };
void bin_guided_init(void);
void bin_guided_used(int64_t operations);
enum bin_answer bin_guided_choose(struct bin_thread** next, int64_t* countdown);
void bin_guided_give_up(const char* why);
uint32_t bin_plan_thread(const char* path);
int bin_is_enabled(struct bin_thread* t);

/* --- the plan (plan.c)
 * -------------------------------------------------------------------------------------------------------- */

void bin_plan(const void* bytes, size_t size);
void bin_plan_options_only(void); /* its schedule and answers are another process's */
const struct stem_plan_item* bin_plan_next(enum stem_plan_type type, const struct stem_plan_item* after);
const char* bin_option(const char* key); /* 0: not there */
uint64_t bin_option_number(const char* key, uint64_t otherwise);

/* --- memory (access.c, stack.c)
 * -------------------------------------------------------------------------------------------------- The caller has
 * been granted the operation by bin_visible. */

void bin_read(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t value, uint64_t site, unsigned aux);
void bin_write(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t value, uint64_t site, unsigned aux);
void bin_rmw(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t old, uint64_t now, uint64_t site, int pinned);
void bin_pin_all(struct bin_thread* t, uint64_t site);
static inline void bin_pin(struct bin_thread* t, uint64_t site) {
  if (t->unpinned_count) bin_pin_all(t, site);
}
void bin_branch(struct bin_thread* t, uint64_t site, int taken,
                uint32_t reads); /* only so many unpinned reads, the oldest, have a part in it */
/* In place of library functions; the ranges can be accessed. sp: the stack pointer. */
void bin_read_range(struct bin_thread* t, uint64_t addr, uint64_t size, uint64_t site, uint64_t sp);
void bin_copy(struct bin_thread* t, uint64_t to, uint64_t from, uint64_t size, uint64_t site, uint64_t sp);
void bin_fill(struct bin_thread* t, uint64_t to, unsigned byte, uint64_t size, uint64_t site, uint64_t sp);

/* Whether an access of its own stack is of no concern to others; notes who wrote. sp: the stack pointer. */
int bin_private(struct bin_thread* t, uint64_t addr, unsigned size, int write, uint64_t site, uint64_t sp);
void bin_private_changed(void); /* the holder is another one, or it has other marks */
/* An address of the stack gets into a register or memory: from now on what lies above it may be known to others. */
void bin_escape(struct bin_thread* t, uint64_t addr, uint64_t sp, uint64_t site);
uint64_t stem_host_frame(uint64_t site, uint64_t sp); /* the canonical frame address there, now; 0: unknown */
int stem_host_same_function(uint64_t site, uint64_t other);

void bin_written(struct bin_thread* t, uint64_t addr, uint64_t size, uint64_t site,
                 uint64_t sp); /* a system call did it */

/* --- groups (group.c): which records a stretch of code makes, found out before it runs
 * --------------------------------------------------------------------------------------------------- */

#define BIN_GROUP_ACCESSES 48
#define BIN_GROUP_RECORDS 192
#define BIN_GROUP_MARKS 96
#define BIN_MAX_GROUPS (1u << 20)

struct bin_group_access {
  struct stem_group_access told;
  uint32_t site;
  uint8_t is_free;     /* no earlier read decides its address */
  uint8_t has_address; /* the address is not constant */
  uint8_t is_piece;    /* of the access before it */
};
struct bin_group {
  uint32_t number, size; /* size: of its record, in records */
  uint32_t access_count, records, ids;
  uint32_t has_branch;
  void* told; /* what the collector was told of it */
  uint32_t told_size;
  uint32_t marks;
  struct {
    uint32_t pc, accesses; /* an instruction, and how many accesses come before it */
  } mark[BIN_GROUP_MARKS];
  struct bin_group_access access[BIN_GROUP_ACCESSES];
};
struct bin_group_place {
  uint32_t accesses, records, ids, has_branch;
};
/* One is made at a time. 0: there is no room for more. */
void bin_group_begin(struct bin_group* g);
int bin_group_access(struct bin_group* g, const struct bin_group_access* a);
int bin_group_branch(struct bin_group* g, uint64_t site, int noted);
void bin_group_flags(void);
int bin_group_clean(void); /* all reads so far are pinned: it may end here */
void bin_group_mark(struct bin_group* g, uint64_t pc);
void bin_group_note(struct bin_group* g, struct bin_group_place* p);
const struct bin_group* bin_group_end(struct bin_group* g, const struct bin_group_place* p); /* 0: too many */
void bin_groups_again(void); /* tells all of them to another collector */
/* The instruction at pc has faulted: records what the open group, if there is one, did up to it. `can`: whether an
 * access can be made; *addr: what could not be read. */
void bin_group_cut(struct bin_thread* t, uint64_t pc, int (*can)(uint64_t addr, unsigned size, int write),
                   uint64_t* addr);

/* --- answers of the outside world (answers.c)
 * ----------------------------------------------------------------------------------- */

enum bin_answer_kind {
#define BIN_ANSWER(name, text) BIN_ANSWER_##name,
#include "tracer/binary/answers.def"
};
struct bin_result {
  int64_t value;
  int32_t error;
  uint32_t kind; /* enum bin_answer_kind */
};
/* 1: the replay gives what was recorded. */
int bin_fed(struct bin_thread* t, unsigned kind, void* bytes, uint64_t room, struct bin_result* result, uint64_t site);
void bin_told(struct bin_thread* t, unsigned kind, const void* bytes, uint64_t size, const struct bin_result* result,
              uint64_t site);

/* --- pthread calls (sync.c)
 * ----------------------------------------------------------------------------------------------------- */

enum bin_op {
#define BIN_OP(name) BIN_##name,
#include "tracer/binary/ops.def"
  BIN_OPS
};
/* What a wrapper asks before and after the real call: see ops.def. */
void bin_leave_robust(struct bin_thread* self,
                      uint64_t head); /* a thread is about to end: the kernel's list of its robust mutexes */
uint64_t bin_call(struct bin_thread* self, enum bin_op op, uint64_t object, uint64_t a, uint64_t b, uint64_t site);
int bin_cond_signal(struct bin_thread* self, uint64_t cond, uint64_t site);         /* 1: it woke somebody */
uint64_t bin_cond_broadcast(struct bin_thread* self, uint64_t cond, uint64_t site); /* how many */
uint64_t bin_futex_wait(struct bin_thread* self, uint64_t word, uint32_t expected, uint64_t deadline, uint64_t site);
uint64_t bin_futex_wake(struct bin_thread* self, uint64_t word, uint32_t count, uint64_t site);

/* --- messages (message.c)
 * ---------------------------------------------------------------------------------------------------------- */

struct bin_text {
  char *at, *end;
};
void bin_text_add(struct bin_text* text, const char* s);
void bin_text_number(struct bin_text* text, uint64_t number, unsigned base);
void bin_text_json(struct bin_text* text, const char* s);
void bin_text_threads(struct bin_text* text);
void bin_text_operation(struct bin_text* text, const char* name, unsigned kind_plus_1, uint64_t key);
void bin_message(const char* json);
void bin_note(const char* why);
void bin_deadlock(void) __attribute__((noreturn));

#endif
