/* A thread blocks in a call that nobody models (a raw read of a pipe, without the C library) and another thread is to write
 * what it waits for: the watchdog lets the other one run. */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks.h"

static int ends[2], x;

static long raw(long n, long a, void* b, long c) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return r;
}

static void* reader(void* p) {
  char c = 0;
  STORE(x, 1);
  raw(SYS_read, ends[0], &c, 1);
  STORE(x, LOAD(x) + c);
  return p;
}

static void* writer(void* p) {
  char c = 40;
  while (LOAD(x) != 1) sched_yield();
  STORE(x, 2);
  raw(SYS_write, ends[1], &c, 1);
  for (int i = 0; i < 100; i++) LOAD(x);
  return p;
}

int main(void) {
  pthread_t t[2];
  if (pipe(ends)) return 1;
  CALL(pthread_create(&t[0], 0, reader, 0));
  CALL(pthread_create(&t[1], 0, writer, 0));
  for (int i = 0; i < 2; i++) CALL(pthread_join(t[i], 0));
  printf("%d\n", LOAD(x));
  return 0;
}
