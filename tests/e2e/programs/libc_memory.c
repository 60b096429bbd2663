// Blocks of shared memory that the C library moves, fills, compares, sorts and grows: events of the bytes touched.
// STDOUT: ^1 2 3 5 8 9\nfound 5 same 1 moved aabcd grown 6\n$
// EVENT: ^main/1 write numbers
// EVENT: ^main/2 read numbers
// EVENT: ^main/2 read heap
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int numbers[6], copied[6], same, found, grown;
static int* heap;
static char moved[8];

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

static void* sorter(void* argument) {
  static const int start[6] = {5, 3, 9, 1, 8, 2};
  memcpy(numbers, start, sizeof numbers);
  qsort(numbers, 6, sizeof *numbers, compare);
  heap = malloc(3 * sizeof *heap);
  memcpy(heap, numbers, 3 * sizeof *heap);
  heap = realloc(heap, 6 * sizeof *heap);
  memset(heap + 3, 0, 3 * sizeof *heap);
  strcpy(moved, "abcd");
  memmove(moved + 1, moved, 5);
  return argument;
}

static void* reader(void* argument) {
  int key = 5;
  memcpy(copied, numbers, sizeof copied);
  same = memcmp(copied, numbers, sizeof copied) == 0;
  int* at = bsearch(&key, copied, 6, sizeof *copied, compare);
  found = at ? *at : -1;
  for (int i = 0; i < 6; ++i) grown += heap[i];
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, sorter, 0);
  pthread_join(t, 0);
  pthread_create(&t, 0, reader, 0);
  pthread_join(t, 0);
  printf("%d %d %d %d %d %d\n", copied[0], copied[1], copied[2], copied[3], copied[4], copied[5]);
  printf("found %d same %d moved %s grown %d\n", found, same, moved, grown);
  free(heap);
  return 0;
}
