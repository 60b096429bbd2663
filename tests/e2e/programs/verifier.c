// The names of KLEE and SV-COMP: inputs, assumptions, atomic sections, reach_error.
// BINARY: no, needs stem.h
// CASE given:
// INPUT: __VERIFIER_nondet_int=4
// INPUT: k=3
// STDOUT: ^4 3 2\n$
// EVENT: atomic-begin
// EVENT: atomic-end
// EVENT: input
// CASE error:
// INPUT: __VERIFIER_nondet_int=13
// INPUT: k=3
// EXIT: SIGABRT
// OUTCOME: assert
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
extern void klee_make_symbolic(void* address, size_t size, const char* name);
extern void reach_error(void);

static int n;

static void* run(void* argument) {
  __VERIFIER_atomic_begin();
  ++n;
  __VERIFIER_atomic_end();
  return argument;
}

int main(void) {
  pthread_t t[2];
  int k = 0;
  int a = __VERIFIER_nondet_int();
  klee_make_symbolic(&k, sizeof k, "k");
  __VERIFIER_assume(a > 0);
  pthread_create(&t[0], 0, run, 0);
  pthread_create(&t[1], 0, run, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  if (a == 13) reach_error();
  printf("%d %d %d\n", a, k, n);
  return 0;
}
