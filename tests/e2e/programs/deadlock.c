// Two mutexes in opposite order. The schedule lets each thread take its first one: a deadlock, seen and told.
// CASE forced:
// SCHEDULE: main:5 main/1:2 main/2:2
// EXIT: 97
// OUTCOME: deadlock
// STDERR: deadlock: no thread can go on
// STDERR: thread main/1 \(one\) waits to lock b at .*deadlock.c:26 in one, held by thread main/2 \(two\)
// STDERR: thread main/2 \(two\) waits to lock a at .*deadlock.c:35 in two, held by thread main/1 \(one\)
// STDERR: thread main waits to join
// CASE free:
// SCHEDULE: main:5 main/1:8 main/2:8
// EXIT: 0
// OUTCOME: exited
// STDOUT: ^2\n$
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static int n;

static void* one(void* argument) {
  pthread_mutex_lock(&a);


  pthread_mutex_lock(&b);
  ++n;
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return argument;
}

static void* two(void* argument) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  ++n;
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return argument;
}

int main(void) {
  pthread_t t[2];
  pthread_create(&t[0], 0, one, 0);
  pthread_create(&t[1], 0, two, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  printf("%d\n", n);
  return 0;
}
