/* Shared by the files that model pthreads' objects. The object itself holds the state: the C library's own non-blocking
 * functions change it, so every kind of mutex, any way of initialising it, and code that we do not see stay right; we only
 * read its fields to tell whether an operation could be done. */
#ifndef STEM_TRACER_RUNTIME_SYNC_H
#define STEM_TRACER_RUNTIME_SYNC_H

#include <errno.h>

#include "tracer/runtime/state.h"

static inline int stem_bad_time(const struct timespec* ts) { return ts->tv_nsec < 0 || ts->tv_nsec >= 1000000000; }

/* An operation that was refused had no effect, but was an operation: one visible record all the same. */
static inline int stem_refused(struct stem_thread* self, const volatile void* object, int error, const void* site) {
  stem_event(self, STEM_KIND_Yield, 0, object, (uint64_t)error, 0, site);
  stem_done(self);
  return error;
}

/* Lock m as part of a condition variable's wait: one Lock event. Returns what pthread_mutex_lock would. */
int stem_mutex_lock(struct stem_thread* self, pthread_mutex_t* m, int try_only, uint64_t deadline, const void* site);
unsigned stem_mutex_depth(const pthread_mutex_t* m);

/* A condition variable, or a futex that is told as one: wakes one waiter (0: there was none), or all (how many). */
int stem_cond_signal(struct stem_thread* self, const void* c, const void* site);
uint64_t stem_cond_broadcast(struct stem_thread* self, const void* c, const void* site);

#endif
