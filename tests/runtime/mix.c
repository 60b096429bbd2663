/* Every kind of synchronisation in one program, with shared accesses between: recorded, replayed, and in all modes it must end
 * with the same sums. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

#include "hooks.h"

enum { THREADS = 4, ROUNDS = 6 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static sem_t sem;
static mtx_t c11;
static int counter, turns, table, initialised, atomic, spun, posted, flag, unlucky;

static void initialise(void) { STORE(initialised, LOAD(initialised) + 1); }

static void* work(void* argument) {
  int me = (int)(long)argument;
  CALL(pthread_once(&once, initialise));
  for (int i = 0; i < ROUNDS; i++) {
    CALL(pthread_mutex_lock(&m));
    STORE(counter, LOAD(counter) + 1);
    CALL(pthread_mutex_unlock(&m));
    ADD(atomic, 2);
    int seen;
    do seen = LOAD(spun);
    while (!CAS(spun, seen, seen + 1));
    CALL(pthread_spin_lock(&spin));
    STORE(posted, LOAD(posted) + 1);
    CALL(pthread_spin_unlock(&spin));
    if (CALL(pthread_rwlock_tryrdlock(&rw)) == 0) {
      LOAD(table);
      CALL(pthread_rwlock_unlock(&rw));
    }
    CALL(pthread_rwlock_wrlock(&rw));
    STORE(table, LOAD(table) + 1);
    CALL(pthread_rwlock_unlock(&rw));
    CALL(mtx_lock(&c11));
    CALL(mtx_unlock(&c11));
    if (CALL(pthread_mutex_trylock(&m)) == 0)
      CALL(pthread_mutex_unlock(&m));
    else
      ADD(unlucky, 1);
    sched_yield();
  }
  CALL(pthread_barrier_wait(&barrier));
  CALL(pthread_mutex_lock(&m)); /* in turn, by a condition variable */
  while (LOAD(turns) != me) {
    if (me & 1) {
      struct timespec soon;
      clock_gettime(CLOCK_REALTIME, &soon);
      soon.tv_sec += 1;
      CALL(pthread_cond_timedwait(&c, &m, &soon));
    } else {
      CALL(pthread_cond_wait(&c, &m));
    }
  }
  STORE(turns, me + 1);
  CALL(pthread_cond_broadcast(&c));
  CALL(pthread_mutex_unlock(&m));
  CALL(sem_post(&sem));
  if (me == 0) STORE(flag, 1);
  while (!LOAD(flag)) {
  }
  return argument;
}

int main(void) {
  pthread_t t[THREADS];
  pthread_barrier_init(&barrier, 0, THREADS);
  pthread_spin_init(&spin, 0);
  sem_init(&sem, 0, 0);
  mtx_init(&c11, mtx_recursive);
  for (long i = 0; i < THREADS; i++) CALL(pthread_create(&t[i], 0, work, (void*)i));
  for (int i = 0; i < THREADS; i++) CALL(sem_wait(&sem));
  long sum = 0;
  for (int i = 0; i < THREADS; i++) {
    void* result;
    CALL(pthread_join(t[i], &result));
    sum += (long)result;
  }
  pthread_barrier_destroy(&barrier);
  printf("%d %d %d %d %d %d %d %ld\n", LOAD(counter), LOAD(turns), LOAD(table), LOAD(initialised), LOAD(atomic), LOAD(spun), LOAD(posted), sum);
  return 0;
}
