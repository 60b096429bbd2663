// The running example; #line gives every statement the number it has in docs/architecture's theory.
#include <pthread.h>
int input(const char* name);
int x, y, z;
static void* t0(void* p) {
  int a = *(int*)p;
#line 1
  if (a > 1)
    z = x + 2;
  else {
    z = x - 2;
    x = 3; }
  return 0;
}
static void* t1(void* p) {
  int b = *(int*)p;
#line 6
  if (b > 5)
    b = y + 1;
  else
    b = y - 1;
  if (x > 2)
    y = z + 1;
  else
    x = z - 1;
  return (void*)(long)b;
}
static void* t2(void* p) {
  int c = *(int*)p, d;
#line 14
  if (c < 2)
    d = 1;
  else
    d = 0;
  return (void*)(long)d;
}
#line 100
int main(void) {
  int in[3] = {input("a"), input("b"), input("c")};
  pthread_t t[3];
  pthread_create(&t[0], 0, t0, &in[0]);
  pthread_create(&t[1], 0, t1, &in[1]);
  pthread_create(&t[2], 0, t2, &in[2]);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
}
