// What joins order. Lines that the test names are fixed by #line.
#include <pthread.h>
static int one, many, late, loop, part, twice, branch;
static pthread_t global[4];
static void* first(void* p) {
#line 10
  p = one ? p : 0;
  return p;
}
static void* second(void* p) {
#line 20
  one = many;
  return p;
}
static void* worker(void* p) {
#line 30
  p = many ? p : 0;
#line 31
  p = late ? p : 0;
  return p;
}
static void* looped(void* p) {
#line 40
  return loop ? p : 0;
}
static void* partly(void* p) {
#line 50
  return part ? p : 0;
}
static void* again(void* p) {
#line 60
  return twice ? p : 0;
}
static void* maybe(void* p) {
#line 70
  return branch ? p : 0;
}
static void finish(void) {
#line 90
  late = 3;
}
int main(int argc, char** argv) {
  pthread_t a, b, c, d, several[2], all[8], some[8];
  pthread_create(&a, 0, first, argv);
#line 100
  one = 1;
  pthread_join(a, 0);
#line 101
  one = 2;
  // It starts when the first has ended.
  pthread_create(&b, 0, second, argv);
  pthread_create(&several[0], 0, worker, argv);
  pthread_create(&several[1], 0, worker, argv);
  pthread_join(several[0], 0);
#line 110
  many = 1;
#line 111
  late = 1;
  pthread_join(several[1], 0);
#line 112
  many = 2;
  finish();
  for (int i = 0; i < 8; i++) {
    pthread_create(&all[i], 0, looped, argv);
#line 120
    loop++;
  }
  for (int i = 0; i < 8; i++) {
    pthread_join(all[i], 0);
#line 121
    loop = i;
  }
#line 122
  loop = 99;
  for (int i = 0; i < 8; i++) pthread_create(&some[i], 0, partly, argv);
  for (int i = 0; i < 7; i++) pthread_join(some[i], 0);
#line 130
  part = 1;
  // Whoever holds the handle's place last is the one that is joined.
  pthread_create(&c, 0, again, argv);
  pthread_create(&c, 0, again, argv);
  pthread_join(c, 0);
#line 140
  twice = 1;
  pthread_create(&d, 0, maybe, argv);
  if (argc > 1) pthread_join(d, 0);
#line 150
  branch = 1;
  pthread_join(b, 0);
  return 0;
}
