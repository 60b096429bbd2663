// pthread_cancel of a thread that waits: handled (it ends, its cleanup runs) or refused with a message, never hung.
// STDOUT: ^cleaned 1 cancelled 1\n$
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int cleaned;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void cleanup(void* argument) {
  cleaned = 1;
  pthread_mutex_unlock(argument);
}

static void* run(void* argument) {
  pthread_mutex_lock(&m);
  pthread_cleanup_push(cleanup, &m);
  for (;;) pthread_cond_wait(&never, &m);
  pthread_cleanup_pop(1);
  return argument;
}

int main(void) {
  pthread_t t;
  void* result = 0;
  pthread_create(&t, 0, run, 0);
  usleep(10000);
  pthread_cancel(t);
  pthread_join(t, &result);
  printf("cleaned %d cancelled %d\n", cleaned, result == PTHREAD_CANCELED);
  return 0;
}
