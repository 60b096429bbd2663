/* C11's threads.h: in glibc the same objects under other names, called inside the library without passing through ours; so
 * each is told in terms of the pthread function, with threads.h's answers. */
#include <threads.h>

#include "tracer/runtime/sync.h"
#include "tracer/runtime/sys.h"

static int answer(int error) {
  switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
  }
}

STEM_EXPORT int thrd_create(thrd_t* out, thrd_start_t start, void* argument) {
  if (!stem_active()) return STEM_REAL(thrd_create)(out, start, argument);
  int r = stem_create(out, 0, (void* (*)(void*))(void*)start, argument, 1, stem_take_site());
  return r == EAGAIN ? thrd_nomem : answer(r);
}

STEM_EXPORT int thrd_join(thrd_t thread, int* result) {
  if (!stem_active()) return STEM_REAL(thrd_join)(thread, result);
  const void* site = stem_take_site();
  void* value = 0;
  int r = stem_join(thread, &value, 0, 0, site);
  if (r == 0 && result) stem_write(result, (uint32_t)(intptr_t)value, 0, sizeof *result, site);
  return answer(r);
}

STEM_EXPORT int thrd_detach(thrd_t thread) {
  if (!stem_active()) return STEM_REAL(thrd_detach)(thread);
  return answer(pthread_detach(thread));
}

STEM_EXPORT void thrd_exit(int result) {
  stem_take_site();
  STEM_REAL(thrd_exit)(result);
  __builtin_unreachable();
}

STEM_EXPORT void thrd_yield(void) {
  if (!stem_active()) {
    STEM_REAL(sched_yield)();
    return;
  }
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  stem_sleep_until(self, 0, stem_take_site());
}

STEM_EXPORT int mtx_lock(mtx_t* m) {
  if (!stem_active()) return STEM_REAL(mtx_lock)(m);
  return answer(pthread_mutex_lock((pthread_mutex_t*)m));
}

STEM_EXPORT int mtx_trylock(mtx_t* m) {
  if (!stem_active()) return STEM_REAL(mtx_trylock)(m);
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  return answer(stem_mutex_lock(self, (pthread_mutex_t*)m, 1, 0, stem_take_site()));
}

STEM_EXPORT int mtx_timedlock(mtx_t* m, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(mtx_timedlock)(m, until);
  return answer(pthread_mutex_timedlock((pthread_mutex_t*)m, until));
}

STEM_EXPORT int mtx_unlock(mtx_t* m) {
  if (!stem_active()) return STEM_REAL(mtx_unlock)(m);
  return answer(pthread_mutex_unlock((pthread_mutex_t*)m));
}

STEM_EXPORT int cnd_wait(cnd_t* c, mtx_t* m) {
  if (!stem_active()) return STEM_REAL(cnd_wait)(c, m);
  return answer(pthread_cond_wait((pthread_cond_t*)c, (pthread_mutex_t*)m));
}

STEM_EXPORT int cnd_timedwait(cnd_t* c, mtx_t* m, const struct timespec* until) {
  if (!stem_active()) return STEM_REAL(cnd_timedwait)(c, m, until);
  return answer(pthread_cond_timedwait((pthread_cond_t*)c, (pthread_mutex_t*)m, until));
}

STEM_EXPORT int cnd_signal(cnd_t* c) {
  if (!stem_active()) return STEM_REAL(cnd_signal)(c);
  return answer(pthread_cond_signal((pthread_cond_t*)c));
}

STEM_EXPORT int cnd_broadcast(cnd_t* c) {
  if (!stem_active()) return STEM_REAL(cnd_broadcast)(c);
  return answer(pthread_cond_broadcast((pthread_cond_t*)c));
}

STEM_EXPORT void call_once(once_flag* flag, void (*initialise)(void)) {
  if (!stem_active()) {
    STEM_REAL(call_once)(flag, initialise);
    return;
  }
  pthread_once((pthread_once_t*)flag, initialise);
}
