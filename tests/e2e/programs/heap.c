// A freed and reused address is another variable; heap objects are named by where they were allocated.
// STDOUT: ^3 7\n$
// EVENT: alloc
// EVENT: free
// EVENT: ^main/1 write heap\(run:20\)(\.value|\+0):21 = 0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct item {
  int value;
  struct item* next;
};

static struct item* list;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void* run(void* argument) {
  for (int i = 0; i < 3; ++i) {
    struct item* one = malloc(sizeof *one);
    one->value = i;
    pthread_mutex_lock(&m);
    one->next = list;
    list = one;
    pthread_mutex_unlock(&m);
  }
  return argument;
}

int main(void) {
  pthread_t t[2];
  int count = 0;
  pthread_create(&t[0], 0, run, 0);
  pthread_join(t[0], 0);
  while (list) {
    struct item* one = list;
    list = one->next;
    count += one->value;
    free(one);
  }
  struct item* again = malloc(sizeof *again);
  again->value = 7;
  list = again;
  printf("%d %d\n", count, list->value);
  free(again);
  return 0;
}
