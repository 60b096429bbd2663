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
