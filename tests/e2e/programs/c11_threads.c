// C11's threads: thrd_, mtx_ of all kinds, cnd_, tss_ with destructors, call_once.
// STDOUT: ^30 3 once 1 destroyed 2 busy 1 late 1 1 deep 2 exit 9\n$
// EVENT: main/1 lock m
// EVENT: wait ready
// COUNT: 1 once-begin once
// EVENT: lock-fail timed
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

static mtx_t m, timed, deep;
static cnd_t ready;
static tss_t own;
static once_flag once = ONCE_FLAG_INIT;
static int sum, arrived, initialised, destroyed, busy, late, depth;

static void destroy(void* value) {
  mtx_lock(&m);
  destroyed++;
  mtx_unlock(&m);
  free(value);
}
static void initialise(void) { initialised++; }

static int run(void* argument) {
  call_once(&once, initialise);
  int* mine = malloc(sizeof *mine);
  *mine = *(int*)argument;
  tss_set(own, mine);
  thrd_yield();
  mtx_lock(&m);
  sum += *(int*)tss_get(own);
  if (++arrived == 2) cnd_broadcast(&ready);
  while (arrived < 2) cnd_wait(&ready, &m);
  mtx_unlock(&m);
  return *mine / 10;
}

static int beside(void* argument) {
  struct timespec soon;
  timespec_get(&soon, TIME_UTC);
  soon.tv_sec += 1;
  busy = mtx_trylock(&timed) == thrd_busy;
  late = mtx_timedlock(&timed, &soon) == thrd_timedout;
  thrd_exit((int)(long)argument);
}

int main(void) {
  thrd_t t[2];
  int from[2] = {10, 20}, result, results = 0;
  mtx_init(&m, mtx_plain);
  mtx_init(&timed, mtx_timed);
  mtx_init(&deep, mtx_plain | mtx_recursive);
  cnd_init(&ready);
  tss_create(&own, destroy);
  for (int i = 0; i < 2; ++i) thrd_create(&t[i], run, &from[i]);
  for (int i = 0; i < 2; ++i) {
    thrd_join(t[i], &result);
    results += result;
  }
  mtx_lock(&timed);
  thrd_create(&t[0], beside, (void*)9);
  int exited;
  thrd_join(t[0], &exited);
  mtx_unlock(&timed);
  mtx_lock(&deep), depth++;
  mtx_lock(&deep), depth++;
  mtx_unlock(&deep), mtx_unlock(&deep);
  struct timespec soon;
  timespec_get(&soon, TIME_UTC);
  soon.tv_nsec = soon.tv_nsec ? soon.tv_nsec - 1 : 0;
  mtx_lock(&m);
  int too = cnd_timedwait(&ready, &m, &soon) == thrd_timedout;
  mtx_unlock(&m);
  tss_delete(own);
  cnd_destroy(&ready);
  mtx_destroy(&m);
  struct timespec nap = {0, 1000};
  thrd_sleep(&nap, 0);
  printf("%d %d once %d destroyed %d busy %d late %d %d deep %d exit %d\n", sum, results, initialised, destroyed, busy, late, too, depth, exited);
  return 0;
}
