/* Lock-heavy: two threads add to one counter under one mutex. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static long rounds;

static void* run(void* argument) {
  for (long i = 0; i < rounds; ++i) {
    pthread_mutex_lock(&m);
    counter = counter + 1;
    pthread_mutex_unlock(&m);
  }
  return argument;
}

int main(int argc, char** argv) {
  pthread_t t[2];
  rounds = argc > 1 ? atol(argv[1]) : 1000000;
  for (int i = 0; i < 2; ++i) pthread_create(&t[i], 0, run, 0);
  for (int i = 0; i < 2; ++i) pthread_join(t[i], 0);
  printf("%ld\n", counter);
  return counter != 2 * rounds;
}
