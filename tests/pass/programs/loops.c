// Loops: reads that are only repeated are made once where code is optimised, loops that only compute are told as a whole.
int n = 5, quit, limit = 3, unused = 9;
long table[8];
unsigned long seed = 7, out;
volatile int poll = 1;

__attribute__((noinline)) static void fill(void) {
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < n; ++j) table[j] = i + j + n;
}

int main(void) {
  // One event a site: the condition's and the sum's, for both loops together.
  // OPTIMISED: 2 read n
  // OPTIMISED: 10 write table\[j\]
  fill();
  // A read that decides alone when the loop ends stays in it, also beside another condition.
  // COUNT: 3 read quit
  for (int i = 0; i < 3 && !quit; ++i) table[i] = i;
  // OPTIMISED: 1 read limit
  for (int i = 0; i < limit; ++i) table[i] = i;
  // COUNT: 1 read poll
  while (!poll) table[0] = 1;
  // Not made before its time: never here.
  // COUNT: 0 read unused
  for (int i = 0; i < 3; ++i)
    if (i > 5) table[i] = unused;
  // What is written in the loop is read in every round.
  // COUNT: 4 read out
  for (int i = 0; i < 4; ++i) out = out + 1;

  unsigned long h = seed;
  for (int i = 0; i < 2; ++i) h = h * 5 + 1;
  // EXPECT: 2 rounds of 2
  // EXPECT: write out = (add (mul (add (mul seed 5) 1) 5) 1)
  out = h;
  h = seed;
  for (int i = 0; i < 3; ++i) h = (h ^ h >> 7) * 0x9e3779b97f4a7c15ul;
  // EXPECT: 3 rounds of 3
  // EXPECT: write out = (lshr (mul (xor (mul (xor (mul (xor seed (lshr seed 7)) big) (lshr (mul (xor seed (lshr seed 7)) big) 7)) big) (lshr (mul (xor (mul (xor seed (lshr seed 7)) big) (lshr (mul (xor seed (lshr seed 7)) big) 7)) big) 7)) big) 60)
  out = h >> 60;
  // No round at all: what it began with.
  h = seed;
  for (unsigned i = 1; i < seed - 6; ++i) h = h * 3;
  // EXPECT: write out = seed
  out = h;
  return 0;
}
