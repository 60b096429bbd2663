// A lock-free stack whose pop compares the top only: between its read and its compare-and-swap the other thread pops two
// nodes and pushes the first one back. The swap succeeds and the stack's top is a node that was taken: the ABA problem.
// CASE aba:
// SCHEDULE: main:8 main/1:3 main/2:12 main/1:2
// STDOUT: ^top is held by somebody\n$
// EVENT: ^main/1 rmw top
// CASE plain:
// SCHEDULE: main:8 main/1:5
// STDOUT: ^top is free\n$
// FLAGS: -std=gnu11
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct node {
  struct node* next;
};

static struct node a, b, c;
static _Atomic(struct node*) top;
static struct node* held;

static struct node* pop(void) {
  struct node* old = atomic_load(&top);
  struct node* next = old->next;
  while (!atomic_compare_exchange_strong(&top, &old, next)) next = old->next;
  return old;
}

static void push(struct node* n) {
  struct node* old = atomic_load(&top);
  do n->next = old;
  while (!atomic_compare_exchange_strong(&top, &old, n));
}

static void* one(void* argument) {
  pop();
  return argument;
}

static void* two(void* argument) {
  struct node* first = pop();
  held = pop();
  push(first);
  return argument;
}

int main(void) {
  pthread_t t[2];
  a.next = &b;
  b.next = &c;
  atomic_store(&top, &a);
  pthread_create(&t[0], 0, one, 0);
  pthread_create(&t[1], 0, two, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  printf("top is %s\n", atomic_load(&top) == held ? "held by somebody" : "free");
  return 0;
}
