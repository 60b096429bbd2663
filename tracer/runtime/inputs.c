/* Inputs: values that a run may be given otherwise. <stem.h>, and the names that KLEE and SV-COMP programs use.
 *
 * An input's value is, first, what the plan gives for its name (several of one name: in order); else what the program's memory
 * holds there (stem_input); else 0 (nondet). 0 and not a random number, because `while (nondet())` then ends and a run without
 * a plan is the same every time; with the option inputs=random it is a number made from seed, name and ordinal.
 * A nondet's name is its function's, after the thread's path for all but the main thread: which value it gets does not depend on
 * the order of threads.
 *
 * The names of others are weak: a program that brings its own reach_error or __VERIFIER_nondet_int keeps it. */
#include "tracer/runtime/inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/runtime/sys.h"

#define WEAK STEM_EXPORT __attribute__((weak))

/* --- values ------------------------------------------------------------------------------------------------------------------ */

#define NAMES 4096

static struct name {
  uint64_t hash;
  uint32_t used;
} names[NAMES]; /* open addressing; when it is full, an input gets no value from the plan */
static uint64_t inputs;

static uint64_t hash_of(const char* s) {
  uint64_t h = 0xcbf29ce484222325ull;
  while (*s) h = (h ^ (uint8_t)*s++) * 0x100000001b3ull;
  return h ? h : 1;
}

/* How often that name was asked for before, counted. */
static uint32_t ordinal(uint64_t hash) {
  for (unsigned probe = 0; probe < NAMES; probe++) {
    struct name* n = &names[(hash + probe) % NAMES];
    uint64_t empty = 0;
    if (__atomic_load_n(&n->hash, __ATOMIC_RELAXED) == hash ||
        __atomic_compare_exchange_n(&n->hash, &empty, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || empty == hash)
      return __atomic_fetch_add(&n->used, 1, __ATOMIC_RELAXED);
  }
  return UINT32_MAX;
}

bool lib_planned(const char* name, uint32_t nth, const uint8_t** bytes, size_t* size) {
  size_t length = strlen(name);
  for (const struct stem_plan_item* item = 0; (item = stem_plan_next(STEM_PLAN_INPUT, item));) {
    const char* text = stem_plan_bytes(item);
    if (item->size <= length || memcmp(text, name, length) != 0 || text[length]) continue;
    if (nth--) continue;
    *bytes = (const uint8_t*)text + length + 1;
    *size = item->size - length - 1;
    return true;
  }
  return false;
}

static uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static bool random_inputs(uint64_t* seed) {
  static int known;
  static uint64_t number;
  if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
    const char* how = stem_option("inputs");
    number = stem_option_number("seed", 1);
    __atomic_store_n(&known, how && strcmp(how, "random") == 0 ? 2 : 1, __ATOMIC_RELEASE);
  }
  *seed = number;
  return known == 2;
}

/* Overwrites the default in `bytes` with what this run is given. */
static void decide(const char* name, uint8_t* bytes, size_t size) {
  uint64_t hash = hash_of(name), seed;
  uint32_t nth = ordinal(hash);
  const uint8_t* given;
  size_t length;
  if (lib_planned(name, nth, &given, &length)) {
    size_t n = length < size ? length : size;
    memcpy(bytes, given, n);
    memset(bytes + n, 0, size - n);
  } else if (random_inputs(&seed)) {
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)scramble(seed ^ scramble(hash + nth) ^ i);
  }
}

uint32_t lib_input_event(const char* name, const void* bytes, size_t size, const void* site) {
  struct stem_thread* self = stem_self();
  uint32_t index = (uint32_t)__atomic_fetch_add(&inputs, 1, __ATOMIC_RELAXED);
  stem_event(self, STEM_KIND_Input, 0, 0, index, 0, site);
  stem_blob(self, STEM_BLOB_INPUT_NAME, name, strlen(name));
  stem_blob(self, STEM_BLOB_INPUT_BYTES, bytes, size);
  return index;
}

void lib_input_write(uint32_t index, uint32_t offset, void* to, const void* bytes, size_t size, const void* site) {
  for (size_t i = 0; i < size;) {
    struct lib_chunk chunk = {0, 0, lib_piece(size - i)};
    memcpy(&chunk.value, (const char*)bytes + i, chunk.size);
    chunk.id = stem_expr_input(stem_self(), index, offset + (uint32_t)i, 8 * chunk.size);
    lib_store((char*)to + i, chunk, site);
    i += chunk.size;
  }
}

/* --- memory -------------------------------------------------------------------------------------------------------------------- */

static void make_input(void* to, size_t size, const char* name, const void* site) {
  if (!lib_live() || !size) return;
  if (!name) name = "unnamed";
  uint8_t small[256];
  uint8_t* bytes = size <= sizeof small ? small : stem_pages(size);
  memcpy(bytes, to, size);
  decide(name, bytes, size);
  lib_input_write(lib_input_event(name, bytes, size, site), 0, to, bytes, size, site);
  if (bytes != small) stem_pages_free(bytes, size);
}

STEM_EXPORT void stem_input(void* to, size_t size, const char* name) {
  struct lib_call call = lib_enter(stem_input);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, size);
  make_input(to, size, name, call.site);
}

WEAK void klee_make_symbolic(void* to, size_t size, const char* name) {
  struct lib_call call = lib_enter(klee_make_symbolic);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, size);
  make_input(to, size, name, call.site);
}

WEAK void __VERIFIER_nondet_memory(void* to, size_t size) {
  struct lib_call call = lib_enter(__VERIFIER_nondet_memory);
  LIB_PIN(call, 0, to), LIB_PIN(call, 1, size);
  make_input(to, size, "__VERIFIER_nondet_memory", call.site);
}

/* --- numbers ------------------------------------------------------------------------------------------------------------------- */

/* An input of at most 8 bytes; a nondet (`of_thread`) is named after the thread too. */
static struct lib_value input(const char* name, unsigned size, uint64_t otherwise, bool of_thread, const void* site) {
  struct lib_value v = {otherwise, 0, 8 * size};
  if (!lib_live()) return v;
  char full[STEM_MAX_PATH + 64];
  struct stem_text text = {full, full + sizeof full};
  struct stem_thread* self = stem_self();
  if (of_thread && self->index != 0) {
    stem_text_add(&text, self->path);
    stem_text_add(&text, ":");
    stem_text_add(&text, name);
    name = full;
  }
  decide(name, (uint8_t*)&v.value, size);
  v.id = stem_expr_input(self, lib_input_event(name, &v.value, size, site), 0, v.width);
  return v;
}

static struct lib_value one_bit(struct lib_value v) {
  v = lib_narrow(v, 1);
  return v;
}

#define STEM_NUMBER(linkage, name, type, size)                                    \
  linkage type name(const char* input_name) {                                        \
    struct lib_call call = lib_enter(name);                                       \
    struct lib_value v = input(input_name, size, 0, false, call.site);               \
    lib_leave(name, v.id);                                                        \
    return (type)v.value;                                                         \
  }
STEM_NUMBER(STEM_EXPORT, stem_input_int, int, 4)
STEM_NUMBER(STEM_EXPORT, stem_input_uint, unsigned, 4)
STEM_NUMBER(STEM_EXPORT, stem_input_long, long, 8)
STEM_NUMBER(STEM_EXPORT, stem_input_ulong, unsigned long, 8)
STEM_NUMBER(STEM_EXPORT, stem_input_char, char, 1)
STEM_NUMBER(WEAK, klee_int, int, 4)

STEM_EXPORT int stem_input_bool(const char* name) {
  struct lib_call call = lib_enter(stem_input_bool);
  struct lib_value v = lib_widen(one_bit(input(name, 1, 0, false, call.site)), 32);
  lib_leave(stem_input_bool, v.id);
  return (int)v.value;
}

WEAK int klee_range(int begin, int end, const char* name) {
  struct lib_call call = lib_enter(klee_range);
  LIB_PIN32(call, 0, begin), LIB_PIN32(call, 1, end);
  struct lib_value v = input(name, 4, (uint32_t)begin, false, call.site);
  if (lib_live() && ((int)v.value < begin || (int)v.value >= end)) { /* given outside of the range */
    lib_hold(v, call.site);
    v = lib_constant((uint32_t)begin, 32);
  }
  lib_hold(lib_op(STEM_OP_Sle, lib_constant((uint32_t)begin, 32), v), call.site);
  lib_hold(lib_op(STEM_OP_Slt, v, lib_constant((uint32_t)end, 32)), call.site);
  lib_leave(klee_range, v.id);
  return (int)v.value;
}

#define NONDET(suffix, type)                                                              \
  WEAK type __VERIFIER_nondet_##suffix(void) {                                            \
    struct lib_call call = lib_enter(__VERIFIER_nondet_##suffix);                         \
    struct lib_value v = input("__VERIFIER_nondet_" #suffix, sizeof(type), 0, true, call.site);         \
    lib_leave(__VERIFIER_nondet_##suffix, v.id);                                          \
    return (type)v.value;                                                                 \
  }
NONDET(char, char)
NONDET(uchar, unsigned char)
NONDET(short, short)
NONDET(ushort, unsigned short)
NONDET(int, int)
NONDET(uint, unsigned)
NONDET(unsigned, unsigned)
NONDET(u32, uint32_t)
NONDET(long, long)
NONDET(ulong, unsigned long)
NONDET(longlong, long long)
NONDET(ulonglong, unsigned long long)
NONDET(size_t, size_t)
NONDET(loff_t, int64_t)
NONDET(pointer, void*)
NONDET(pchar, char*)

#define NONDET_BOOL(suffix)                                                               \
  WEAK _Bool __VERIFIER_nondet_##suffix(void) {                                           \
    struct lib_call call = lib_enter(__VERIFIER_nondet_##suffix);                         \
    struct lib_value v = one_bit(input("__VERIFIER_nondet_" #suffix, 1, 0, true, call.site));           \
    lib_leave(__VERIFIER_nondet_##suffix, v.id);                                          \
    return (_Bool)v.value;                                                                \
  }
NONDET_BOOL(bool)
NONDET_BOOL(_Bool)

/* Floating point is not modelled: what it was is held. */
#define NONDET_FLOAT(suffix)                                                              \
  WEAK suffix __VERIFIER_nondet_##suffix(void) {                                          \
    struct lib_call call = lib_enter(__VERIFIER_nondet_##suffix);                         \
    struct lib_value v = input("__VERIFIER_nondet_" #suffix, sizeof(suffix), 0, true, call.site);       \
    lib_hold(v, call.site);                                                               \
    lib_leave(__VERIFIER_nondet_##suffix, 0);                                             \
    suffix result;                                                                        \
    memcpy(&result, &v.value, sizeof result);                                             \
    return result;                                                                        \
  }
NONDET_FLOAT(float)
NONDET_FLOAT(double)

/* --- assumptions and assertions --------------------------------------------------------------------------------------------------- */

static struct lib_value truth(const struct lib_call* call, uint64_t value, unsigned width) {
  return lib_op(STEM_OP_Ne, (struct lib_value){value, call->id[0], width}, lib_constant(0, width));
}

/* One that holds binds what follows. One that does not is recorded as a branch, so that an exploration can look for inputs
 * and schedules that make it hold, and ends the run. */
static void assume(const struct lib_call* call, uint64_t value, unsigned width) {
  if (!lib_live()) {
    if (!value) _exit(0);
    return;
  }
  struct lib_value holds = truth(call, value, width);
  if (holds.value) {
    lib_hold(holds, call->site);
    return;
  }
  lib_branch(holds, call->site);
  stem_note("an assumption of the program does not hold: the run ended there");
  stem_finish(STEM_EXITED, 0);
  stem_sys(SYS_exit_group, 0, 0, 0);
}

STEM_EXPORT void stem_assume(int condition) {
  struct lib_call call = lib_enter(stem_assume);
  assume(&call, (uint32_t)condition, 32);
}

WEAK void klee_assume(uintptr_t condition) {
  struct lib_call call = lib_enter(klee_assume);
  assume(&call, condition, 64);
}

WEAK void __VERIFIER_assume(int condition) {
  struct lib_call call = lib_enter(__VERIFIER_assume);
  assume(&call, (uint32_t)condition, 32);
}

static void say(const char* what) {
  stem_sys(SYS_write, 2, "stem: ", 6);
  stem_sys(SYS_write, 2, what, strlen(what));
  stem_sys(SYS_write, 2, "\n", 1);
}

static void failed(const char* what) __attribute__((noreturn));
static void failed(const char* what) {
  say(what);
  if (lib_live()) stem_finish(STEM_ASSERT_FAILED, SIGABRT);
  abort();
}

static void check(const struct lib_call* call, int condition, const char* what) {
  if (lib_live()) {
    struct lib_value holds = truth(call, (uint32_t)condition, 32);
    __stem_assert(holds.id, holds.value, (void*)call->site);
  }
  if (!condition) failed(what);
}

STEM_EXPORT void stem_assert(int condition) {
  struct lib_call call = lib_enter(stem_assert);
  check(&call, condition, "stem_assert: the condition does not hold");
}

WEAK void __VERIFIER_assert(int condition) {
  struct lib_call call = lib_enter(__VERIFIER_assert);
  check(&call, condition, "__VERIFIER_assert: the condition does not hold");
}

#define REACHED(name)                                                 \
  WEAK void name(void) {                                              \
    struct lib_call call = lib_enter(name);                           \
    for (int i = 0; i < STEM_MAX_ARGS; i++) call.id[i] = 0;           \
    check(&call, 0, #name " was reached");                            \
  }
REACHED(reach_error)
REACHED(__VERIFIER_error)
REACHED(klee_assert_fail)
