/* fork and what follows it: argv[1] says which. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks.h"

static int x;
extern char** environ;

static void* idle(void* p) {
  for (int i = 0; i < 10; i++) STORE(x, i);
  return p;
}

static void* stay(void* p) {
  while (LOAD(x) != -1) usleep(1000);
  return p;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int status = 0;
  pthread_t t;
  if (!strcmp(what, "child")) {
    CALL(pthread_create(&t, 0, idle, 0));
    CALL(pthread_join(t, 0));
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set) == atoi(argv[2]) ? 11 : 12;
  }
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  char cpus[16];
  snprintf(cpus, sizeof cpus, "%d", CPU_COUNT(&set));
  CALL(pthread_create(&t, 0, !strcmp(what, "threads") ? stay : idle, 0));
  if (strcmp(what, "threads")) CALL(pthread_join(t, 0));
  char* arguments[] = {argv[0], "child", cpus, 0};
  pid_t pid = 0;
  if (!strcmp(what, "spawn")) {
    if (posix_spawn(&pid, argv[0], 0, 0, arguments, environ)) return 1;
  } else if (!strcmp(what, "system")) {
    char command[4096];
    snprintf(command, sizeof command, "exec '%s' child %s", argv[0], cpus);
    status = system(command);
  } else if (!strcmp(what, "vfork")) {
    pid = vfork();
    if (pid == 0) {
      execv(argv[0], arguments);
      _exit(9);
    }
  } else {
    pid = fork();
    if (pid == 0 && !strcmp(what, "exec")) {
      execv(argv[0], arguments);
      _exit(9);
    }
    if (pid == 0) {
      STORE(x, 5);
      if (strcmp(what, "threads")) {
        CALL(pthread_create(&t, 0, idle, 0));
        CALL(pthread_join(t, 0));
      }
      exit(11);
    }
  }
  if (pid && waitpid(pid, &status, 0) != pid) return 2;
  if (wait(&(int){0}) != -1) return 3; /* the collector is nobody's child */
  STORE(x, -1);
  if (!strcmp(what, "threads")) CALL(pthread_join(t, 0));
  printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}
