// exit() from a thread while others run; atexit handlers run; the exit code is the thread's.
// EXIT: 5
// OUTCOME: exited 5
// STDOUT: ^bye 9\n$
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int n;

static void bye(void) { printf("bye %d\n", n); }

static void* run(void* argument) {
  n = 9;
  exit(5);
  return argument;
}

static void* forever(void* argument) {
  for (;;) usleep(1000);
  return argument;
}

int main(void) {
  pthread_t t[2];
  atexit(bye);
  pthread_create(&t[0], 0, forever, 0);
  pthread_create(&t[1], 0, run, 0);
  pthread_join(t[0], 0);
  return 0;
}
