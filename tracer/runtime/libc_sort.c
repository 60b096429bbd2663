/* qsort and bsearch. The comparator is the program's: it reads the elements where they are, and what it decided is held.
 *
 * The C library's qsort would move elements through a buffer nobody sees. Here a stable merge sort orders indices in private
 * memory, so the comparator always sees elements of the array itself, and then every element that moves is read and written
 * once, with its expressions. Same order as glibc's merge sort for any consistent comparator. */
#include "tracer/runtime/lib.h"

#include <stdlib.h>
#include <string.h>

typedef int (*comparator)(const void*, const void*);

/* The comparator's answer; its expression is in *id. Called as instrumented code would call it: otherwise it pins its answer. */
static int ask(comparator compare, const void* a, const void* b, uint32_t* id) {
  __stem_tls.callee = (const void*)compare;
  __stem_tls.arg_count = 0;
  __stem_tls.returner = 0;
  int answer = compare(a, b);
  *id = __stem_tls.returner == (const void*)compare ? __stem_tls.result_id : 0;
  return answer;
}

static bool hold(unsigned op, int answer, uint32_t id, const void* site) {
  struct lib_value v = lib_op(op, (struct lib_value){(uint32_t)answer, id, 32}, lib_constant(0, 32));
  lib_hold(v, site);
  return v.value;
}

struct array {
  char* base;
  size_t size;
  comparator compare;
  const void* site;
};

static void merge(const struct array* a, uint32_t* order, uint32_t* scratch, size_t n) {
  for (size_t run = 1; run < n; run *= 2)
    for (size_t start = 0; start + run < n; start += 2 * run) {
      size_t middle = start + run, end = middle + run < n ? middle + run : n, i = start, j = middle, k = 0;
      while (i < middle && j < end) {
        uint32_t id;
        int answer = ask(a->compare, a->base + order[i] * a->size, a->base + order[j] * a->size, &id);
        scratch[k++] = hold(STEM_OP_Sle, answer, id, a->site) ? order[i++] : order[j++];
      }
      while (i < middle) scratch[k++] = order[i++];
      memcpy(order + start, scratch, k * sizeof *order);
    }
}

/* Puts element order[i] into place i: all that move are read first, then written. */
static void permute(const struct array* a, const uint32_t* order, size_t n) {
  size_t pieces = 0;
  for (size_t i = 0; i < a->size; i += lib_piece(a->size - i)) pieces++;
  size_t bytes = n * pieces * sizeof(struct lib_chunk);
  struct lib_chunk* all = stem_pages(bytes);
  for (int writing = 0; writing < 2; writing++)
    for (size_t i = 0; i < n; i++) {
      if (order[i] == i) continue;
      struct lib_chunk* chunk = all + i * pieces;
      for (size_t at = 0; at < a->size; at += chunk->size, chunk++) {
        if (writing)
          lib_store(a->base + i * a->size + at, *chunk, a->site);
        else
          *chunk = lib_load(a->base + order[i] * a->size + at, lib_piece(a->size - at), a->site);
      }
    }
  stem_pages_free(all, bytes);
}

STEM_EXPORT void __stem_wrap_qsort(void* base, size_t n, size_t size, comparator compare) {
  struct lib_call call = lib_enter(__stem_wrap_qsort);
  LIB_PIN(call, 0, base), LIB_PIN(call, 1, n), LIB_PIN(call, 2, size), LIB_PIN(call, 3, compare);
  if (n < 2 || !size) return;
  if (n > UINT32_MAX) {
    qsort(base, n, size, compare);
    return;
  }
  struct array array = {base, size, compare, call.site};
  uint32_t* order = stem_pages(2 * n * sizeof *order);
  for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
  merge(&array, order, order + n, n);
  permute(&array, order, n);
  stem_pages_free(order, 2 * n * sizeof *order);
}

STEM_EXPORT void* __stem_wrap_bsearch(const void* key, const void* base, size_t n, size_t size, comparator compare) {
  struct lib_call call = lib_enter(__stem_wrap_bsearch);
  LIB_PIN(call, 0, key), LIB_PIN(call, 1, base), LIB_PIN(call, 2, n), LIB_PIN(call, 3, size), LIB_PIN(call, 4, compare);
  size_t low = 0, high = n;
  const char* found = 0;
  while (low < high && !found) {
    size_t middle = (low + high) / 2;
    const char* element = (const char*)base + middle * size;
    uint32_t id;
    int answer = ask(compare, key, element, &id);
    if (hold(STEM_OP_Slt, answer, id, call.site))
      high = middle;
    else if (hold(STEM_OP_Eq, answer, id, call.site))
      found = element;
    else
      low = middle + 1;
  }
  lib_leave(__stem_wrap_bsearch, 0);
  return (void*)found;
}
