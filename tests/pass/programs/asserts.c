#include <assert.h>
int x = 3, y = 1;
// EXPECT: assert x < 9 (slt x 9) = 1
int main(void) {
  assert(x < 9);
  return y - 1;
}
