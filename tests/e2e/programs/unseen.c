// Memory that only a function nobody sees has written: the read is explained by an external write, never by what the memory
// held before. Memory that no such function had stays a definition of its own: the block's content at its allocation.
// FLAGS: -lm
// OPT: -O0 -O1
// STDOUT: ^3 -1 1\n$
// EVENT: ^main external main::exponent
// EVENT: ^main external main::sign
// EVENT: ^main external main::size
// EVENT: ^main read main::exponent.* = 3$
// NO-EVENT: external heap
// BINARY: no, what the C library writes is external
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void* run(void* argument) {
  return *(int*)argument == 7 ? argument : 0;
}

int main(int argc, char** argv) {
  (void)argv;
  int exponent, sign;
  size_t size;
  double x = 4.5 * argc, y = -0.5 * argc;
  frexp(x, &exponent);
  lgamma_r(y, &sign);
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_getstacksize(&attr, &size);
  int* never = malloc(sizeof *never);
  pthread_t t;
  pthread_create(&t, 0, run, never);
  pthread_join(t, 0);
  printf("%d %d %d\n", exponent, sign, size > 0);
  free(never);
  return 0;
}
