// Threads still alive when main returns: one blocked on a mutex for good, one spinning, one asleep.
// EXIT: 2
// OUTCOME: exited 2
// EVENT: ^main/1 start
// EVENT: ^main/2 read
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop, running;

static void* blocked(void* argument) {
  __atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_lock(&m);
  return argument;
}

static void* spinning(void* argument) {
  __atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
  while (!stop) {
  }
  return argument;
}

static void* asleep(void* argument) {
  __atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
  for (;;) sleep(1000);
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_mutex_lock(&m);
  pthread_create(&t, 0, blocked, 0);
  pthread_create(&t, 0, spinning, 0);
  pthread_create(&t, 0, asleep, 0);
  while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) < 3) usleep(10);
  return 2;
}
