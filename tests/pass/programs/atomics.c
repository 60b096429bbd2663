#include <stdatomic.h>
_Atomic int n = 1; int plain = 2; _Atomic(int*) where; int out; _Atomic float f = 1.0f;
int main(void) {
  // EXPECT: rmw n atomic = 1
  // EXPECT: write out = (add n 1)
  out = ++n;
  // EXPECT: read n atomic = 2
  // EXPECT: write out = n
  out = n;
  // EXPECT: write n atomic = 5
  atomic_store_explicit(&n, 5, memory_order_release);
  // EXPECT: cas n = 5 failed
  // EXPECT: branch if (eq n 4) = 0
  int expected = 4;
  if (atomic_compare_exchange_strong(&n, &expected, 9)) out = 1;
  // EXPECT: write out = n
  out = expected;
  // EXPECT: cas plain = 2 done
  out = __sync_val_compare_and_swap(&plain, 2, 8);
  // EXPECT: rmw plain atomic = 8
  __sync_fetch_and_or(&plain, 1);
  // EXPECT: rmw where atomic = 0
  atomic_exchange(&where, &out);
  f = f + 1;
  return 0;
}
