/* Threads: who they are, and pthread_create to pthread_join.
 *
 * A thread's index is dense and in order of creation; its path (main/1/2: the second child of main's first) does not depend
 * on the schedule. From its creation on a thread is a candidate with a pending Start, whether or not the kernel has run it
 * yet. Its End comes from a destructor of thread-specific data, in the last round that the C library makes, so that the
 * program's own destructors still belong to the thread's life. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

#include "tracer/runtime/access.h"
#include "tracer/runtime/sync.h"
#include "tracer/runtime/sys.h"

static struct stem_thread** all;
uint32_t stem_thread_count;
struct stem_thread** stem_live;
uint32_t stem_live_count;
static pthread_key_t end_key;

struct stem_thread* stem_thread_at(uint32_t index) { return index < stem_thread_count ? all[index] : 0; }

struct stem_thread* stem_thread_by_tid(int tid) {
  for (uint32_t i = 0; tid && i < stem_live_count; i++)
    if (stem_live[i]->tid == tid) return stem_live[i];
  return 0;
}

static void child_path(struct stem_thread* parent, struct stem_thread* t) {
  struct stem_text text = {t->path, t->path + sizeof t->path};
  if (__builtin_strlen(parent->path) + 12 < sizeof t->path) {
    stem_text_add(&text, parent->path);
  } else { /* creation chains of hundreds: keep the path unique by the parent's index */
    stem_text_add(&text, "main/~");
    stem_text_number(&text, parent->index, 10);
  }
  stem_text_add(&text, "/");
  stem_text_number(&text, ++parent->children, 10);
}

struct stem_thread* stem_thread_new(struct stem_thread* parent, const char* path) {
  if (stem_thread_count == STEM_MAX_THREADS) stem_die("more than 65536 threads in one run");
  struct stem_thread* t = stem_pages(sizeof *t);
  t->parent = parent ? parent->index : UINT32_MAX;
  if (path) {
    struct stem_text text = {t->path, t->path + sizeof t->path};
    stem_text_add(&text, path);
  } else {
    child_path(parent, t);
  }
  t->plan_index = stem_plan_thread(t->path);
  t->chunk = UINT32_MAX;
  t->state = STEM_THREAD_NEW;
  t->index = stem_thread_count;
  all[stem_thread_count++] = t;
  stem_live[stem_live_count++] = t;
  if (stem_mode == STEM_MODE_PCT) stem_pct_thread(t);
  return t;
}

void stem_thread_drop(struct stem_thread* t) {
  stem_thread_at(t->parent)->children--;
  stem_thread_count--;
  for (uint32_t i = 0; i < stem_live_count; i++)
    if (stem_live[i] == t) stem_live[i] = stem_live[--stem_live_count];
  stem_pages_free(t, sizeof *t);
}

void stem_threads_reset(struct stem_thread* self) {
  stem_thread_count = stem_live_count = 1;
  all[0] = stem_live[0] = self;
  self->index = 0;
  self->parent = UINT32_MAX;
  self->children = 0;
  self->tid = stem_gettid();
  self->state = STEM_THREAD_RUNNING;
  self->plan_index = UINT32_MAX;
  self->go = self->watchdog = self->detached = self->joined = 0;
  struct stem_text text = {self->path, self->path + sizeof self->path};
  stem_text_add(&text, "main");
  __stem_tls.next_id = __stem_tls.id_step = stem_id_step;
}

/* The function a thread runs: its symbol, or where it is, for the collector to name: /path/of/object+0x1234. */
static void start_name(struct stem_text* text, void* function) {
  Dl_info info;
  if (!function) {
    stem_text_add(text, "main");
  } else if (dladdr(function, &info) && info.dli_sname && info.dli_saddr == function) {
    stem_text_add(text, info.dli_sname);
  } else {
    stem_text_add(text, "0x");
    stem_text_number(text, (uint64_t)(uintptr_t)function, 16);
  }
}

void stem_thread_define(struct stem_thread* self, struct stem_thread* t) {
  char name[512] = "";
  struct stem_text text = {name, name + sizeof name};
  start_name(&text, (void*)t->start);
  stem_append(self, stem_head(STEM_RAW_Thread, 0, 0), t->index, t->parent, 0);
  stem_blob(self, STEM_BLOB_THREAD_PATH, t->path, __builtin_strlen(t->path));
  stem_blob(self, STEM_BLOB_THREAD_START, name, __builtin_strlen(name));
}

/* --- a thread's life -------------------------------------------------------------------------------------------------------------- */

static void stack_bounds(struct stem_thread* self) {
  pthread_attr_t attr;
  void* base = 0;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
  if (pthread_attr_getstack(&attr, &base, &size) == 0) self->stack_top = (const uint64_t*)((char*)base + size);
  pthread_attr_destroy(&attr);
  /* A thread's own variables lie above its stack in the same memory: not what a frame of the program is. */
  const uint64_t* own = (const uint64_t*)((uintptr_t)&__stem_tls & ~7ull);
  if (self->stack_top > own && (char*)own > (char*)base) self->stack_top = own;
}

static void thread_begins(struct stem_thread* self) {
  stem_current = self;
  self->tid = stem_gettid();
  self->tls = &__stem_tls;
  __stem_tls.next_id = __stem_tls.id_step = stem_id_step;
  stem_stream_open(self);
  pthread_setspecific(end_key, (void*)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
  stack_bounds(self);
  stem_repin_cpu();
  stem_fault_thread(self);
  if (stem_library_thread) stem_library_thread(self);
}

static void thread_ends(void* round) {
  struct stem_thread* self = stem_current;
  if (!stem_on || !self || self->state == STEM_THREAD_ENDED) return;
  uintptr_t left = (uintptr_t)round;
  if (left > 1) {
    pthread_setspecific(end_key, (void*)(left - 1));
    return;
  }
  if (self->watched) { /* somebody looked whether it has ended, and it had not */
    stem_visible(self, STEM_KIND_SemPost, &self->watched, 0, 0, 0, 0);
    stem_event(self, STEM_KIND_SemPost, 0, &self->watched, 0, 0, 0);
    stem_done(self);
  }
  stem_mutex_owner_ends(self);
  stem_visible(self, STEM_KIND_End, 0, 0, 0, 0, 0);
  stem_event(self, STEM_KIND_End, 0, 0, 0, 0, 0);
  stem_stream_close(self);
  stem_shadow_free(self);
  stem_fault_thread_end(self);
  stem_leave(self);
}

static void* run(void* argument) {
  struct stem_thread* self = argument;
  thread_begins(self);
  self->stack_top = (const uint64_t*)__builtin_frame_address(0) + 2;
  /* The creator published our Start: wait for the token that comes with it (parallel: for its Create). */
  while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE)) stem_futex_wait(&self->go, 0, -1, 0);
  __atomic_store_n(&self->go, 0, __ATOMIC_RELAXED);
  if (self->stop_here) {
    self->stop_here = 0;
    __stem_stop_here();
  }
  if (stem_parallel) stem_visible(self, STEM_KIND_Start, 0, 0, 0, 0, 0);
  stem_event(self, STEM_KIND_Start, 0, 0, 0, 0, 0);
  stem_done(self);
  self->busy--;
  if (self->c11) return (void*)(intptr_t)((int (*)(void*))(void*)self->start)(self->argument);
  return self->start(self->argument);
}

struct stem_thread* stem_adopt(void) {
  stem_lock(&stem_sched.lock);
  struct stem_thread* parent = all[0];
  struct stem_thread* self = stem_thread_new(parent, 0);
  self->state = STEM_THREAD_OUTSIDE;
  self->handle = pthread_self();
  self->detached = 1;
  stem_sched.outside++;
  stem_unlock(&stem_sched.lock);
  stem_pin_cpu();
  self->busy = 1;
  thread_begins(self);
  if (!stem_parallel) stem_arrive(self);
  stem_thread_define(self, self);
  stem_visible(self, STEM_KIND_Start, 0, 0, 0, 0, 0);
  stem_event(self, STEM_KIND_Start, 0, 0, 0, 0, 0);
  stem_done(self);
  self->busy--;
  return self;
}

/* --- create, join, detach ------------------------------------------------------------------------------------------------------------ */

/* Two operations, as in glibc: the handle is there before the new thread runs, so it is written first. */
int stem_create(pthread_t* out, const pthread_attr_t* attr, void* (*start)(void*), void* argument, int c11, const void* site) {
  struct stem_thread* self = stem_self();
  int detached = 0;
  if (attr && pthread_attr_getdetachstate(attr, &detached) == 0) detached = detached == PTHREAD_CREATE_DETACHED;
  stem_pin_cpu();
  stem_access_begin(self, STEM_KIND_Write, out, sizeof *out, site);
  stem_lock(&stem_sched.lock);
  struct stem_thread* child = stem_thread_new(self, 0);
  child->start = start;
  child->argument = argument;
  child->c11 = (uint32_t)c11;
  child->busy = 1; /* until its Start: no signal before that */
  child->detached = (uint32_t)detached;
  int r = STEM_REAL(pthread_create)(&child->handle, attr, run, child);
  if (r) stem_thread_drop(child);
  stem_unlock(&stem_sched.lock);
  if (r) {
    stem_event(self, STEM_KIND_Yield, 0, 0, (uint64_t)r, 0, site);
    stem_access_end(self, out, sizeof *out);
    return r;
  }
  *out = child->handle;
  stem_append(self, stem_head(STEM_KIND_Write, sizeof *out, (uint64_t)(uintptr_t)out), child->handle, 0, stem_site_id(site));
  stem_access_end(self, out, sizeof *out);
  stem_thread_define(self, child);

  stem_visible(self, STEM_KIND_Create, 0, site, 0, 0, 0);
  if (!stem_parallel) stem_lock(&stem_sched.lock);
  child->pending = (struct stem_pending){.kind = STEM_KIND_Start};
  child->state = stem_parallel ? STEM_THREAD_RUNNING : STEM_THREAD_PARKED;
  if (!stem_parallel) stem_unlock(&stem_sched.lock);
  stem_event(self, STEM_KIND_Create, 0, 0, child->index, 0, site);
  if (stem_parallel) {
    __atomic_store_n(&child->go, 1, __ATOMIC_RELEASE);
    stem_futex_wake(&child->go, 1, 0);
  }
  stem_new_thread_is_there();
  stem_enables();
  stem_done(self);
  return 0;
}

STEM_EXPORT int pthread_create(pthread_t* out, const pthread_attr_t* attr, void* (*start)(void*), void* argument) {
  if (!stem_active()) return STEM_REAL(pthread_create)(out, attr, start, argument);
  return stem_create(out, attr, start, argument, 0, stem_take_site());
}

/* A handle is reused once its thread was joined, or ended detached: the latest one counts. */
static struct stem_thread* by_handle(pthread_t handle) {
  for (uint32_t i = stem_thread_count; i-- > 0;) {
    struct stem_thread* t = all[i];
    if (pthread_equal(t->handle, handle) && !t->joined && !(t->detached && t->state == STEM_THREAD_ENDED)) return t;
  }
  return 0;
}

static int has_ended(struct stem_thread* t, uintptr_t index) { return all[index]->state == STEM_THREAD_ENDED || t->cancelled; }

enum { JOIN, TRY, TIMED };

int stem_join(pthread_t thread, void** result, int how, uint64_t deadline, const void* site) {
  struct stem_thread* self = stem_self();
  struct stem_thread* child = by_handle(thread);
  if (!child || child == self || child->detached) { /* not ours, or a mistake that the library answers at once */
    if (child == self) return EDEADLK;
    if (child) return EINVAL;
    stem_outside_begin(self);
    int r = STEM_REAL(pthread_join)(thread, result);
    stem_outside_end(self);
    return r;
  }
  for (;;) {
    int failed = stem_visible(self, STEM_KIND_Join, 0, site, how == TRY ? 0 : has_ended, child->index, deadline);
    if (child->state == STEM_THREAD_ENDED && !failed) break;
    if (how != TRY && !failed) { /* cancelled, perhaps */
      stem_refused(self, 0, EAGAIN, site);
      stem_cancellation_point(self);
      continue;
    }
    /* That it still runs is what was seen: in the trace, an end that has not been posted yet (thread_ends does). */
    child->watched = 1;
    stem_event(self, STEM_KIND_SemFail, how == TRY ? STEM_FLAG_TRY : STEM_FLAG_TIMED | STEM_FLAG_TIMEOUT, &child->watched, EAGAIN, 0, site);
    stem_done(self);
    return how == TRY ? EBUSY : ETIMEDOUT;
  }
  child->joined = 1;
  int r = STEM_REAL(pthread_join)(thread, result); /* it is on its way out: no wait worth mentioning */
  stem_event(self, STEM_KIND_Join, how == TRY ? STEM_FLAG_TRY : how == TIMED ? STEM_FLAG_TIMED : 0, 0, child->index, 0, site);
  stem_done(self);
  return r;
}

/* The same for the program: the result is written into its memory. */
static int join(pthread_t thread, void** to, int how, uint64_t deadline, const void* site) {
  void* result = 0;
  int r = stem_join(thread, &result, how, deadline, site);
  if (r == 0 && to) stem_write(to, (uint64_t)(uintptr_t)result, 0, sizeof result, site);
  return r;
}

STEM_EXPORT int pthread_join(pthread_t thread, void** result) {
  if (!stem_active()) return STEM_REAL(pthread_join)(thread, result);
  return join(thread, result, JOIN, 0, stem_take_site());
}

STEM_EXPORT int pthread_tryjoin_np(pthread_t thread, void** result) {
  if (!stem_active()) return STEM_REAL(pthread_tryjoin_np)(thread, result);
  STEM_ENTER(stem_self());
  return join(thread, result, TRY, 0, stem_take_site());
}

STEM_EXPORT int pthread_timedjoin_np(pthread_t thread, void** result, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_timedjoin_np)(thread, result, until);
  if (until && (until->tv_nsec < 0 || until->tv_nsec >= 1000000000)) return EINVAL;
  return join(thread, result, until ? TIMED : JOIN, until ? stem_deadline(CLOCK_REALTIME, until) : 0, stem_take_site());
}

STEM_EXPORT int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(pthread_clockjoin_np)(thread, result, clock, until);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
  if (until && (until->tv_nsec < 0 || until->tv_nsec >= 1000000000)) return EINVAL;
  return join(thread, result, until ? TIMED : JOIN, until ? stem_deadline(clock, until) : 0, stem_take_site());
}

STEM_EXPORT int pthread_detach(pthread_t thread) {
  if (!stem_active()) return STEM_REAL(pthread_detach)(thread);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  struct stem_thread* child = by_handle(thread);
  if (!child) return STEM_REAL(pthread_detach)(thread);
  stem_visible(self, STEM_KIND_Detach, 0, site, 0, 0, 0);
  int r = STEM_REAL(pthread_detach)(thread);
  if (r == 0) child->detached = 1;
  stem_event(self, r == 0 ? STEM_KIND_Detach : STEM_KIND_Yield, 0, 0, child->index, 0, site);
  stem_done(self);
  return r;
}

/* --- cancellation: at the points that block in our model (join, condition variables, semaphores, sleeps) and wherever the C
 *     library itself has one. Asynchronous cancellation acts at the next of these as well. ------------------------------------------ */

void stem_cancellation_point(struct stem_thread* self) {
  if (self->cancelled) STEM_REAL(pthread_testcancel)(); /* does not come back, unless cancellation is disabled */
}

/* Others may run here: a loop around it is a way of waiting. */
STEM_EXPORT void pthread_testcancel(void) {
  if (stem_active()) {
    struct stem_thread* self = stem_self();
    STEM_ENTER(self);
    stem_sleep_until(self, 0, stem_take_site());
  }
  STEM_REAL(pthread_testcancel)();
}

/* What the C library does on the way out (it loads the unwinder) is not the program's doing. */
STEM_EXPORT void pthread_exit(void* result) {
  stem_take_site();
  STEM_REAL(pthread_exit)(result);
  __builtin_unreachable();
}

STEM_EXPORT int pthread_cancel(pthread_t thread) {
  if (!stem_active()) return STEM_REAL(pthread_cancel)(thread);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  struct stem_thread* child = by_handle(thread);
  if (!child || child->state == STEM_THREAD_ENDED) return STEM_REAL(pthread_cancel)(thread);
  stem_visible(self, STEM_KIND_Yield, 0, site, 0, 0, 0);
  int r = STEM_REAL(pthread_cancel)(thread);
  if (child->cancel_disabled)
    child->cancel_wanted = 1;
  else
    child->cancelled = 1;
  stem_event(self, STEM_KIND_Yield, 0, 0, 0, 0, site);
  stem_enables();
  stem_done(self);
  return r;
}

/* Libraries call this as well; where it was before goes to the program as an event only if the program asked. */
static void give_old(int* old, int value, const void* site) {
  if (old && site)
    stem_write(old, (uint32_t)value, 0, sizeof *old, site);
  else if (old)
    *old = value;
}

STEM_EXPORT int pthread_setcancelstate(int state, int* old) {
  const void* site = stem_take_site();
  int before = 0, r = STEM_REAL(pthread_setcancelstate)(state, &before);
  if (r == 0) give_old(old, before, stem_active() ? site : 0);
  if (stem_on && r == 0) {
    struct stem_thread* self = stem_self();
    self->cancel_disabled = state == PTHREAD_CANCEL_DISABLE;
    if (self->cancel_wanted && !self->cancel_disabled) self->cancelled = 1;
    if (self->cancel_disabled && self->cancelled) {
      self->cancelled = 0;
      self->cancel_wanted = 1;
    }
  }
  return r;
}

/* Asynchronous cancellation could strike inside the runtime, which must not be torn: deferred it is. */
STEM_EXPORT int pthread_setcanceltype(int type, int* old) {
  if (!stem_active()) return STEM_REAL(pthread_setcanceltype)(type, old);
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  struct stem_thread* self = stem_self();
  give_old(old, self->cancel_async ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, stem_take_site());
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS && !self->cancel_async)
    stem_note("asynchronous cancellation is delayed to the thread's next cancellation point while STEM records");
  self->cancel_async = type == PTHREAD_CANCEL_ASYNCHRONOUS;
  return 0;
}

STEM_EXPORT int sched_yield(void) {
  if (!stem_active()) return STEM_REAL(sched_yield)();
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  stem_sleep_until(self, 0, stem_take_site());
  if (self->cancel_async) stem_cancellation_point(self);
  return 0;
}

void stem_threads_init(void) {
  all = stem_pages(STEM_MAX_THREADS * sizeof *all);
  stem_live = stem_pages(STEM_MAX_THREADS * sizeof *stem_live);
  pthread_key_create(&end_key, thread_ends);
  pthread_setspecific(end_key, (void*)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
}

void stem_main_thread(struct stem_thread* self) { stack_bounds(self); }
