// SIGKILL: nobody in the process can do anything any more, the trace is there all the same.
// EXIT: SIGKILL
// EVENT: ^main/1 write n:\d+ = 3
// REPLAY: no (the kill is part of the run, so the replay is killed too, but by itself)
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int n;

static void* run(void* argument) {
  n = 3;
  kill(getpid(), SIGKILL);
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  return n;
}
