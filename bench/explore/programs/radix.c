/* Radix sort: each thread looks through its half of the keys for the largest, which says how many digits there are; then each
 * thread ranks its keys digit by digit, with a barrier between the steps.
 *
 * BUG 1 (order violation on a rare input): a thread reads the largest key before the other one has added its own. Needs a key with
 * more digits than all others, and the other thread ahead of the one that has it.
 * BUG 2 (off-by-one on a rare input): the loop over the digits ends one early for a key that is a power of the radix. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define THREADS 2
#define KEYS 6
#define BITS 4
#define RADIX (1u << BITS)

static unsigned keys[KEYS] = {9, 3, 12, 7, 1, 5}, sorted[KEYS];
static unsigned largest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t step_done;

static unsigned digits_of(unsigned key) {
  unsigned digits = 1;
#if BUG == 2
  while (key > RADIX && digits < 8) {
#else
  while (key >= RADIX && digits < 8) {
#endif
    key >>= BITS;
    digits++;
  }
  return digits;
}

/* Where key i belongs, by its lowest digits: after all that are smaller, and after equal ones before it. */
static unsigned rank(unsigned i, unsigned mask) {
  unsigned position = 0;
  for (unsigned j = 0; j < KEYS; j++)
    position += (keys[j] & mask) < (keys[i] & mask) || ((keys[j] & mask) == (keys[i] & mask) && j < i);
  return position;
}

static void* worker(void* arg) {
  unsigned own = (unsigned)(long)arg, from = own * KEYS / THREADS, to = (own + 1) * KEYS / THREADS, most = 0;
  for (unsigned i = from; i < to; i++)
    if (keys[i] > most)
      most = keys[i];
  pthread_mutex_lock(&lock);
  if (most > largest)
    largest = most;
  pthread_mutex_unlock(&lock);
#if BUG != 1
  pthread_barrier_wait(&step_done);
#endif
  pthread_mutex_lock(&lock);
  unsigned digits = digits_of(largest);
  pthread_mutex_unlock(&lock);
  for (unsigned i = from; i < to; i++)
    sorted[rank(i, digits < 8 ? (1u << digits * BITS) - 1 : ~0u)] = keys[i];
  pthread_barrier_wait(&step_done);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  stem_input(&keys[4], sizeof keys[4], "key");
  pthread_barrier_init(&step_done, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, (void*)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (int i = 1; i < KEYS; i++)
    assert(sorted[i - 1] <= sorted[i]);
  return 0;
}
