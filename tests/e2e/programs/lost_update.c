// Two threads add one each without a lock. The schedule puts one's write between the other's read and write.
// CASE lost:
// BINARY: no, its schedule counts the operations of stem-cc
// SCHEDULE: main:5 main/1:2 main/2:4 main/1:2
// STDOUT: ^1\n$
// EVENTS: R20(n)=0 R20(n)=0 W20(n)=1 W20(n)=1
// CASE kept:
// BINARY: no, its schedule counts the operations of stem-cc
// SCHEDULE: main:5 main/1:4 main/2:4
// STDOUT: ^2\n$
// EVENTS: R20(n)=0 W20(n)=1 R20(n)=1 W20(n)=2
#include <pthread.h>
#include <stdio.h>

static int n;

static void* add(void* argument) {


  n = n + 1;
  return argument;
}

int main(void) {
  pthread_t t[2];
  pthread_create(&t[0], 0, add, 0);
  pthread_create(&t[1], 0, add, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  printf("%d\n", n);
  return 0;
}
