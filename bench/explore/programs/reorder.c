/* Reorder: setters change a pair of variables together, a checker looks at both. THREADS counts the setters and the checker.
 *
 * BUG (order violation): the setters change the two without the lock. The checker reads its instructions first, so it comes after the
 * setters. Needs the checker between the two stores of the first setter, before any other setter's second store. */
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 2
#endif
#define INSTRUCTIONS 24

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int left, right;
static int instructions = INSTRUCTIONS;

static void* setter(void* unused) {
#ifndef BUG
  pthread_mutex_lock(&lock);
#endif
  left = 1;
  right = -1;
#ifndef BUG
  pthread_mutex_unlock(&lock);
#endif
  return unused;
}

static void* checker(void* unused) {
  while (instructions > 0)
    instructions--;
  pthread_mutex_lock(&lock);
  if (left == 1)
    assert(right == -1);
  else
    assert(left == 0 && right == 0);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS - 1; i++)
    pthread_create(&threads[i], NULL, setter, NULL);
  pthread_create(&threads[THREADS - 1], NULL, checker, NULL);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert(instructions == 0);
  return 0;
}
