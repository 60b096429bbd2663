// Robust mutexes: an owner that ended leaves EOWNERDEAD to the next, who repairs it or gives it up. Priority kinds beside.
// STDOUT: ^dead 130 whole 0 again 130 given up 131 inherit 0 0\n$
// EVENT: main/1 lock shared
// EVENT: main lock shared
// EVENT: main lock-fail shared.* = 131
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t shared, inheriting;
static int half_done;

static void* dies_with_it(void* argument) {
  pthread_mutex_lock(&shared);
  half_done = 1;
  return argument;
}

static void* adds(void* argument) {
  pthread_mutex_lock(&inheriting);
  half_done++;
  pthread_mutex_unlock(&inheriting);
  return argument;
}

static void alone(void* (*body)(void*)) {
  pthread_t t;
  pthread_create(&t, 0, body, 0);
  pthread_join(t, 0);
}

int main(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared, &kind);
  alone(dies_with_it);
  int dead = pthread_mutex_lock(&shared);
  half_done = 0;
  pthread_mutex_consistent(&shared);
  pthread_mutex_unlock(&shared);
  int whole = pthread_mutex_lock(&shared);
  pthread_mutex_unlock(&shared);
  alone(dies_with_it);
  int again = pthread_mutex_trylock(&shared);
  pthread_mutex_unlock(&shared); /* not made consistent: nobody gets it any more */
  int given_up = pthread_mutex_lock(&shared);

  pthread_mutexattr_t other;
  pthread_mutexattr_init(&other);
  pthread_mutexattr_setprotocol(&other, PTHREAD_PRIO_INHERIT);
  int made = pthread_mutex_init(&inheriting, &other);
  pthread_t t[2];
  for (int i = 0; i < 2; ++i) pthread_create(&t[i], 0, adds, 0);
  for (int i = 0; i < 2; ++i) pthread_join(t[i], 0);
  printf("dead %d whole %d again %d given up %d inherit %d %d\n", dead, whole, again, given_up, made, half_done - 3);
  return 0;
}
