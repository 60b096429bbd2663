// Expressions through calls and returns; what leaves for code that takes none is pinned.
int x = 3, y = 4, out;
int library_call(int (*callback)(int), int argument);
int library_identity(int x);
int __VERIFIER_nondet_int(void);
void __VERIFIER_assume(int);

__attribute__((noinline)) int twice(int v) { return v + v; }
static __attribute__((noinline)) long widen(int v, long w) { return v + w; }
int callback(int v) {
  out = v;
  return x + v;
}
int sum(int n, ...) { return n; }
int (*pointer)(int) = twice;

int main(void) {
  // EXPECT: write out = (add x x)
  out = twice(x);
  // EXPECT: write out = (trunc (add (sext x) (sext y)))
  out = widen(x, y);
  // EXPECT: pin pointer at call
  // EXPECT: write out = (add y y)
  out = pointer(y);
  // EXPECT: write out = (add input 1)
  int in = __VERIFIER_nondet_int();
  out = in + 1;
  // EXPECT: assume (zext (slt 2 input)) site __VERIFIER_assume
  __VERIFIER_assume(in > 2);
  // EXPECT: pin y at library_call
  // EXPECT: write out = 4
  // EXPECT: read x = 3
  // EXPECT: pin (add x 4) at ret
  out = library_call(callback, y);
  // EXPECT: write out = 7
  // EXPECT: pin x at library_identity
  // EXPECT: write out = 3
  out = library_identity(x);
  out = sum(1, y);
  return 0;
}
