// Who runs what, and in what order. Lines that the test names are fixed by #line.
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
static int plain, by_handler, by_library, by_sort, results, late;
static pthread_key_t key;
static void handler(int number) {
#line 20
  by_handler = number;
}
static void visit(const void* node, VISIT which, int depth) {
#line 30
  by_library = plain;
}
static int compare(const void* a, const void* b) {
#line 40
  return by_sort++;
}
static void destroy(void* p) {
#line 50
  *(int*)p = 1;
}
static void never(void) { plain = 99; }
void (*unused)(void) = never;
static void* entry(void* p) {
  pthread_setspecific(key, p);
#line 60
  plain = 1;
  return p;
}
__attribute__((constructor)) static void before(void) {
#line 70
  late = 1;
}
int main(void) {
  pthread_t t;
  void *tree = 0, *result;
  int numbers[4] = {0};
#line 80
  int early = plain;
  signal(SIGUSR1, handler);
  pthread_key_create(&key, destroy);
  pthread_create(&t, 0, entry, &results);
  pthread_join(t, &result);
#line 90
  *(int*)result = 2;
  qsort(numbers, 4, sizeof(int), compare);
  twalk(tree, visit);
#line 100
  return early + plain + late + results + by_handler + by_library;
}
