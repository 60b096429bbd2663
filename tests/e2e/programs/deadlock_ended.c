// A thread ends with a mutex in its hands: whoever wants it waits for ever. The trace ends with somebody who has not ended, and
// the message says who holds the mutex.
// EXIT: 97
// OUTCOME: deadlock
// STDERR: waits to lock m at .*deadlock_ended.c:\d+ in take, held by thread main/\d \(take\), which has ended
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void* take(void* argument) {
  pthread_mutex_lock(&m);
  return argument;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, take, 0);
  pthread_create(&b, 0, take, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
