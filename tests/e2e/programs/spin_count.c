// No livelock: while everybody else waits, one thread tries again and again without any change that others could see, counts
// its tries where only it can see them - in a register, on its stack, in a thread-local variable, on the heap - and gives up.
// STDOUT: ^20000 60000 20000 20000 20000\n$
// OUTCOME: exited 0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIES = 20000 };

static volatile int flag, done;
static _Thread_local int tries;

static void* patient(void* argument) {
  while (!done) {
  }
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, patient, 0);
  int one = 0, three = 0, array[4] = {0};
  while (!flag && one < TRIES) ++one;
  while (!flag && three < 3 * TRIES) three += 3;
  while (!flag && array[one & 3] < TRIES) ++array[one & 3];
  while (!flag && tries < TRIES) ++tries;
  int* heap = malloc(sizeof *heap);
  *heap = 0;
  while (!flag && *heap < TRIES) ++*heap;
  done = 1;
  pthread_join(t, 0);
  printf("%d %d %d %d %d\n", one, three, array[one & 3], tries, *heap);
  free(heap);
  return 0;
}
