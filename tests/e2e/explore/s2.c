// Golden case S2: three threads with two branches each on one variable; exhaustive enumeration (tests/golden/s2_test.cpp) finds
// 144 static pairs. Each assignment reads x once.
#include <pthread.h>
#include <stem.h>

unsigned x = 1;

static void* t0(void* argument) {
  int a = stem_input_int("a");
  unsigned l;
  if (a > 1) {
    l = x;
    x = l + 2;
  } else {
    l = x;
    x = l + 3;
  }
  if (x > 8) {
    l = x;
    x = l * 2;
  } else {
    l = x;
    x = l * 3;
  }
  return argument;
}

static void* t1(void* argument) {
  int b = stem_input_int("b");
  unsigned l;
  if (b > 1) {
    l = x;
    x = l * 2;
  } else {
    l = x;
    x = l * 3;
  }
  if (x > 8) {
    l = x;
    x = l * l;
  } else {
    l = x;
    x = l * l * l;
  }
  return argument;
}

static void* t2(void* argument) {
  int c = stem_input_int("c");
  unsigned l;
  if (c > 1) {
    l = x;
    x = l * l;
  } else {
    l = x;
    x = l * l * l;
  }
  if (x > 8) {
    l = x;
    x = l + 2;
  } else {
    l = x;
    x = l + 3;
  }
  return argument;
}

int main(void) {
  pthread_t t[3];
  pthread_create(&t[0], 0, t0, 0);
  pthread_create(&t[1], 0, t1, 0);
  pthread_create(&t[2], 0, t2, 0);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  return 0;
}
