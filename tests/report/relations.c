// What stands between a write and the read that takes it, one variable each (tests/e2e/reports.py): under a common lock,
// ordered by join, atomic, ordered only by the order in which a lock was taken, and not at all.
#include <pthread.h>
#include <stdatomic.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int locked, joined, passed, racy, ready;
atomic_int atomic;

static void* writer(void* unused) {
  joined = 1;
  racy = 1;
  passed = 1;
  atomic_store(&atomic, 1);
  pthread_mutex_lock(&lock);
  locked = 1;
  ready = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}

static void* reader(void* unused) {
  int sum = racy;
  int go = 0;
  while (!go) {
    pthread_mutex_lock(&lock);
    go = ready;
    sum += locked;
    pthread_mutex_unlock(&lock);
  }
  sum += passed;
  sum += atomic_load(&atomic);
  return (void*)(long)sum;
}

int main(void) {
  pthread_t w, r;
  pthread_create(&w, 0, writer, 0);
  pthread_create(&r, 0, reader, 0);
  pthread_join(w, 0);
  pthread_join(r, 0);
  return joined == 1 ? 0 : 1;
}
