// Named semaphores, and waiting with a limit: sem_open, sem_clockwait, sem_timedwait, in time and too late.
// FLAGS: -D_GNU_SOURCE
// STDOUT: ^7 late 1 1 again 1 closed 0 0\n$
// COUNT: 2 sem-fail
// EVENT: main/1 sem-wait
// EVENT: main sem-post
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static sem_t* go;
static int box, got;

static void* run(void* argument) {
  struct timespec long_enough;
  clock_gettime(CLOCK_MONOTONIC, &long_enough);
  long_enough.tv_sec += 1000;
  while (sem_clockwait(go, CLOCK_MONOTONIC, &long_enough) != 0) continue;
  got = box;
  return argument;
}

int main(void) {
  char name[64];
  pthread_t t;
  snprintf(name, sizeof name, "/stem-test-%d", (int)getpid());
  go = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  if (go == SEM_FAILED) return perror("sem_open"), 1;
  sem_t* same = sem_open(name, 0);
  pthread_create(&t, 0, run, 0);
  box = 7;
  sem_post(same);
  pthread_join(t, 0);
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  int late = sem_timedwait(go, &soon) == -1 && errno == ETIMEDOUT;
  clock_gettime(CLOCK_MONOTONIC, &soon);
  soon.tv_sec += 1;
  int too = sem_clockwait(go, CLOCK_MONOTONIC, &soon) == -1 && errno == ETIMEDOUT;
  sem_unlink(name);
  int gone = sem_open(name, 0) == SEM_FAILED && errno == ENOENT;
  printf("%d late %d %d again %d closed %d %d\n", got, late, too, gone, sem_close(same), sem_close(go));
  return 0;
}
