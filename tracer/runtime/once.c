/* pthread_once, call_once, the guards of C++'s local statics, and the atomic sections of verification benchmarks.
 *
 * The initialiser runs between OnceBegin and OnceEnd; others wait for its end. An exception or a cancellation that leaves the
 * initialiser leaves it undone, for the next to try. */
#include "tracer/runtime/sync.h"

#include "tracer/runtime/access.h"

enum { NOT_RUN = 0, RUNNING = 1, DONE = 2 }; /* DONE is glibc's own value: a once_t that it finished is done for us */

static int can_enter(struct stem_thread* t, uintptr_t once) {
  (void)t;
  return (__atomic_load_n((const int*)once, __ATOMIC_ACQUIRE) & 3) != RUNNING;
}

struct undo {
  int* once;
  const void* site;
};

static void undone(struct undo* undo) {
  if (!undo->once) return;
  struct stem_thread* self = stem_self();
  stem_visible(self, STEM_KIND_OnceEnd, undo->once, undo->site, 0, 0, 0);
  __atomic_store_n(undo->once, NOT_RUN, __ATOMIC_RELEASE);
  stem_event(self, STEM_KIND_OnceEnd, STEM_FLAG_TRY, undo->once, 0, 0, undo->site); /* tried, not done */
  stem_done(self);
}

STEM_EXPORT int pthread_once(pthread_once_t* once, void (*initialise)(void)) {
  if (!stem_active()) return STEM_REAL(pthread_once)(once, initialise);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  int* state = (int*)once;
  /* Libraries that we do not see look here all the time (the unwinder at every throw): no news in that. */
  if (!site && (__atomic_load_n(state, __ATOMIC_ACQUIRE) & DONE)) return 0;
  stem_visible(self, STEM_KIND_OnceBegin, once, site, can_enter, (uintptr_t)once, 0);
  if (__atomic_load_n(state, __ATOMIC_ACQUIRE) & DONE) {
    stem_event(self, STEM_KIND_OncePass, 0, once, 0, 0, site);
    stem_done(self);
    return 0;
  }
  __atomic_store_n(state, RUNNING, __ATOMIC_RELEASE);
  stem_event(self, STEM_KIND_OnceBegin, 0, once, 0, 0, site);
  stem_done(self);
  __attribute__((cleanup(undone))) struct undo undo = {state, site};
  initialise();
  undo.once = 0;
  stem_visible(self, STEM_KIND_OnceEnd, once, site, 0, 0, 0);
  __atomic_store_n(state, DONE, __ATOMIC_RELEASE);
  stem_event(self, STEM_KIND_OnceEnd, 0, once, 0, 0, site);
  stem_enables();
  stem_done(self);
  return 0;
}

/* --- local statics of C++. The guard's first byte says done (compiled code looks at it first, without us: so its setting is a
 *     write event as well), the second that somebody is at it. ----------------------------------------------------------------------- */

static int can_guard(struct stem_thread* t, uintptr_t guard) {
  (void)t;
  const volatile uint8_t* g = (const volatile uint8_t*)guard;
  return g[0] || !g[1];
}

extern int __cxa_guard_acquire(uint64_t* guard);
extern void __cxa_guard_release(uint64_t* guard);
extern void __cxa_guard_abort(uint64_t* guard);

/* Nothing recorded: a program in C++ brings the real ones; they are found once. */
STEM_EXPORT int __cxa_guard_acquire(uint64_t* guard) {
  if (!stem_active()) return STEM_REAL(__cxa_guard_acquire)(guard);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  volatile uint8_t* g = (volatile uint8_t*)guard;
  stem_visible(self, STEM_KIND_OnceBegin, guard, site, can_guard, (uintptr_t)guard, 0);
  int done = g[0];
  if (!done) g[1] = 1;
  stem_event(self, done ? STEM_KIND_OncePass : STEM_KIND_OnceBegin, 0, guard, 0, 0, site);
  stem_done(self);
  return !done;
}

static void guard_end(uint64_t* guard, int done) {
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  volatile uint8_t* g = (volatile uint8_t*)guard;
  if (done) {
    stem_access_begin(self, STEM_KIND_Write, guard, 1, site);
    g[0] = 1;
    stem_append(self, stem_head(STEM_KIND_Write, 1 | STEM_AUX_ATOMIC, (uint64_t)(uintptr_t)guard), 1, 0, stem_site_id(site));
    stem_access_end(self, guard, 1);
  }
  stem_visible(self, STEM_KIND_OnceEnd, guard, site, 0, 0, 0);
  g[1] = 0;
  stem_event(self, STEM_KIND_OnceEnd, done ? 0 : STEM_FLAG_TRY, guard, 0, 0, site);
  stem_enables();
  stem_done(self);
}

STEM_EXPORT void __cxa_guard_release(uint64_t* guard) {
  if (!stem_active()) return STEM_REAL(__cxa_guard_release)(guard);
  guard_end(guard, 1);
}

STEM_EXPORT void __cxa_guard_abort(uint64_t* guard) {
  if (!stem_active()) return STEM_REAL(__cxa_guard_abort)(guard);
  guard_end(guard, 0);
}

/* --- __VERIFIER_atomic_begin and _end: one global lock, which nests ------------------------------------------------------------------- */

static struct stem_thread* atomic_owner;
static uint32_t atomic_depth;
static pthread_mutex_t atomic_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* when nothing is recorded */

struct stem_thread* stem_atomic_owner(void) { return atomic_owner; }

static int can_begin(struct stem_thread* t, uintptr_t arg) {
  (void)arg;
  return !atomic_owner || atomic_owner == t;
}

STEM_EXPORT __attribute__((weak)) void __VERIFIER_atomic_begin(void) {
  if (!stem_active()) {
    STEM_REAL(pthread_mutex_lock)(&atomic_mutex);
    return;
  }
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_AtomicBegin, 0, site, can_begin, 0, 0);
  atomic_owner = self;
  stem_event(self, atomic_depth++ ? STEM_KIND_Yield : STEM_KIND_AtomicBegin, 0, 0, 0, 0, site); /* the outermost section counts */
  stem_done(self);
}

STEM_EXPORT __attribute__((weak)) void __VERIFIER_atomic_end(void) {
  if (!stem_active()) {
    STEM_REAL(pthread_mutex_unlock)(&atomic_mutex);
    return;
  }
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_AtomicEnd, 0, site, 0, 0, 0);
  int ends = atomic_owner == self && --atomic_depth == 0;
  if (ends) atomic_owner = 0;
  stem_event(self, ends ? STEM_KIND_AtomicEnd : STEM_KIND_Yield, 0, 0, 0, 0, site);
  stem_enables();
  stem_done(self);
}
