/* Randomness. The C library's generators stay what they are, so a program with a fixed seed computes what it always did; what
 * they gave is recorded and fed back, because which thread gets which number is otherwise up to the schedule. */
#include "tracer/runtime/lib.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* A generator without arguments: a number comes back. */
#define NUMBER(name, type)                                                                        \
  static int64_t ask_##name(void* context, void* bytes) { return (int64_t)STEM_REAL(name)(); }    \
  STEM_EXPORT type name(void) {                                                                   \
    struct lib_call call = lib_enter(name);                                                       \
    type result = (type)lib_ask(&call, #name, 0, 0, ask_##name, 0);                               \
    lib_leave(name, 0);                                                                           \
    return result;                                                                                \
  }
NUMBER(rand, int)
NUMBER(random, long)
NUMBER(lrand48, long)
NUMBER(mrand48, long)

uint32_t arc4random(void);
uint32_t arc4random_uniform(uint32_t);
void arc4random_buf(void*, size_t);
NUMBER(arc4random, uint32_t)

static int64_t ask_uniform(void* context, void* bytes) { return STEM_REAL(arc4random_uniform)(*(uint32_t*)context); }

STEM_EXPORT uint32_t arc4random_uniform(uint32_t bound) {
  struct lib_call call = lib_enter(arc4random_uniform);
  LIB_PIN32(call, 0, bound);
  uint32_t result = (uint32_t)lib_ask(&call, "arc4random_uniform", 0, 0, ask_uniform, &bound);
  lib_leave(arc4random_uniform, 0);
  return result;
}

static int64_t ask_drand48(void* context, void* bytes) {
  *(double*)bytes = STEM_REAL(drand48)();
  return 0;
}

STEM_EXPORT double drand48(void) {
  struct lib_call call = lib_enter(drand48);
  double result = 0;
  lib_ask(&call, "drand48", &result, sizeof result, ask_drand48, 0);
  lib_leave(drand48, 0);
  return result;
}

/* A seed decides what follows: it is what it was. */
STEM_EXPORT void srand(unsigned seed) {
  struct lib_call call = lib_enter(srand);
  LIB_PIN32(call, 0, seed);
  STEM_REAL(srand)(seed);
}

STEM_EXPORT void srandom(unsigned seed) {
  struct lib_call call = lib_enter(srandom);
  LIB_PIN32(call, 0, seed);
  STEM_REAL(srandom)(seed);
}

/* Nothing of the outside here: a function of the program's own memory. */
STEM_EXPORT int rand_r(unsigned* seed) {
  struct lib_call call = lib_enter(rand_r);
  LIB_PIN(call, 0, seed);
  if (!lib_live() || !call.site) return STEM_REAL(rand_r)(seed);
  unsigned state;
  lib_read(&state, seed, sizeof state, call.site);
  int result = STEM_REAL(rand_r)(&state);
  lib_write(seed, &state, sizeof state, call.site);
  lib_leave(rand_r, 0);
  return result;
}

/* --- bytes ------------------------------------------------------------------------------------------------------------------ */

struct bytes_question {
  size_t n;
  unsigned flags;
};

static int64_t ask_getrandom(void* context, void* bytes) {
  struct bytes_question* q = context;
  return STEM_REAL(getrandom)(bytes, q->n, q->flags);
}

static int64_t ask_getentropy(void* context, void* bytes) {
  return STEM_REAL(getentropy)(bytes, ((struct bytes_question*)context)->n);
}

static int64_t ask_arc4random_buf(void* context, void* bytes) {
  STEM_REAL(arc4random_buf)(bytes, ((struct bytes_question*)context)->n);
  return 0;
}

static int64_t fill(struct lib_call* call, const char* what, void* to, struct bytes_question q, lib_world world) {
  char small[256];
  char* bytes = q.n <= sizeof small ? small : stem_pages(q.n);
  memset(bytes, 0, q.n <= sizeof small ? sizeof small : 0);
  int64_t result = lib_ask(call, what, bytes, q.n, world, &q);
  if (result >= 0) lib_give(call, to, bytes, result > 0 ? (size_t)result : q.n);
  int error = errno;
  if (bytes != small) stem_pages_free(bytes, q.n);
  errno = error;
  return result;
}

STEM_EXPORT ssize_t getrandom(void* to, size_t n, unsigned flags) {
  struct lib_call call = lib_enter(getrandom);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n), LIB_PIN32(call, 2, flags);
  if (!lib_live() || !n) return STEM_REAL(getrandom)(to, n, flags);
  ssize_t result = (ssize_t)fill(&call, "getrandom", to, (struct bytes_question){n, flags}, ask_getrandom);
  lib_leave(getrandom, 0);
  return result;
}

STEM_EXPORT int getentropy(void* to, size_t n) {
  struct lib_call call = lib_enter(getentropy);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n);
  if (!lib_live() || !n) return STEM_REAL(getentropy)(to, n);
  int result = (int)fill(&call, "getentropy", to, (struct bytes_question){n, 0}, ask_getentropy);
  lib_leave(getentropy, 0);
  return result;
}

STEM_EXPORT void arc4random_buf(void* to, size_t n) {
  struct lib_call call = lib_enter(arc4random_buf);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, n);
  if (!lib_live() || !n)
    STEM_REAL(arc4random_buf)(to, n);
  else
    fill(&call, "arc4random_buf", to, (struct bytes_question){n, 0}, ask_arc4random_buf);
}

/* --- std::random_device: libstdc++ may use the processor's own generator, so its function is interposed ------------------------ */

unsigned _ZNSt13random_device9_M_getvalEv(void* device);

static int64_t ask_device(void* context, void* bytes) { return STEM_REAL(_ZNSt13random_device9_M_getvalEv)(context); }

STEM_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void* device) {
  struct lib_call call = lib_enter(_ZNSt13random_device9_M_getvalEv);
  unsigned result = (unsigned)lib_ask(&call, "random_device", 0, 0, ask_device, device);
  lib_leave(_ZNSt13random_device9_M_getvalEv, 0);
  return result;
}
