/* Stack: a lock-free stack of free nodes, linked by indices. A worker takes two nodes, fills one, keeps it, and gives the other
 * back; a helper takes one.
 *
 * BUG (ABA): the head is an index alone, without the count of changes that the correct version keeps beside it. Needs the helper
 * between reading the head's successor and its compare-and-swap during everything that the worker does. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define NODES 4
#define NONE 0xff
#define PAYLOAD 20

static atomic_uint head; /* index; the correct version counts changes in the bits above */
static atomic_uchar next[NODES];
static int payload[PAYLOAD];
static unsigned in_use = NONE;

static unsigned changed(unsigned old, unsigned to) {
#ifdef BUG
  (void)old;
  return to;
#else
  return ((old & ~0xffu) + 0x100) | to;
#endif
}

static unsigned take(void) {
  for (;;) {
    unsigned old = head, node = old & 0xff;
    if (node == NONE)
      return NONE;
    unsigned successor = next[node];
    if (atomic_compare_exchange_strong(&head, &old, changed(old, successor)))
      return node;
  }
}

static void give(unsigned node) {
  for (;;) {
    unsigned old = head;
    next[node] = old & 0xff;
    if (atomic_compare_exchange_strong(&head, &old, changed(old, node)))
      return;
  }
}

static void* worker(void* unused) {
  unsigned spare = take(), kept = take();
  for (int i = 0; i < PAYLOAD; i++)
    payload[i] = i;
  in_use = kept;
  give(spare);
  return unused;
}

static void* helper(void* unused) {
  take();
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (unsigned i = 0; i < NODES; i++)
    next[i] = i + 1 < NODES ? i + 1 : NONE;
  pthread_create(&threads[0], NULL, worker, NULL);
  pthread_create(&threads[1], NULL, helper, NULL);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  assert((head & 0xff) != in_use); /* a node in use is not free */
  assert(payload[PAYLOAD - 1] == PAYLOAD - 1);
  return 0;
}
