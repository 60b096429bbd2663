/* LU: fraction-free elimination of a small matrix. Thread t owns the rows t, t + THREADS, ...; a barrier ends each step.
 *
 * BUG 1 (missing barrier on a rare input): a step whose pivot is 1 leaves the barrier out, "nothing is scaled". Needs such a pivot,
 * and a thread that uses a row of the other one before it is updated.
 * BUG 2 (barrier left out by one thread on a rare input): the owner of a row whose pivot is zero gives up, and the other one waits
 * for it. Needs a matrix that has a zero pivot. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define SIZE 4
#define THREADS 2

typedef unsigned matrix[SIZE][SIZE];

static matrix m = {{3, 1, 2, 5}, {7, 4, 1, 3}, {2, 8, 6, 1}, {9, 5, 3, 7}};
static pthread_barrier_t step_done;

static void eliminate(matrix a, int row, int k) {
  unsigned factor = a[row][k], pivot = a[k][k];
  for (int j = k; j < SIZE; j++)
    a[row][j] = a[row][j] * pivot - factor * a[k][j];
}

static void* worker(void* arg) {
  int own = (int)(long)arg;
  for (int k = 0; k < SIZE - 1; k++) {
    unsigned pivot = m[k][k];
#if BUG == 2
    if (pivot == 0 && k % THREADS == own)
      return NULL;
#endif
    if (pivot != 0)
      for (int row = k + 1; row < SIZE; row++)
        if (row % THREADS == own)
          eliminate(m, row, k);
#if BUG == 1
    if (pivot == 1)
      continue;
#endif
    pthread_barrier_wait(&step_done);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  matrix expected;
  stem_input(&m[0][0], sizeof m[0][0], "corner");
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++)
      expected[i][j] = m[i][j];
  pthread_barrier_init(&step_done, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, (void*)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);

  for (int k = 0; k < SIZE - 1; k++) /* the same by one thread */
    for (int row = k + 1; row < SIZE; row++)
      if (expected[k][k] != 0)
        eliminate(expected, row, k);
  for (int i = 0; i < SIZE; i++)
    assert(m[i][i] == expected[i][i]);
  return 0;
}
