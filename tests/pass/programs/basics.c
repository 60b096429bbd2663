// Accesses, names and expressions of plain C.
#include <stdlib.h>
struct node { int v; struct node* next; };
struct queue { struct node* head; int count; int slots[4]; struct { int max, min; } limits[3]; };
struct queue Q, *other = &Q;
struct node first = {5, 0};
int table[10], x = 3, y, z;
unsigned char byte_ = 200;
double d1 = 1.5, d2 = 2.0, d3;
int width = 2;
static const int constants[4] = {1, 2, 3, 4};
static int never_written[2] = {11, 12};

// EXPECT: write other->head = big
// EXPECT: read other = big
// EXPECT: read x = 3
// EXPECT: branch if (slt 2 x) = 1
// EXPECT: write y = (add x 1)
// EXPECT: read q->head pinned = big
__attribute__((noinline)) int work(struct queue* q, int i) {
  int l = x;
  if (l > 2) y = l + 1;
  else y = l - 1;
  // EXPECT: read q->head->v = 5
  // EXPECT: write table[i + 1] = q->head->v
  table[i + 1] = q->head->v;
  // EXPECT: read q->count = 0
  // EXPECT: write q->count = (add q->count 1)
  q->count++;
  // EXPECT: pin (and x 3) at load
  Q.limits[i].max = constants[l & 3] + never_written[0];
  // EXPECT: read d1 pinned = big
  // EXPECT: read d2 pinned = big
  // EXPECT: write d3 = big
  d3 = d1 * d2;
  // EXPECT: read byte_ = -56
  // EXPECT: write z = (mul (zext byte_) 3)
  z = byte_ * 3;
  // EXPECT: write q->limits[2].min = 9
  q->limits[2].min = 9;
  return l * 2;
}

int main(void) {
  other->head = &first;
  int r = work(other, 1);
  // EXPECT: write y = (mul x 2)
  y = r;
  // EXPECT: alloc malloc 16
  // EXPECT: write n->v = y
  struct node* n = malloc(sizeof *n);
  n->v = y;
  first.next = n;
  // EXPECT: free free
  free(first.next);
  // EXPECT: read table[k] = 5
  for (int k = 2; k < 3; k++) z += table[k];
  // An index is held by holding what it was computed from.
  // EXPECT: read width pinned = 2
  table[r / 3 * width + 1] = 7;
  return 0;
}
// NEVER: constants|never_written|mul width|width\)
