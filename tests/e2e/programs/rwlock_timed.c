// Timed read-write locks of all four kinds: in time, too late, and with times that are none.
// FLAGS: -D_GNU_SOURCE
// STDOUT: ^late 110 110 110 110 taken 0 0 bad 22 22 own 35\n$
// EVENT: rdlock table
// EVENT: wrlock table
// COUNT: 2 rdlock-fail table.* = 110
// COUNT: 2 wrlock-fail table.* = 110
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int late[4], taken[2], value;

static struct timespec in(clockid_t clock, int seconds) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_sec += seconds;
  return t;
}

static void* beside(void* argument) {
  struct timespec real = in(CLOCK_REALTIME, 1), steady = in(CLOCK_MONOTONIC, 1);
  late[0] = pthread_rwlock_timedrdlock(&table, &real);
  late[1] = pthread_rwlock_timedwrlock(&table, &real);
  late[2] = pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, &steady);
  late[3] = pthread_rwlock_clockwrlock(&table, CLOCK_MONOTONIC, &steady);
  return argument;
}

static void* in_time(void* argument) {
  struct timespec steady = in(CLOCK_MONOTONIC, 1000);
  taken[0] = pthread_rwlock_clockwrlock(&table, CLOCK_MONOTONIC, &steady);
  value++;
  pthread_rwlock_unlock(&table);
  taken[1] = pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, &steady);
  pthread_rwlock_unlock(&table);
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_rwlock_wrlock(&table);
  pthread_create(&t, 0, beside, 0);
  pthread_join(t, 0);
  pthread_create(&t, 0, in_time, 0);
  value++;
  int own = pthread_rwlock_rdlock(&table);
  pthread_rwlock_unlock(&table);
  pthread_join(t, 0);
  struct timespec none = {0, -1};
  int bad = pthread_rwlock_timedrdlock(&table, &none), worse = pthread_rwlock_clockwrlock(&table, CLOCK_PROCESS_CPUTIME_ID, &none);
  printf("late %d %d %d %d taken %d %d bad %d %d own %d\n", late[0], late[1], late[2], late[3], taken[0], taken[1], bad, worse, own);
  return value != 2;
}
