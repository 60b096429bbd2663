/* Producer-consumer: a bounded queue with a mutex and two condition variables; the consumer does a little work an item. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CAPACITY 64

static struct {
  long items[CAPACITY];
  unsigned head, tail;
  pthread_mutex_t m;
  pthread_cond_t not_empty, not_full;
} q = {{0}, 0, 0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};

static long count, sum;

static void put(long item) {
  pthread_mutex_lock(&q.m);
  while (q.tail - q.head == CAPACITY) pthread_cond_wait(&q.not_full, &q.m);
  q.items[q.tail % CAPACITY] = item;
  ++q.tail;
  pthread_cond_signal(&q.not_empty);
  pthread_mutex_unlock(&q.m);
}

static long get(void) {
  pthread_mutex_lock(&q.m);
  while (q.tail == q.head) pthread_cond_wait(&q.not_empty, &q.m);
  long item = q.items[q.head % CAPACITY];
  ++q.head;
  pthread_cond_signal(&q.not_full);
  pthread_mutex_unlock(&q.m);
  return item;
}

static void* produce(void* argument) {
  for (long i = 1; i <= count; ++i) put(i);
  put(0);
  return argument;
}

static void* consume(void* argument) {
  for (;;) {
    long item = get();
    if (item == 0) return argument;
    unsigned long h = (unsigned long)item;
    for (int i = 0; i < 40; ++i) h = (h ^ h >> 7) * 0x9e3779b97f4a7c15ul;
    sum += (long)(h >> 60);
  }
}

int main(int argc, char** argv) {
  pthread_t a, b;
  count = argc > 1 ? atol(argv[1]) : 300000;
  pthread_create(&a, 0, consume, 0);
  pthread_create(&b, 0, produce, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  printf("%ld\n", sum);
  return 0;
}
