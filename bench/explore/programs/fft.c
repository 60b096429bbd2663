/* FFT: the Walsh-Hadamard transform (a Fourier transform without multiplications) of a few numbers, stage by stage. Threads share the
 * butterflies of a stage; a barrier ends it. The inverse transform scales at the end.
 *
 * BUG 1 (missing barrier on a rare input): there is none between the last stage and the scaling. Needs the inverse transform, and a
 * thread that scales what another one still has to compute.
 * BUG 2 (off-by-one on a rare input): the butterflies are divided so that a transform with fewer of them than threads computes none.
 * Needs the smallest size. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define THREADS 2
#define MOST 8

static int data[MOST] = {4, 1, -3, 2, 0, 5, -1, 6};
static unsigned points = MOST, inverse;
static pthread_barrier_t stage_done;

static void butterfly(int* a, unsigned half, unsigned index) {
  unsigned low = index / half * 2 * half + index % half, high = low + half;
  int x = a[low], y = a[high];
  a[low] = x + y;
  a[high] = x - y;
}

static void* worker(void* arg) {
  unsigned own = (unsigned)(long)arg, butterflies = points / 2;
#if BUG == 2
  unsigned share = butterflies / THREADS, from = own * share, to = from + share;
#else
  unsigned share = (butterflies + THREADS - 1) / THREADS, from = own * share, to = from + share < butterflies ? from + share : butterflies;
#endif
  for (unsigned half = 1; half < points; half *= 2) {
    for (unsigned i = from; i < to; i++)
      butterfly(data, half, i);
#if BUG == 1
    if (half * 2 < points || inverse != 1)
#endif
      pthread_barrier_wait(&stage_done);
  }
  if (inverse == 1)
    for (unsigned i = own * points / THREADS; i < (own + 1) * points / THREADS; i++)
      data[i] /= (int)points;
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int expected[MOST];
  stem_input(&points, sizeof points, "points");
  stem_input(&inverse, sizeof inverse, "inverse");
  if (points != 2 && points != 4 && points != 8)
    return 2; /* usage */
  for (unsigned i = 0; i < MOST; i++)
    expected[i] = data[i];
  pthread_barrier_init(&stage_done, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, (void*)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);

  for (unsigned half = 1; half < points; half *= 2) /* the same by one thread */
    for (unsigned i = 0; i < points / 2; i++)
      butterfly(expected, half, i);
  for (unsigned i = 0; i < points; i++)
    assert(data[i] == (inverse == 1 ? expected[i] / (int)points : expected[i]));
  return 0;
}
