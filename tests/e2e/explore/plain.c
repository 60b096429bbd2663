// No inputs and no branches: only schedules differ.
#include <pthread.h>

int x, y;

static void* writer(void* unused) {
  x = 1;
  y = 2;
  return unused;
}

static void* reader(void* unused) {
  static int sum;
  sum = y + x;
  return unused;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, writer, 0);
  pthread_create(&b, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
