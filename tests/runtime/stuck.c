/* Runs that cannot go on: argv[1] says which. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hooks.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int x, y, at_a, at_b;

static void* one(void* p) {
  CALL(pthread_mutex_lock(&a));
  STORE(at_a, 1);
  while (!LOAD(at_b)) sched_yield();
  CALL(pthread_mutex_lock(&b));
  return p;
}

static void* two(void* p) {
  CALL(pthread_mutex_lock(&b));
  STORE(at_b, 1);
  while (!LOAD(at_a)) sched_yield();
  CALL(pthread_mutex_lock(&a));
  return p;
}

static void* spin_x(void* p) {
  while (!LOAD(x)) {
  }
  STORE(y, 1);
  return p;
}

static void* spin_y(void* p) {
  while (!LOAD(y)) usleep(10);
  STORE(x, 1);
  return p;
}

static void* wait_for_ever(void* p) {
  CALL(pthread_mutex_lock(&a));
  CALL(pthread_cond_wait(&never, &a));
  return p;
}

/* No livelock: it reads one value again and again, but it computes, and ends. */
static void* compute(void* p) {
  unsigned long sum = 1;
  for (int i = 0; i < 50000; i++) sum = sum * 31 + (unsigned)LOAD(x);
  STORE(y, (int)sum | 1);
  return p;
}

static void* self_lock(void* p) {
  CALL(pthread_mutex_lock(&a));
  CALL(pthread_mutex_lock(&a));
  return p;
}

int main(int argc, char** argv) {
  pthread_t t[2];
  const char* what = argc > 1 ? argv[1] : "";
  void* (*first)(void*) = one;
  void* (*second)(void*) = two;
  if (!strcmp(what, "livelock")) first = spin_x, second = spin_y;
  if (!strcmp(what, "wait")) first = second = wait_for_ever;
  if (!strcmp(what, "compute")) first = second = compute;
  if (!strcmp(what, "self")) first = second = self_lock;
  CALL(pthread_create(&t[0], 0, first, 0));
  CALL(pthread_create(&t[1], 0, second, 0));
  CALL(pthread_join(t[0], 0));
  CALL(pthread_join(t[1], 0));
  puts("done");
  return 0;
}
