// The running example: three threads, inputs a, b, c. Line numbers of the statements are those of the paper, by #line.
//
// BINARY: no, inputs need expressions; tests/e2e/binary.py
// CASE pi1:
// INPUT: a=2
// INPUT: b=2
// INPUT: c=3
// SCHEDULE: main:7 main/1:4 main/2:6 main/3:2
// EVENTS: 1T R2(x)=0 W2(z)=2 6F R9(y)=0 R10(x)=0 10F R13(z)=2 W13(x)=1 14F
// CASE pi2:
// INPUT: a=1
// INPUT: b=2
// INPUT: c=3
// SCHEDULE: main:7 main/1:5 main/2:6 main/3:2
// EVENTS: 1F R4(x)=0 W4(z)=-2 W5(x)=3 6F R9(y)=0 R10(x)=3 10T R11(z)=-2 W11(y)=-1 14F
// CASE pi3:
// INPUT: a=1
// INPUT: b=2
// INPUT: c=3
// SCHEDULE: main:7 main/1:3 main/2:3 main/1:2 main/2:3 main/3:2
// EVENTS: 1F R4(x)=0 W4(z)=-2 6F R9(y)=0 R10(x)=0 10F W5(x)=3 R13(z)=-2 W13(x)=-3 14F
#include <pthread.h>
#include <stem.h>

int x, y, z;

static void* t0(void* argument) {
  int a = stem_input_int("a");
  (void)argument;
#line 1
  if (a > 1)
#line 2
    z = x + 2;
  else {
#line 4
    z = x - 2;
#line 5
    x = 3;
  }
#line 100
  return 0;
}

static void* t1(void* argument) {
  int b = stem_input_int("b");
  (void)argument;
#line 6
  if (b > 5)
#line 7
    b = y + 1;
  else
#line 9
    b = y - 1;
#line 10
  if (x > 2)
#line 11
    y = z + 1;
  else
#line 13
    x = z - 1;
#line 200
  return 0;
}

static void* t2(void* argument) {
  int c = stem_input_int("c"), d;
  (void)argument;
#line 14
  if (c < 2)
#line 15
    d = 1;
  else
#line 17
    d = 0;
#line 300
  return (void*)(long)d;
}

int main(void) {
  pthread_t t[3];
  pthread_create(&t[0], 0, t0, 0);
  pthread_create(&t[1], 0, t1, 0);
  pthread_create(&t[2], 0, t2, 0);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  return 0;
}
