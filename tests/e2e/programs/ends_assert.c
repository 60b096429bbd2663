// A failed assertion ends the run with SIGABRT and is an event.
// EXIT: SIGABRT
// OUTCOME: assert
// EVENT: ^main/1 assert
// STDERR: n == 4
// BINARY: no, an assertion that fails ends by SIGABRT
#include <assert.h>
#include <pthread.h>

static int n;

static void* run(void* argument) {
  n = 3;
  assert(n == 4);
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  return n;
}
