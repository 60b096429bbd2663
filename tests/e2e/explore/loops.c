// A loop and a recursion that an input bounds: there is always one more round to try, and something behind them to find.
#include <pthread.h>
#include <stem.h>

static int total, deep, found;

static int dive(int n) { return n <= 0 ? 0 : 1 + dive(n - 1); }

static void* worker(void* argument) {
  int n = *(int*)argument;
  for (int i = 0; i < n && i < 60; i++) total++;
  deep = dive(n > 20 ? 20 : n);
  if (n == 4242) found = 1;
  return argument;
}

int main(void) {
  pthread_t t;
  int n = stem_input_int("n");
  pthread_create(&t, 0, worker, &n);
  pthread_join(t, 0);
  return total + deep + found > 5000;
}
