// An asynchronous signal: its handler runs at a visible operation and is recorded.
// STDOUT: ^caught 10\n$
// EVENT: signal-in
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void handler(int number) { caught = number; }

static void* run(void* argument) {
  kill(getpid(), SIGUSR1);
  while (!caught) usleep(100);
  return argument;
}

int main(void) {
  pthread_t t;
  struct sigaction action = {0};
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, 0);
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("caught %d\n", caught);
  return 0;
}
