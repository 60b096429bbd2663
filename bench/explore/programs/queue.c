/* Queue: a producer puts orders into a bounded buffer, in batches; each packer takes one order.
 *
 * BUG (lost wake-up on a rare input): a batch is announced by one signal, however many orders are in it. Needs a batch of more
 * than one, and packers that wait already. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define PACKERS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int buffer[PACKERS], head, tail, waiting_orders;
static int packed;

static void put(int order) {
  buffer[tail] = order;
  tail = (tail + 1) % PACKERS;
  waiting_orders++;
}

static void* producer(void* arg) {
  int batch = *(int*)arg;
  for (int made = 0; made < PACKERS;) {
    pthread_mutex_lock(&lock);
    int in_batch = 0;
    do {
      put(100 + made);
      made++;
      in_batch++;
#ifndef BUG
      pthread_cond_signal(&filled);
#endif
    } while (in_batch < batch && made < PACKERS);
#ifdef BUG
    pthread_cond_signal(&filled);
#endif
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void* packer(void* unused) {
  pthread_mutex_lock(&lock);
  while (waiting_orders == 0)
    pthread_cond_wait(&filled, &lock);
  int order = buffer[head];
  head = (head + 1) % PACKERS;
  waiting_orders--;
  packed += order;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t maker, packers[PACKERS];
  int batch = 1;
  stem_input(&batch, sizeof batch, "batch");
  pthread_create(&maker, NULL, producer, &batch);
  for (int i = 0; i < PACKERS; i++)
    pthread_create(&packers[i], NULL, packer, NULL);
  pthread_join(maker, NULL);
  for (int i = 0; i < PACKERS; i++)
    pthread_join(packers[i], NULL);
  assert(waiting_orders == 0 && packed == 303);
  return 0;
}
