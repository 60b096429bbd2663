// Read-write locks: several readers at once, writers alone, try and timed.
// STDOUT: ^200 0 0 16 16 110\n$
// EVENT: rdlock table
// EVENT: wrlock table
// EVENT: rwunlock table
// EVENT: wrlock-fail
// EVENT: rdlock-fail
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int value, torn, second_reader, writer_in_readers, reader_in_writer, late;

static void* reader(void* argument) {
  for (int i = 0; i < 50; ++i) {
    pthread_rwlock_rdlock(&table);
    if (value % 2) torn = 1;
    pthread_rwlock_unlock(&table);
  }
  return argument;
}

static void* writer(void* argument) {
  for (int i = 0; i < 50; ++i) {
    pthread_rwlock_wrlock(&table);
    ++value;
    ++value;
    pthread_rwlock_unlock(&table);
  }
  return argument;
}

static void* beside_reader(void* argument) {
  second_reader = pthread_rwlock_tryrdlock(&table);
  writer_in_readers = pthread_rwlock_trywrlock(&table);
  pthread_rwlock_unlock(&table);
  return argument;
}

static void* beside_writer(void* argument) {
  struct timespec soon;
  reader_in_writer = pthread_rwlock_tryrdlock(&table);
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  late = pthread_rwlock_timedrdlock(&table, &soon);
  return argument;
}

static void alone(void* (*body)(void*)) {
  pthread_t t;
  pthread_create(&t, 0, body, 0);
  pthread_join(t, 0);
}

int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; ++i) pthread_create(&t[i], 0, i % 2 ? reader : writer, 0);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], 0);
  pthread_rwlock_rdlock(&table);
  alone(beside_reader);
  pthread_rwlock_unlock(&table);
  pthread_rwlock_wrlock(&table);
  alone(beside_writer);
  pthread_rwlock_unlock(&table);
  pthread_rwlock_destroy(&table);
  printf("%d %d %d %d %d %d\n", value, torn, second_reader, writer_in_readers, reader_in_writer, late);
  return 0;
}
