// Cancellation: at every kind of wait, deferred while disabled, asynchronous, by pthread_testcancel; cleanups and keys run.
// CASE usual:
// ARGS: 0
// STDOUT: ^cancelled 6 of 7 cleaned 6 keys 6 disabled 1\n$
// CASE random:
// RECORD: --mode random --seed 2
// ARGS: 0
// STDOUT: ^cancelled 6 of 7 cleaned 6 keys 6 disabled 1\n$
// CASE outside:
// REPLAY: no, what pause would have answered is not known
// STDOUT: ^cancelled 7 of 7 cleaned 7 keys 7 disabled 1\n$
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static sem_t nothing, ready;
static int cleaned, destroyed, disabled;

static void cleanup(void* locked) {
  if (!locked) pthread_mutex_lock(&m);
  cleaned++;
  pthread_mutex_unlock(&m);
}

static void destroy(void* value) {
  (void)value;
  pthread_mutex_lock(&m);
  destroyed++;
  pthread_mutex_unlock(&m);
}

static void wait_somehow(long how) {
  int old;
  struct timespec far;
  switch (how) {
    case 0: for (;;) sem_wait(&nothing);
    case 1: for (;;) pause();
    case 2: for (;;) sleep(1000);
    case 3: for (;;) pthread_testcancel();
    case 4:
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
      sem_wait(&nothing);
      disabled = 1;
      pthread_setcancelstate(old, 0);
      for (;;) sem_wait(&nothing);
    case 5:
      pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
      for (;;) sched_yield();
    case 6:
      clock_gettime(CLOCK_REALTIME, &far);
      far.tv_sec += 100000;
      for (;;) sem_timedwait(&nothing, &far);
  }
}

static void* run(void* how) {
  pthread_setspecific(key, &key);
  pthread_cleanup_push(cleanup, 0);
  sem_post(&ready);
  wait_somehow((long)how);
  pthread_cleanup_pop(1);
  return 0;
}

int main(int argc, char** argv) {
  (void)argv;
  int cancelled = 0;
  sem_init(&nothing, 0, 0);
  sem_init(&ready, 0, 0);
  pthread_key_create(&key, destroy);
  for (long how = 0; how < 7; ++how) {
    pthread_t t;
    void* result = 0;
    if (how == 1 && argc > 1) continue;
    pthread_create(&t, 0, run, (void*)how);
    sem_wait(&ready);
    usleep(1000);
    pthread_cancel(t);
    if (how == 4) sem_post(&nothing);
    pthread_join(t, &result);
    cancelled += result == PTHREAD_CANCELED;
  }
  printf("cancelled %d of 7 cleaned %d keys %d disabled %d\n", cancelled, cleaned, destroyed, disabled);
  return 0;
}
