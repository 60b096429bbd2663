// Fields, heap objects, function tables and struct copies. Lines that the test names are fixed by #line.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
struct queue { int head, tail, level; };
struct box { struct queue* queue; int other; };
struct queue* q;
struct box first, second;
static void raise_level(struct queue* at);
static void nothing(struct queue* at) { (void)at; }
static void (*const table[2])(struct queue*) = {nothing, raise_level};
static void* push(void* unused) {
#line 20
  q->head = 1;
  q->tail = 2;
  second.queue->tail = 3;
  table[1](q);
  return 0;
}
static void raise_level(struct queue* at) {
#line 30
  at->level = 4;
}
static void* pop(void* unused) {
  int sum = 0;
#line 40
  sum += q->head;
  sum += first.other;
  sum += q->level;
  sum += first.queue->tail;
  return (void*)(long)sum;
}
#line 100
int main(void) {
  pthread_t a, b;
  q = malloc(sizeof *q);
  first.queue = malloc(sizeof *q);
  memcpy(&second, &first, sizeof first);
  pthread_create(&a, 0, push, 0);
  pthread_create(&b, 0, pop, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
