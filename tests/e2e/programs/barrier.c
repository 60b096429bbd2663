// Barriers: three threads, four rounds, one is told it is the serial one each time.
// STDOUT: ^4 0\n$
// EVENT: barrier-init b.* = 3
// COUNT: 12 barrier-arrive b
// COUNT: 12 barrier-leave b
// EVENT: barrier-leave b:\d+ = 3
#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t b;
static int round_of[3], serial, wrong;

static void* run(void* argument) {
  long me = (long)argument;
  for (int i = 0; i < 4; ++i) {
    round_of[me] = i;
    if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
    for (int j = 0; j < 3; ++j)
      if (round_of[j] < i) __atomic_store_n(&wrong, 1, __ATOMIC_SEQ_CST);
  }
  return 0;
}

int main(void) {
  pthread_t t[3];
  pthread_barrier_init(&b, 0, 3);
  for (long i = 0; i < 3; ++i) pthread_create(&t[i], 0, run, (void*)i);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  pthread_barrier_destroy(&b);
  printf("%d %d\n", serial, wrong);
  return 0;
}
