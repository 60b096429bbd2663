// Joins with a limit or none: pthread_tryjoin_np, pthread_timedjoin_np, pthread_clockjoin_np; detach; a join that cannot be.
// FLAGS: -D_GNU_SOURCE
// STDOUT: ^busy 1 late 110 110 then 0 5 tried 0 self 35 detached 22\n$
// COUNT: 3 ^main join 
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static sem_t go, over;

static void* run(void* argument) {
  sem_wait(&go);
  return argument;
}

static void* last(void* argument) {
  sem_post(&over);
  sem_wait(&go);
  return argument;
}

int main(void) {
  pthread_t a, b, c;
  void* result = 0;
  struct timespec real, steady;
  sem_init(&go, 0, 0);
  sem_init(&over, 0, 0);
  pthread_create(&a, 0, run, (void*)5);
  int busy = pthread_tryjoin_np(a, &result) == EBUSY;
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_MONOTONIC, &steady);
  real.tv_sec += 1;
  steady.tv_sec += 2;
  int late = pthread_timedjoin_np(a, &result, &real), too = pthread_clockjoin_np(a, &result, CLOCK_MONOTONIC, &steady);
  sem_post(&go);
  real.tv_sec += 1000;
  int then = pthread_timedjoin_np(a, &result, &real);
  pthread_create(&b, 0, run, 0);
  sem_post(&go);
  int tried;
  while ((tried = pthread_tryjoin_np(b, 0)) == EBUSY) continue;
  pthread_create(&c, 0, last, 0);
  pthread_detach(c);
  int detached = pthread_join(c, 0), self = pthread_join(pthread_self(), 0);
  sem_wait(&over);
  sem_post(&go);
  pthread_create(&c, 0, run, 0);
  sem_post(&go);
  pthread_join(c, 0);
  printf("busy %d late %d %d then %d %ld tried %d self %d detached %d\n", busy, late, too, then, (long)result, tried, self, detached);
  return 0;
}
