// abort() in a thread: the trace holds everything up to there.
// EXIT: SIGABRT
// OUTCOME: signalled 6
// EVENT: ^main/1 write n:\d+ = 3
#include <pthread.h>
#include <stdlib.h>

static int n;

static void* run(void* argument) {
  n = 3;
  abort();
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  return n;
}
