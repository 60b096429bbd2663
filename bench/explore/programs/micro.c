/* Micro: five threads, each of which adds its share to one total; they arrive one after another because each has more to count
 * than the one before. A total that is short of one share would do; less is refused.
 *
 * BUG (atomicity violation): the total is added to without the lock. Needs a thread that stands between its load and its store
 * of the total while two others count and add. */
#include <assert.h>
#include <pthread.h>

#define THREADS 5
#define STEP 16
#define ALL (THREADS + STEP * THREADS * (THREADS - 1) / 2)
#define LARGEST (1 + STEP * (THREADS - 1)) /* share */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;
static int counts[THREADS];

static void* worker(void* own) {
  int* count = own;
  for (int todo = (int)(count - counts) * STEP; todo > 0; todo--)
    *count += 1;
#ifdef BUG
  total = total + *count + 1;
#else
  pthread_mutex_lock(&lock);
  total = total + *count + 1;
  pthread_mutex_unlock(&lock);
#endif
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, &counts[i]);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  (void)lock;
  assert(total >= ALL - LARGEST);
  return 0;
}
