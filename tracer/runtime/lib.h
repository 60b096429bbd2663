/* What the library models (libc_*.c, inputs.c, nondet_*.c, signals.c) share: how a call from the program arrives and returns,
 * memory read and written on its behalf, expressions built from it, answers of the outside world.
 *
 * A model touches the program's memory only through lib_load and lib_store (events of at most 8 bytes), never keeps an
 * address or a length that depended on a symbolic value without pinning it, and leaves the id of its result.
 * While the runtime is not recording (before its constructor, after the end, inside itself) every model is its function.
 */
#ifndef STEM_TRACER_RUNTIME_LIB_H
#define STEM_TRACER_RUNTIME_LIB_H

#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/internal.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

/* --- calls ----------------------------------------------------------------------------------------------------------- */

struct lib_call {
  const void* site;           /* 0: not called by instrumented code */
  const uint64_t* frame;      /* of the function called: whom new memory is named after */
  uint32_t id[STEM_MAX_ARGS]; /* expressions of the arguments */
};

/* First thing in a model: takes what the caller left, so that nothing called from here can mistake it for its own. */
static inline __attribute__((always_inline)) struct lib_call lib_enter(const void* self) {
  struct lib_call call = {0};
  call.frame = __builtin_frame_address(0);
  call.site = stem_take_site();
  if (__stem_tls.callee == self)
    for (uint32_t i = 0; i < __stem_tls.arg_count; i++) call.id[i] = __stem_tls.args[i];
  __stem_tls.callee = 0;
  return call;
}

/* Last thing: the id of the result. */
static inline void lib_leave(const void* self, uint32_t id) {
  __stem_tls.result_id = id;
  __stem_tls.returner = self;
}

/* Memory that the model allocated for the program. */
static inline void lib_alloc(const struct lib_call* call, void* address, size_t size) {
  if (!stem_on || !stem_current) return;
  stem_current->alloc_frame = call->frame;
  __stem_alloc(address, size, 0, (void*)call->site);
  stem_current->alloc_frame = 0;
}

/* An argument that the model uses as it is. */
static inline void lib_pin(const struct lib_call* call, int argument, uint64_t value) {
  if (call->id[argument]) stem_pin(stem_self(), call->id[argument], value, call->site);
}
#define LIB_PIN(call, argument, value) lib_pin(&(call), argument, (uint64_t)(uintptr_t)(value))
#define LIB_PIN32(call, argument, value) lib_pin(&(call), argument, (uint32_t)(value))

/* --- memory ------------------------------------------------------------------------------------------------------------ */

/* A piece of memory of 1, 2, 4 or 8 bytes, as it was read. */
struct lib_chunk {
  uint64_t value;
  uint32_t id;   /* 0: concrete */
  uint32_t size; /* bytes */
};

/* The largest piece that is not longer than n. */
static inline unsigned lib_piece(size_t n) { return n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1; }

/* Memory that nobody can write (string literals): reading it is no event. Looked at once, at the start. */
void lib_read_only_init(void);
bool lib_read_only(const void* address);

struct lib_chunk lib_load(const void* from, unsigned size, const void* site);
struct lib_chunk lib_load_pinned(const void* from, unsigned size, const void* site);
void lib_store(void* to, struct lib_chunk chunk, const void* site);

static inline uint8_t lib_at(struct lib_chunk chunk, unsigned index) { return (uint8_t)(chunk.value >> (8 * index)); }

/* Of n bytes: read and pinned into a buffer of the model's; written from one (concrete values). */
void lib_read(void* buffer, const void* from, size_t n, const void* site);
void lib_write(void* to, const void* buffer, size_t n, const void* site);

/* The string at `from`, read piece by piece up to its end or `limit` bytes. Its length is pinned by what was read there. */
size_t lib_length(const char* from, size_t limit, const void* site);

/* A private copy of the string at `from`, all of it pinned; release it with lib_copy_free. */
struct lib_copy {
  char* text; /* terminated */
  size_t length;
  size_t pages;
  char small[256];
};
void lib_copy_string(struct lib_copy* copy, const char* from, size_t limit, const void* site);
void lib_copy_free(struct lib_copy* copy);

/* How many bytes of the string at `from`, at most 8 and at most `limit`, can be read in one piece; looks at memory. */
unsigned lib_string_piece(const char* from, size_t limit);

/* --- expressions -------------------------------------------------------------------------------------------------------- */

/* A value of `width` bits with its expression. Operations fold when both are concrete. */
struct lib_value {
  uint64_t value;
  uint32_t id;
  uint32_t width;
};

struct lib_value lib_constant(uint64_t value, unsigned width);
struct lib_value lib_byte(struct lib_chunk chunk, unsigned index);                    /* 8 bits */
static inline struct lib_value lib_word(struct lib_chunk chunk) {
  return (struct lib_value){chunk.value, chunk.id, 8 * chunk.size};
}
/* a[at] - b[at] as memcmp and strcmp return it, with the equality of each byte up to there held as it is. */
struct lib_value lib_difference(struct lib_chunk a, struct lib_chunk b, unsigned at, const void* site);
struct lib_value lib_widen(struct lib_value v, unsigned width);                       /* zero-extend */
struct lib_value lib_narrow(struct lib_value v, unsigned width);
struct lib_value lib_op(unsigned op, struct lib_value a, struct lib_value b);         /* STEM_OP_...; same widths */
struct lib_value lib_choose(struct lib_value condition, struct lib_value a, struct lib_value b);
struct lib_value lib_lower(struct lib_value character);                               /* 32 bits; ASCII */
struct lib_value lib_upper(struct lib_value character);
void lib_hold(struct lib_value v, const void* site);                                  /* pins it */
void lib_branch(struct lib_value v, const void* site);                                /* the same, as a branch: an exploration
                                                                                         may want it the other way */

/* Holds which byte of the chunk is its first zero (size: none is). */
void lib_hold_end(struct lib_chunk chunk, const void* site);

/* --- answers of the outside world (nondet.c) ------------------------------------------------------------------------------- */

/* struct stem_thread.library, by whom it is used. */
enum {
  LIB_FEED,    /* nondet.c: the last answer of the plan that this thread was given */
  LIB_LOST,    /* nondet.c: it has left the recorded path */
  LIB_BLOCKED, /* nondet.c: the call under way blocked, others ran meanwhile */
  LIB_PENDING, /* signals.c: signals that arrived, bit sig - 1 */
  LIB_INFOS,   /* signals.c: their siginfo_t, by number */
};

/* True where a model has to record and schedule: a recorded process, a thread the runtime knows. */
static inline bool lib_live(void) { return stem_active() && stem_current; }

/* What a call to the outside gave: its result, errno, and bytes that it left in memory. */
struct lib_answer {
  int64_t result;
  int32_t error;
  uint32_t size;
  const void* bytes; /* valid until the plan is unmapped, i.e. always */
};

/* Replay: the thread's next answer, of the kind `what`; errno is set from it. False: there is none, ask the world. An answer
 * of another kind is a divergence: it is reported once and the run goes on with what the world says. */
bool lib_fed(const char* what, const void* site, struct lib_answer* answer);
bool lib_feeding(void); /* the run is a replay with answers at all */

/* Recording (a replay is recorded too): one Nondet event. Keeps errno. */
void lib_record(const char* what, int64_t result, int error, const void* bytes, size_t size, const void* site);

/* Replay: what getpid was said to be; -1 before it was asked. */
pid_t lib_recorded_pid(void);

/* Children: the number that the program was told, and the one that the kernel knows; others are themselves. */
pid_t lib_real_child(pid_t told);
pid_t lib_told_child(pid_t real);

/* Puts bytes into the program's memory: as Write events when instrumented code called. Keeps errno. */
void lib_give(const struct lib_call* call, void* to, const void* bytes, size_t n);

/* The whole of it for a call whose answer is `result` and the n bytes at `bytes`, which `world` asks for; returns the result. */
typedef int64_t (*lib_world)(void* context, void* bytes);
int64_t lib_ask(const struct lib_call* call, const char* what, void* bytes, size_t n, lib_world world, void* context);

#endif
