// Futexes by the system call: a sleep whose word has changed, one that is woken, one that times out, and sleeps with masks, which the
// kernel does: a wake-up with the other mask does not end them.
// STDOUT: ^changed 1 late 1 woken 2 kept 1 masked 1\n$
// STDERR: a futex operation that is not modelled
// EVENT: wait word:
// EVENT: wake word:
// EVENT: signal word:
// CASE usual:
// CASE random:
// RECORD: --mode random --seed 4
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int word, mask, awake;

static long futex(atomic_int *at, int operation, int value, const struct timespec *time, unsigned bits) {
  return syscall(SYS_futex, at, operation, value, time, NULL, bits);
}

static void *sleeper(void *p) {
  while (atomic_load(&word) == 0) futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, 0);
  atomic_fetch_add(&awake, 1);
  return p;
}

static void *masked(void *p) {
  while (atomic_load(&mask) == 0) futex(&mask, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, 2);
  return p;
}

int main(void) {
  pthread_t t[3];
  struct timespec second = {1, 0};
  int changed = futex(&word, FUTEX_WAIT_PRIVATE, 7, NULL, 0) == -1 && errno == EAGAIN;
  int late = futex(&word, FUTEX_WAIT_PRIVATE, 0, &second, 0) == -1 && errno == ETIMEDOUT;
  for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, sleeper, NULL);
  pthread_create(&t[2], NULL, masked, NULL);
  atomic_store(&word, 1);
  futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, 0);
  futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, 0);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  int kept = futex(&mask, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, 1) == 0;
  atomic_store(&mask, 1);
  futex(&mask, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, 0);
  pthread_join(t[2], NULL);
  printf("changed %d late %d woken %d kept %d masked %d\n", changed, late, atomic_load(&awake), kept, atomic_load(&mask));
  return 0;
}
