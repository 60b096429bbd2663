/* Cost of an event: argv[1] iterations of a locked increment by two threads, or with argv[2] "plain" of an unlocked one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hooks.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long counter, rounds;
static int plain;

static void* work(void* p) {
  for (long i = 0; i < rounds; i++) {
    if (!plain) CALL(pthread_mutex_lock(&m));
    STORE(counter, LOAD(counter) + 1);
    if (!plain) CALL(pthread_mutex_unlock(&m));
  }
  return p;
}

int main(int argc, char** argv) {
  pthread_t t[2];
  rounds = argc > 1 ? atol(argv[1]) : 1000;
  plain = argc > 2;
  for (int i = 0; i < 2; i++) CALL(pthread_create(&t[i], 0, work, 0));
  for (int i = 0; i < 2; i++) CALL(pthread_join(t[i], 0));
  return plain || counter == 2 * rounds ? 0 : 1;
}
