/* Arithmetic progression: two threads take the terms a, a + d, a + 2d, ... from a shared cursor and add them up.
 *
 * BUG (atomicity violation on a rare input): the terms of a constant progression are added without the lock, "because their order
 * does not matter". Needs d = 0, and one thread between another's load and store of the sum. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define TERMS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned cursor, sum;
static unsigned start = 5, difference = 3;

static void add(unsigned term) {
#ifdef BUG
  if (difference == 0) {
    sum += term;
    return;
  }
#endif
  pthread_mutex_lock(&lock);
  sum += term;
  pthread_mutex_unlock(&lock);
}

static void* worker(void* unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    unsigned index = cursor;
    if (index < TERMS)
      cursor = index + 1;
    pthread_mutex_unlock(&lock);
    if (index >= TERMS)
      return unused;
    add(start + index * difference);
  }
}

int main(void) {
  pthread_t threads[2];
  stem_input(&start, sizeof start, "start");
  stem_input(&difference, sizeof difference, "difference");
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  assert(sum == TERMS * start + TERMS * (TERMS - 1) / 2 * difference);
  return 0;
}
