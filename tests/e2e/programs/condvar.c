// Condition variables: signal, broadcast, a timed wait that times out and one that does not, a monotonic clock.
// STDOUT: ^3 3 110 0\n$
// EVENT: wait ready
// EVENT: wake ready
// EVENT: signal ready
// EVENT: broadcast gate.* = 3
// EVENT: main wake
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER, gate = PTHREAD_COND_INITIALIZER, timed;
static int waiting, open_gate, passed, answered;

static void* pass(void* argument) {
  pthread_mutex_lock(&m);
  ++waiting;
  pthread_cond_signal(&ready);
  while (!open_gate) pthread_cond_wait(&gate, &m);
  ++passed;
  pthread_mutex_unlock(&m);
  return argument;
}

static void* answer(void* argument) {
  pthread_mutex_lock(&m);
  answered = 1;
  pthread_cond_signal(&timed);
  pthread_mutex_unlock(&m);
  return argument;
}

int main(void) {
  pthread_t t[3], other;
  pthread_condattr_t attribute;
  pthread_condattr_init(&attribute);
  pthread_condattr_setclock(&attribute, CLOCK_MONOTONIC);
  pthread_cond_init(&timed, &attribute);
  for (int i = 0; i < 3; ++i) pthread_create(&t[i], 0, pass, 0);
  pthread_mutex_lock(&m);
  while (waiting < 3) pthread_cond_wait(&ready, &m);
  open_gate = 1;
  pthread_cond_broadcast(&gate);
  pthread_mutex_unlock(&m);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);

  struct timespec soon;
  clock_gettime(CLOCK_MONOTONIC, &soon);
  soon.tv_sec += 1;
  pthread_mutex_lock(&m);
  int late = pthread_cond_timedwait(&timed, &m, &soon);
  soon.tv_sec += 1000;
  pthread_create(&other, 0, answer, 0);
  int in_time = 0;
  while (!answered && !in_time) in_time = pthread_cond_timedwait(&timed, &m, &soon);
  pthread_mutex_unlock(&m);
  pthread_join(other, 0);
  pthread_cond_destroy(&timed);
  printf("%d %d %d %d\n", waiting, passed, late, in_time);
  return 0;
}
