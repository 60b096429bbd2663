// Every thread spins on what only another spinning thread could change: told as a livelock, not run for ever.
// EXIT: 98
// OUTCOME: livelock
// STDERR: livelock
// BINARY: no, spinning for ever is not recognised
#include <pthread.h>

static volatile int a, b;

static void* one(void* argument) {
  while (!a) {
  }
  b = 1;
  return argument;
}

static void* two(void* argument) {
  while (!b) {
  }
  a = 1;
  return argument;
}

int main(void) {
  pthread_t t[2];
  pthread_create(&t[0], 0, one, 0);
  pthread_create(&t[1], 0, two, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  return 0;
}
