/* Ways to end: argv[1] says which; a thread may be alive meanwhile. */
#define _GNU_SOURCE
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks.h"

static int x;
static const char* what;

static void* spin(void* p) {
  for (;;) STORE(x, LOAD(x) + 1);
  return p;
}

static int recurse(int n) {
  volatile char big[4096];
  big[0] = (char)n;
  return recurse(n + 1) + big[0];
}

static void* act(void* p) {
  STORE(x, 7);
  if (!strcmp(what, "exit")) exit(3);
  if (!strcmp(what, "_exit")) _exit(4);
  if (!strcmp(what, "quick_exit")) quick_exit(5);
  if (!strcmp(what, "abort")) abort();
  if (!strcmp(what, "assert")) assert(LOAD(x) == 8);
  if (!strcmp(what, "segv")) STORE(*(int*)16, 1);
  if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(what, "term")) kill(getpid(), SIGTERM);
  if (!strcmp(what, "overflow")) recurse(0);
  return p;
}

int main(int argc, char** argv) {
  pthread_t t[2];
  what = argc > 1 ? argv[1] : "";
  CALL(pthread_create(&t[0], 0, spin, 0));
  if (!strcmp(what, "detached")) CALL(pthread_detach(t[0]));
  CALL(pthread_create(&t[1], 0, act, 0));
  if (!strcmp(what, "pthread_exit")) {
    CALL(pthread_join(t[1], 0));
    what = "exit";
    CALL(pthread_create(&t[1], 0, act, 0));
    pthread_exit(0);
  }
  CALL(pthread_join(t[1], 0));
  return 6;
}
