// A struct passed by value is copied by the call, where no expression can follow: all of it is held fixed, however large it is.
// BINARY: no, calls are told by the compiler
// COUNT: 1 ^main/1 pin call:30 = 5$
// COUNT: 1 ^main/1 read table.values\[\]:31 = 30064771076$
// STDOUT: ^2\n$
#include <pthread.h>
#include <stdio.h>

struct large {
  int values[3000];
};

static int shared = 5, hits;
static struct large table;

__attribute__((noinline)) static void take(struct large by_value, int at) {
  if (by_value.values[at] > 3) ++hits;
}

static void* run(void* argument) {
  struct large own;
  for (int i = 0; i < 3000; ++i) own.values[i] = 0;
  volatile int index = 2500;

  own.values[index] = shared;




  take(own, index);
  take(table, index);
  return argument;
}

static void* change(void* argument) {
  shared = 6;
  table.values[2500] = 8;
  return argument;
}

int main(void) {
  pthread_t t[2];
  table.values[2501] = 7; /* above the first 4 KiB, and not what run looks at */
  table.values[2500] = 4;
  pthread_create(&t[0], 0, run, 0);
  pthread_join(t[0], 0);
  pthread_create(&t[1], 0, change, 0);
  pthread_join(t[1], 0);
  printf("%d\n", hits);
  return 0;
}
