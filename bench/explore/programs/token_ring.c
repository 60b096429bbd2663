/* Token ring: stations pass one token on; a monitor makes a new token when it has seen none for a while.
 *
 * BUG (order violation on a rare input): the monitor gives up after `patience` looks, and does not look again under the lock before it
 * makes a token. Needs a small patience, and the monitor before the first station. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define STATIONS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int holder = -1, tokens, passed;
static int patience = 40;

static void* station(void* arg) {
  int own = *(int*)arg;
  pthread_mutex_lock(&lock);
  while (holder != own)
    pthread_cond_wait(&moved, &lock);
  assert(tokens == 1);
  passed++;
  holder = own + 1;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void* starter(void* unused) {
  pthread_mutex_lock(&lock);
  if (tokens == 0) {
    tokens++;
    holder = 0;
    pthread_cond_broadcast(&moved);
  }
  pthread_mutex_unlock(&lock);
  return unused;
}

static void* monitor(void* unused) {
  int seen = 0;
  for (int look = 0; look < patience && !seen; look++) {
    pthread_mutex_lock(&lock);
    seen = tokens;
    pthread_mutex_unlock(&lock);
  }
  if (seen)
    return unused;
  pthread_mutex_lock(&lock);
#ifdef BUG
  tokens++;
  if (holder < 0)
    holder = 0;
  pthread_cond_broadcast(&moved);
#else
  if (tokens == 0) {
    tokens++;
    holder = 0;
    pthread_cond_broadcast(&moved);
  }
#endif
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[STATIONS + 2];
  int numbers[STATIONS];
  stem_input(&patience, sizeof patience, "patience");
  if (patience > 1000)
    patience = 1000;
  pthread_create(&threads[STATIONS], NULL, starter, NULL);
  for (int i = 0; i < STATIONS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, station, &numbers[i]);
  }
  pthread_create(&threads[STATIONS + 1], NULL, monitor, NULL);
  for (int i = 0; i < STATIONS + 2; i++)
    pthread_join(threads[i], NULL);
  assert(passed == STATIONS);
  return 0;
}
