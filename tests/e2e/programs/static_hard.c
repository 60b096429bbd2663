// What is hard for static analysis of pointers and threads, one of each: the run must stay inside what it allows.
// OPT: -O0 -O1
// EXIT: 0
#define _GNU_SOURCE
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node { int value; struct node* next; };
struct outer { long before; struct node inner; int items[4]; struct node* list; };
struct job { void (*run)(struct job*); struct outer* target; };
union view { struct { int low, high; } parts; long whole; char bytes[8]; };
typedef int (*binary)(int, int);

static struct outer global = {.before = 1, .items = {4, 3, 2, 1}};
static union view shared_view;
static int counter, handled, at_exit, sorted, visited;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static jmp_buf place;
static uintptr_t hidden;
static char* words[3];

static void set_value(struct job* job) { job->target->inner.value += 1; }
static void set_items(struct job* job) { job->target->items[job->target->inner.value & 3] += 1; }
static int add(int a, int b) { counter += a; return a + b; }
static int sub(int a, int b) { counter -= a; return a - b; }
static const binary operations[] = {add, sub};

static void on_signal(int number) { handled += number; }
static void on_exit_of_thread(void* p) { *(int*)p += 1; counter++; }
static void on_exit_of_program(void) { at_exit = counter; }
static void initialise(void) { global.list = malloc(sizeof *global.list); global.list->value = 7; global.list->next = 0; }
static int compare(const void* a, const void* b) { sorted++; return *(const int*)a - *(const int*)b; }

static int sum(int n, ...) {
  va_list list, again;
  va_start(list, n);
  va_copy(again, list);
  int total = 0;
  for (int i = 0; i < n; ++i) total += *va_arg(list, int*);
  for (int i = 0; i < n; ++i) *va_arg(again, int*) += 1;
  va_end(again);
  va_end(list);
  return total;
}

// tsearch is not in the table of library functions: unseen code keeps pointers and calls back.
static int order(const void* a, const void* b) { return ((const struct node*)a)->value - ((const struct node*)b)->value; }
static void walk(const void* entry, VISIT which, int depth) {
  if (which == leaf) visited += (*(struct node* const*)entry)->value + depth;
}

static void* worker(void* argument) {
  struct job* job = argument;
  int* own = malloc(sizeof *own);
  *own = 1;
  pthread_setspecific(key, own);
  pthread_once(&once, initialise);
  job->run(job);
  struct node* inner = &job->target->inner;
  struct outer* outer = (struct outer*)((char*)inner - offsetof(struct outer, inner));
  outer->before++;
  struct node* secret = (struct node*)(hidden ^ 0x55);
  secret->value++;
  shared_view.whole++;
  counter = operations[shared_view.parts.low & 1](counter, 2);
  raise(SIGUSR1);
  int* result = malloc(sizeof *result);
  *result = job->target->inner.value;
  return *own ? (void*)result : 0;
}

int main(void) {
  signal(SIGUSR1, on_signal);
  atexit(on_exit_of_program);
  pthread_key_create(&key, on_exit_of_thread);
  struct node* node = calloc(1, sizeof *node);
  hidden = (uintptr_t)node ^ 0x55;
  struct job* jobs = malloc(2 * sizeof *jobs);
  jobs[0] = (struct job){set_value, &global};
  jobs[1] = (struct job){set_items, &global};
  struct job copies[2];
  memcpy(copies, jobs, sizeof copies);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], 0, worker, i ? &copies[i] : &jobs[i]);
  int total = 0;
  for (int i = 0; i < 2; ++i) {
    void* result = 0;
    pthread_join(threads[i], &result);
    total += *(int*)result;
    free(result);
  }
  qsort(global.items, 4, sizeof(int), compare);
  if (setjmp(place) == 0) {
    counter++;
    longjmp(place, 1);
  }
  total += sum(2, &counter, &global.items[1]);
  void* tree = 0;
  struct node leaves[2] = {{1, 0}, {2, &leaves[0]}};
  for (int i = 0; i < 2; ++i) tsearch(&leaves[i], &tree, order);
  twalk(tree, walk);
  char text[] = "a,b,c", *save = 0;
  int n = 0;
  for (char* word = strtok_r(text, ",", &save); word; word = strtok_r(0, ",", &save)) words[n++] = strdup(word);
  for (int i = 0; i < n; ++i) words[i] = realloc(words[i], 8), total += words[i][0];
  total += shared_view.parts.high + shared_view.bytes[0] + node->value + global.list->value + (int)global.before;
  printf("%d %d %s\n", total, visited + handled + sorted, words[2]);
  return 0;
}
