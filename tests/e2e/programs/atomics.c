// C11 atomics, __sync and __atomic builtins: loads, stores, every read-modify-write, compare-and-swap that fails.
// FLAGS: -std=gnu11
// STDOUT: ^400 15 1 9 2 -3 5 8 [17] 0 7\n$
// EVENT: rmw counter
// EVENT: write flag
// EVENT: read flag
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int counter, flag, bits = 15;
static int plain = 9, lowest = 5, unlocked;
static unsigned char small = 7;
static long wide = 8;

static void* run(void* argument) {
  for (int i = 0; i < 100; ++i) {
    int seen = atomic_load(&counter);
    while (!atomic_compare_exchange_weak(&counter, &seen, seen + 1)) {
    }
    atomic_fetch_or(&bits, 1);
    atomic_fetch_and(&bits, 15);
    atomic_fetch_xor(&bits, 0);
    __sync_fetch_and_add(&wide, 2);
    __sync_sub_and_fetch(&wide, 2);
  }
  return argument;
}

static void* publish(void* argument) {
  atomic_store_explicit(&flag, 1, memory_order_release);
  return argument;
}

int main(void) {
  pthread_t t[4], p;
  for (int i = 0; i < 4; ++i) pthread_create(&t[i], 0, run, 0);
  pthread_create(&p, 0, publish, 0);
  while (!atomic_load_explicit(&flag, memory_order_acquire)) {
  }
  for (int i = 0; i < 4; ++i) pthread_join(t[i], 0);
  pthread_join(p, 0);
  int expected = 1;
  int failed = !__atomic_compare_exchange_n(&plain, &expected, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  int old = __sync_val_compare_and_swap(&plain, 9, 2);
  int exchanged = __atomic_exchange_n(&plain, -3, __ATOMIC_SEQ_CST);
  __sync_synchronize();
  int locked = __sync_lock_test_and_set(&unlocked, 1);
  __sync_lock_release(&unlocked);
  int set = __atomic_test_and_set(&small, __ATOMIC_SEQ_CST);
  __atomic_clear(&small, __ATOMIC_SEQ_CST);
  small = 7;
  printf("%d %d %d %d %d %d %d %ld %d %d %d\n", counter, bits, failed, old, exchanged, plain, lowest, wide, set, locked + unlocked, small);
  return 0;
}
