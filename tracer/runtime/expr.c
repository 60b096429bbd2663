/* Expressions: each node is one record; its id is its place in the thread's own count. */
#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/state.h"

uint32_t stem_expr(struct stem_thread* self, uint64_t head, uint32_t a, uint32_t b, uint64_t constant) {
  if (!__stem_tls.id_step) return 0;
  stem_append(self, head, constant, a, b);
  return stem_next_id();
}

uint32_t stem_expr_input(struct stem_thread* self, uint32_t input, uint32_t offset, unsigned width) {
  return stem_expr(self, stem_expr_head(STEM_OP_Input, width, 0, 0), 0, 0, (uint64_t)input << 32 | offset);
}

static int is_comparison(unsigned op) { return op >= STEM_OP_Eq && op <= STEM_OP_Sle; }

uint32_t __stem_binary(uint32_t operation, uint32_t width, uint32_t a_id, uint32_t b_id, uint64_t a, uint64_t b) {
  if (!stem_on || !(a_id | b_id)) return 0;
  unsigned result = is_comparison(operation) ? 1 : operation == STEM_OP_Concat ? 2 * width : width;
  return stem_expr(stem_self(), stem_expr_head(operation, result, width, 0), a_id, b_id, a_id ? b : a);
}

uint32_t __stem_convert(uint32_t operation, uint32_t width, uint32_t from_width, uint32_t low, uint32_t id) {
  if (!stem_on || !id) return 0;
  return stem_expr(stem_self(), stem_expr_head(operation, width, from_width, low), id, 0, 0);
}

uint32_t __stem_ite(uint32_t width, uint32_t condition_id, uint32_t a_id, uint32_t b_id, uint64_t a, uint64_t b) {
  if (!stem_on || !condition_id) return 0;
  struct stem_thread* self = stem_self();
  stem_append(self, stem_head(STEM_RAW_Expr2, 0, 0), b_id ? 0 : b, b_id, 0);
  return stem_expr(self, stem_expr_head(STEM_OP_Ite, width, width, 0), condition_id, a_id, a_id ? 0 : a);
}

/* In parallel recording nobody could say when another stream may use a round that was told in this one: node by node. */
static uint32_t spelled_out(struct stem_thread* self, const struct stem_round* round, uint32_t id, uint64_t rounds) {
  while (rounds--) {
    uint32_t first = __stem_tls.next_id;
    for (uint32_t i = 0; i < round->nodes; i++) {
      const struct stem_rec* n = &round->node[i];
      uint32_t a = n->expr < 2 ? n->expr * id : first + n->expr - 2, b = n->site < 2 ? n->site * id : first + n->site - 2;
      stem_expr(self, n->head, a, b, n->value);
    }
    id = first + round->result;
  }
  return id;
}

static uint32_t epoch = 1;
static uint32_t told;

void stem_rounds_forget(void) {
  epoch++;
  told = 0;
}

uint32_t __stem_rounds(void* record, uint32_t id, uint64_t rounds) {
  struct stem_round* round = record;
  if (!stem_on || !id || !__stem_tls.id_step) return 0;
  if (!rounds) return id;
  struct stem_thread* self = stem_self();
  if (stem_parallel) return spelled_out(self, round, id, rounds);
  if (round->epoch != epoch) {
    stem_blob(self, STEM_BLOB_ROUND, round, sizeof *round + round->nodes * sizeof round->node[0]);
    round->epoch = epoch;
    round->number = ++told;
  }
  stem_append(self, stem_head(STEM_RAW_Rounds, 0, 0), rounds, id, round->number);
  uint32_t first = __stem_tls.next_id;
  __stem_tls.next_id += (uint32_t)(round->nodes * rounds);
  return first + (uint32_t)(round->nodes * (rounds - 1)) + round->result;
}

void __stem_branch(uint32_t id, uint64_t outcome, void* site) {
  if (stem_on) stem_event(stem_self(), STEM_KIND_Branch, 0, 0, outcome, id, site);
}

void stem_pin(struct stem_thread* self, uint32_t id, uint64_t value, const void* site) {
  if (stem_on && id) stem_event(self, STEM_KIND_Pin, 0, 0, value, id, site);
}

void __stem_pin(uint32_t id, uint64_t value, void* site) {
  if (stem_on && id) stem_event(stem_self(), STEM_KIND_Pin, 0, 0, value, id, site);
}

void __stem_assert(uint32_t id, uint64_t held, void* site) {
  if (stem_on) stem_event(stem_self(), STEM_KIND_Assert, 0, 0, held, id, site);
}
