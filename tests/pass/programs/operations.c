// Every modelled operation; the runtime evaluates each and compares.
#include <stdint.h>
#include <stdlib.h>
int a = -7, b = 5; unsigned u = 40, n = 3; long l = 1L << 40; short s = -2; unsigned char c = 250; _Bool flag = 1;
char buffer[32]; char* p = buffer + 4;
float f = 1.5f, g;
volatile long sink;
int main(void) {
  sink = a + b; sink = a - b; sink = a * b; sink = a / b; sink = a % b; sink = u / n; sink = u % n;
  sink = a << 3; sink = u >> n; sink = a >> 2; sink = (a & b) | (a ^ b); sink = ~a; sink = -b; sink = !a;
  sink = a < b; sink = a <= b; sink = u < n; sink = u >= n; sink = a == b; sink = a != b; sink = a > b;
  sink = (short)l; sink = (long)a; sink = s + c; sink = (uint8_t)(c + 10); sink = (l >> 3) ^ u;
  sink = a > b ? a : b; sink = flag ? a + 1 : b; sink = flag && a; sink = abs(a);
  sink = p - buffer; sink = (p + n) == buffer; sink = (long)(p + a); sink = (intptr_t)p & 7;
  sink = (1 << (n & 7)); sink = u << (n & 31);
  g = f;
  sink = a / (b - 6);
  switch (a) { case -7: sink = 1; break; case 4: sink = 2; break; }
  int i = 0;
  while (i < b) i++;
  for (unsigned k = n; k; k--) sink = k;
  return 0;
}
// EXPECT: write sink = (sext (sdiv a 5))
// EXPECT: write g = f
// EXPECT: branch switch a = 4294967289
// COUNT: 6 branch if .*slt .* b
