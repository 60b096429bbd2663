// pthread_create, join with a result, detach, exit from a thread function, nested creation: ids follow creation, not time.
// EVENT: ^main create.* = 1
// EVENT: ^main/1 start
// EVENT: ^main/1/1 start
// EVENT: ^main/2 start
// EVENT: ^main detach
// COUNT: 3 ^main\S* join 
// COUNT: 1 ^main\S* detach 
// STDOUT: ^42 7\n$
#include <pthread.h>
#include <stdio.h>

static int shared;

static void* inner(void* argument) { return argument; }

static void* outer(void* argument) {
  pthread_t t;
  void* result;
  pthread_create(&t, 0, inner, argument);
  pthread_join(t, &result);
  pthread_exit(result);
}

static void* lone(void* argument) {
  (void)argument;
  shared = 7;
  return 0;
}

int main(void) {
  pthread_t a, b, c;
  void *first, *second;
  pthread_create(&a, 0, outer, (void*)42L);
  pthread_create(&b, 0, lone, 0);
  pthread_join(b, &second);
  pthread_create(&c, 0, inner, 0);
  pthread_detach(c);
  pthread_join(a, &first);
  printf("%ld %d\n", (long)first, shared);
  return 0;
}
