// What lies in the padding of a struct is what the stack held before, the recorder's own values too: a replay finds the same there.
// STDOUT: ^400\n$
// CASE usual:
// CASE random:
// RECORD: --mode random --seed 2
#include <pthread.h>
#include <stdio.h>

struct part {
  long size;
  char kind;
};
static struct part *volatile last;
static struct part kept[8];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static __attribute__((noinline)) void locked(void) {
  pthread_mutex_lock(&m);
  sum++;
  pthread_mutex_unlock(&m);
}

static __attribute__((noinline)) void copy(int i) {
  struct part p[8];
  for (int k = 0; k < 8; k++) p[k].size = i, p[k].kind = (char)k;
  last = p;
  for (int k = 0; k < 8; k++) kept[k] = p[k];
}

static void *run(void *argument) {
  for (int i = 0; i < 100; i++) {
    locked();
    copy(i);
  }
  return argument;
}

int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, run, NULL);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  printf("%d\n", sum);
  return 0;
}
