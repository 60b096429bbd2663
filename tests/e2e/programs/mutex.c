// Mutexes of all kinds: normal, recursive, error-checking, static initialisers; trylock and timedlock that succeed and fail.
// STDOUT: ^400 0 35 16 16 110 1 0\n$
// EVENT: main/1 lock plain
// EVENT: lock recursive:\d+ = 2
// EVENT: unlock recursive:\d+ = 1
// EVENT: lock-fail
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking;
static int counter;
static int busy, late, relock, owner;

static void* count(void* argument) {
  for (int i = 0; i < 100; ++i) {
    pthread_mutex_lock(&plain);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    ++counter;
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&plain);
  }
  return argument;
}

static void* try_it(void* argument) {
  struct timespec soon;
  busy = pthread_mutex_trylock(&plain);
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  late = pthread_mutex_timedlock(&plain, &soon);
  owner = pthread_mutex_unlock(&checking) == EPERM;
  return argument;
}

int main(void) {
  pthread_t t[4];
  pthread_mutexattr_t attribute;
  pthread_mutexattr_init(&attribute);
  pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checking, &attribute);
  pthread_mutexattr_destroy(&attribute);
  for (int i = 0; i < 4; ++i) pthread_create(&t[i], 0, count, 0);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], 0);

  int first = pthread_mutex_trylock(&plain);
  pthread_mutex_lock(&checking);
  relock = pthread_mutex_lock(&checking);
  pthread_create(&t[0], 0, try_it, 0);
  pthread_join(t[0], 0);
  int destroy_held = pthread_mutex_destroy(&plain);
  pthread_mutex_unlock(&checking);
  pthread_mutex_unlock(&plain);
  int destroyed = pthread_mutex_destroy(&plain);
  printf("%d %d %d %d %d %d %d %d\n", counter, first, relock, busy, destroy_held, late, owner, destroyed);
  return 0;
}
