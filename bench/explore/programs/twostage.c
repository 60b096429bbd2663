/* Two-stage locking: a writer publishes a value and then its checksum, each under a lock of its own; readers look at the value and
 * then, in a strict audit (an input), at the checksum. THREADS counts the writer and the readers.
 *
 * BUG (atomicity violation): nothing holds the two stages together. A reader writes its journal first, so it comes to the value long
 * after the writer. Needs a strict audit, and the end of a reader between the two stages of the writer, which follow one another at
 * once. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#ifndef THREADS
#define THREADS 3
#endif
#define ENTRIES 24

static pthread_mutex_t value_lock = PTHREAD_MUTEX_INITIALIZER, checksum_lock = PTHREAD_MUTEX_INITIALIZER;
#ifndef BUG
static pthread_mutex_t stages = PTHREAD_MUTEX_INITIALIZER; /* held over both stages */
#endif
static int value, checksum;
static int journal[THREADS];
static int strict = 0;

static void begin(void) {
#ifndef BUG
  pthread_mutex_lock(&stages);
#endif
}

static void end(void) {
#ifndef BUG
  pthread_mutex_unlock(&stages);
#endif
}

static void* writer(void* unused) {
  begin();
  pthread_mutex_lock(&value_lock);
  value = 40;
  pthread_mutex_unlock(&value_lock);
  pthread_mutex_lock(&checksum_lock);
  checksum = 41;
  pthread_mutex_unlock(&checksum_lock);
  end();
  return unused;
}

static void* reader(void* own) {
  int *entries = own, seen;
  for (int i = 0; i < ENTRIES; i++)
    *entries += i;
  begin();
  pthread_mutex_lock(&value_lock);
  seen = value;
  pthread_mutex_unlock(&value_lock);
  if (seen != 0 && strict > 2) {
    pthread_mutex_lock(&checksum_lock);
    assert(checksum == seen + 1);
    pthread_mutex_unlock(&checksum_lock);
  }
  end();
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  stem_input(&strict, sizeof strict, "strict");
  pthread_create(&threads[0], NULL, writer, NULL);
  for (int i = 1; i < THREADS; i++)
    pthread_create(&threads[i], NULL, reader, &journal[i]);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  return 0;
}
