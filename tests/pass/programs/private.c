// A shared read kept in private memory keeps its expression, and costs no event there.
#include <stdlib.h>
#include <string.h>
int x = 3, y, out;
struct pair { int a, b; };

static int first_of(struct pair* p, int i) { return i ? p->a : p->b; }

int in_array(int i) {
  // EXPECT: read x = 3
  // EXPECT: branch if (slt 2 x) = 1
  int array[8];
  memset(array, 0, sizeof array);
  array[i & 7] = x;
  if (array[1] > 2) return 1;
  return 0;
}
int in_struct(int i) {
  // EXPECT: read x = 3
  // EXPECT: branch if (slt (add x 1) 9) = 1
  struct pair p;
  p.a = x + 1;
  p.b = i;
  if (first_of(&p, i) < 9) return 1;
  return 0;
}
int on_heap(int i) {
  // EXPECT: read x = 3
  int* h = malloc(4 * sizeof *h);
  h[i] = x;
  int r = h[1] > 1 ? 5 : 6;
  free(h);
  return r;
}
int copied(int i) {
  // EXPECT: read x = 3
  // EXPECT: branch if (eq x 4) = 0
  int a[6], b[6];
  memset(a, 0, sizeof a);
  a[i] = x;
  memcpy(b, a, sizeof b);
  if (b[i] == 4) return 1;
  return 2;
}
int overwritten(int i) {
  // The symbolic value is gone when something concrete takes its place.
  int a[4];
  a[i] = y;
  a[1] = 17;
  return a[i] == 17;
}
struct big { int v[12]; };
struct big shared_big = {{1, 2, 3, 4}};
int by_value(struct big b, int i) { return b.v[i]; }
int from_shared(int i) {
  // EXPECT: copy local = shared_big 48 to private
  // EXPECT: branch if (eq local = shared_big 2) = 1
  struct big local = shared_big;
  if (local.v[i] == 2) return 1;
  return 0;
}
int main(void) {
  volatile int one = 1;
  int i = one;
  out = in_array(i) + in_struct(i) + on_heap(i) + copied(i) + overwritten(i) + from_shared(i);
  // EXPECT: write out = (add (add (add (add 2 (ite (slt 1 x) 5 6)) 2) 1) 1)
  struct big b;
  memset(&b, 0, sizeof b);
  b.v[i] = x;
  // Passed by value it is held fixed.
  // EXPECT: pin (part x) at call
  return by_value(b, 1) != 3;
}
// NEVER: array|write h|read h|alloc|free|stack
