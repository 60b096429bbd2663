// Inputs of <stem.h>: their own values, given ones, an assumption that ends a run, an assertion that fails.
// NO-EVENT: pin call
// BINARY: no, inputs need expressions
// CASE own:
// STDOUT: ^3 0 abc\n$
// EVENT: input
// EVENT: branch
// CASE given:
// INPUT: n=40
// INPUT: m=2
// STDOUT: ^40 2 abc\n$
// CASE text:
// INPUT: key="xyz"
// STDOUT: ^3 0 xyz\n$
// CASE assumed:
// INPUT: n=100
// EXIT: 0
// NO-EVENT: create
// CASE failing:
// INPUT: n=42
// EXIT: SIGABRT
// OUTCOME: assert
#include <pthread.h>
#include <stdio.h>
#include <stem.h>

static int n = 3, m;
static char key[4] = "abc";

static void* run(void* argument) {
  if (n > 41) m += 1;
  stem_assert(n != 42);
  return argument;
}

int main(void) {
  pthread_t t;
  stem_input(&n, sizeof n, "n");
  stem_input(key, 3, "key");
  m = stem_input_int("m");
  stem_assume(n < 100);
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("%d %d %s\n", n, m, key);
  return 0;
}
