// Sleeping takes no time: an hour passes on the clock and not for real, others are let go first, a timeout runs out.
// STDOUT: ^slept 1 others 1 timeout 1\n$
// EVENT: yield
// BINARY: no, poll waits for real
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int others;

static void* run(void* argument) {
  usleep(1000);
  others = 1;
  return argument;
}

int main(void) {
  pthread_t t;
  struct timespec before, after, hour = {3600, 0};
  clock_gettime(CLOCK_MONOTONIC, &before);
  pthread_create(&t, 0, run, 0);
  nanosleep(&hour, 0);
  poll(0, 0, 60000);
  clock_gettime(CLOCK_MONOTONIC, &after);
  int seen = others;
  pthread_join(t, 0);
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 100;
  pthread_mutex_lock(&m);
  int timeout = pthread_cond_timedwait(&never, &m, &deadline) == ETIMEDOUT;
  pthread_mutex_unlock(&m);
  printf("slept %d others %d timeout %d\n", after.tv_sec - before.tv_sec >= 3660, seen, timeout);
  return 0;
}
