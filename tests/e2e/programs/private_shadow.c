// A shared read kept in places that only one thread can see: an array on the stack, on the heap, in a struct passed by
// pointer. The branch on the reload must still depend on the read.
// EVENT: ^main/1 branch if:37 = 1
// EVENT: ^main/1 branch if:40 = 1
// EVENT: ^main/1 branch if:43 = 1
// EVENT: ^main/1 branch if:46 = 1
// STDOUT: ^4\n$
// BINARY: no, its branches are told by the compiler
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box {
  int before, value;
};

static int shared = 5;
static int hits;

__attribute__((noinline)) static void put(struct box* b, int v) { b->value = v; }

__attribute__((noinline)) static int get(const struct box* b) { return b->value; }

static void* run(void* argument) {
  int local[4] = {0};
  struct box b = {0, 0}, copy;
  int* heap = malloc(4 * sizeof *heap);
  volatile int index = 2;
  local[index] = shared;
  heap[index] = shared;
  put(&b, shared);
  memcpy(&copy, &b, sizeof b);



  if (local[index] > 3) ++hits;


  if (heap[index] > 3) ++hits;


  if (get(&b) > 3) ++hits;


  if (copy.value > 3) ++hits;
  free(heap);
  return argument;
}

static void* change(void* argument) {
  shared = 6;
  return argument;
}

int main(void) {
  pthread_t t[2];
  pthread_create(&t[0], 0, run, 0);
  pthread_create(&t[1], 0, change, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  printf("%d\n", hits);
  return 0;
}
