/* Blackscholes: threads price a portfolio of options, a slice each, then add up what they found. Fixed-point arithmetic.
 *
 * BUG (off-by-one on a rare input): the slices leave the remainder out when the number of options is not a multiple of the number of
 * threads. Needs such a number. The portfolios of the tests are all full. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define THREADS 3
#define MOST 12

struct option {
  int spot, strike, volatility; /* hundredths */
};

static struct option portfolio[MOST];
static int price[MOST];
static int options = 9;
static int value;
static pthread_barrier_t priced;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A polynomial stands in for the normal distribution's integral. */
static int price_of(const struct option* o) {
  int moneyness = (o->spot - o->strike) * 100 / o->strike, d = moneyness + o->volatility / 2;
  int share = 50 + d - d * d / 400;
  return (o->spot * share - o->strike * (share - o->volatility / 4)) / 100 + 1;
}

static void* trader(void* arg) {
  int own = (int)(long)arg, slice = options / THREADS, from = own * slice, to = from + slice, sum = 0;
#ifndef BUG
  if (own == THREADS - 1)
    to = options;
#endif
  for (int i = from; i < to; i++)
    price[i] = price_of(&portfolio[i]);
  pthread_barrier_wait(&priced);
  for (int i = own; i < options; i += THREADS) {
    assert(price[i] != 0);
    sum += price[i];
  }
  pthread_mutex_lock(&lock);
  value += sum;
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  stem_input(&options, sizeof options, "options");
  if (options < 0 || options > MOST)
    return 2; /* usage */
  for (int i = 0; i < MOST; i++)
    portfolio[i] = (struct option){5000 + 100 * i, 4800 + 90 * i, 20 + i};
  pthread_barrier_init(&priced, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, trader, (void*)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert(value >= options);
  return 0;
}
