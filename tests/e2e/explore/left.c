// main does not wait for the thread.
#include <pthread.h>

int x, y;

static void* late(void* unused) {
  y = x;
  return unused;
}

int main(void) {
  pthread_t t;
  x = 1;
  pthread_create(&t, 0, late, 0);
  return y;
}
