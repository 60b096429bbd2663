// Spin loops on a plain variable, with and without sched_yield, end because a thread that re-reads the same value yields.
// STDOUT: ^done 3\n$
// OPT: -O0 -O1
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static volatile int first, second, third;

static void* run(void* argument) {
  while (!first) {
  }
  second = 1;
  while (!third) sched_yield();
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  usleep(1000);
  first = 1;
  while (!second) {
  }
  sleep(3);
  third = 3;
  pthread_join(t, 0);
  printf("done %d\n", third);
  return 0;
}
