// Semaphores: wait, post, trywait and timedwait that fail.
// STDOUT: ^30 1 1 0\n$
// EVENT: sem-init items.* = 0
// EVENT: sem-post items
// EVENT: sem-wait items
// EVENT: sem-fail
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static sem_t items, room;
static int box, sum;

static void* produce(void* argument) {
  for (int i = 0; i < 10; ++i) {
    sem_wait(&room);
    box = 3;
    sem_post(&items);
  }
  return argument;
}

static void* consume(void* argument) {
  for (int i = 0; i < 10; ++i) {
    sem_wait(&items);
    sum += box;
    sem_post(&room);
  }
  return argument;
}

int main(void) {
  pthread_t a, b;
  sem_init(&items, 0, 0);
  sem_init(&room, 0, 1);
  pthread_create(&a, 0, consume, 0);
  pthread_create(&b, 0, produce, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  int busy = sem_trywait(&items) == -1 && errno == EAGAIN;
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  int late = sem_timedwait(&items, &soon) == -1 && errno == ETIMEDOUT;
  int value = -1;
  sem_getvalue(&items, &value);
  sem_destroy(&items);
  sem_destroy(&room);
  printf("%d %d %d %d\n", sum, busy, late, value);
  return 0;
}
