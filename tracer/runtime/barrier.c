/* Barriers: modelled in the object's own memory. glibc's struct begins with how many came in and which round it is; so do we,
 * with the same zero state after the real initialisation, and never call the real wait. */
#include "tracer/runtime/sync.h"

struct barrier {
  uint32_t arrived;
  uint32_t generation;
  uint32_t count;
  int32_t shared;
  uint32_t out;
};
_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "fits into the object");

STEM_EXPORT int pthread_barrier_init(pthread_barrier_t* b, const pthread_barrierattr_t* attr, unsigned count) {
  if (!stem_active()) return STEM_REAL(pthread_barrier_init)(b, attr, count);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  stem_visible(self, STEM_KIND_BarrierInit, b, site, 0, 0, 0);
  int r = STEM_REAL(pthread_barrier_init)(b, attr, count);
  if (r) return stem_refused(self, b, r, site);
  int shared = 0;
  if (attr && pthread_barrierattr_getpshared(attr, &shared) == 0 && shared == PTHREAD_PROCESS_SHARED)
    stem_refuse("a barrier shared between processes: its waits are not recorded as such", site);
  struct barrier* model = (struct barrier*)b;
  model->arrived = model->generation = model->out = 0;
  model->count = count;
  stem_event(self, STEM_KIND_BarrierInit, 0, b, count, 0, site);
  stem_done(self);
  return 0;
}

STEM_EXPORT int pthread_barrier_destroy(pthread_barrier_t* b) {
  if (!stem_active()) return STEM_REAL(pthread_barrier_destroy)(b);
  return ((struct barrier*)b)->arrived ? EBUSY : 0;
}

static int has_passed(struct stem_thread* t, uintptr_t barrier) { return ((const struct barrier*)barrier)->generation != t->barrier_generation; }

STEM_EXPORT int pthread_barrier_wait(pthread_barrier_t* b) {
  if (!stem_active()) return STEM_REAL(pthread_barrier_wait)(b);
  struct stem_thread* self = stem_self();
  const void* site = stem_take_site();
  struct barrier* model = (struct barrier*)b;
  stem_visible(self, STEM_KIND_BarrierArrive, b, site, 0, 0, 0);
  uint32_t generation = self->barrier_generation = model->generation;
  int last = ++model->arrived >= model->count;
  if (last) {
    model->arrived = 0;
    model->generation++;
  }
  stem_event(self, STEM_KIND_BarrierArrive, 0, b, generation, 0, site);
  stem_enables();
  stem_done(self);
  stem_visible(self, STEM_KIND_BarrierLeave, b, site, has_passed, (uintptr_t)b, 0);
  stem_event(self, STEM_KIND_BarrierLeave, last ? STEM_FLAG_SERIAL : 0, b, generation, 0, site);
  stem_done(self);
  return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}
