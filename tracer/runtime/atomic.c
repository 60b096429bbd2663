/* Atomic accesses: one event each. In a serialised run the holder of the token is alone; in parallel recording the stripe's
 * lock makes it so for instrumented code, and the real atomic instruction for everybody else. */
#include <string.h>

#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/access.h"

/* AtomicRMWInst::BinOp of LLVM 19; floating point is pinned. */
enum { XCHG, ADD, SUB, AND, NAND, OR, XOR, MAX, MIN, UMAX, UMIN, FADD, FSUB, FMAX, FMIN, UINC_WRAP, UDEC_WRAP };

static uint64_t cut(uint64_t v, unsigned size) { return size < 8 ? v & ((1ull << 8 * size) - 1) : v; }
static int64_t sign(uint64_t v, unsigned size) { return (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size); }

static uint64_t float_op(unsigned op, uint64_t a, uint64_t b, unsigned size) {
  if (size == 4) {
    float x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    x = op == FADD ? x + y : op == FSUB ? x - y : op == FMAX ? (x > y ? x : y) : (x < y ? x : y);
    uint64_t r = 0;
    memcpy(&r, &x, 4);
    return r;
  }
  double x, y;
  memcpy(&x, &a, 8);
  memcpy(&y, &b, 8);
  x = op == FADD ? x + y : op == FSUB ? x - y : op == FMAX ? (x > y ? x : y) : (x < y ? x : y);
  uint64_t r;
  memcpy(&r, &x, 8);
  return r;
}

static uint64_t combine(unsigned op, uint64_t old, uint64_t operand, unsigned size) {
  switch (op) {
    case XCHG: return cut(operand, size);
    case ADD: return cut(old + operand, size);
    case SUB: return cut(old - operand, size);
    case AND: return old & cut(operand, size);
    case NAND: return cut(~(old & operand), size);
    case OR: return old | cut(operand, size);
    case XOR: return old ^ cut(operand, size);
    case MAX: return sign(old, size) > sign(operand, size) ? old : cut(operand, size);
    case MIN: return sign(old, size) < sign(operand, size) ? old : cut(operand, size);
    case UMAX: return old > cut(operand, size) ? old : cut(operand, size);
    case UMIN: return old < cut(operand, size) ? old : cut(operand, size);
    case FADD:
    case FSUB:
    case FMAX:
    case FMIN: return float_op(op, old, operand, size);
    case UINC_WRAP: return old >= cut(operand, size) ? 0 : old + 1;
    case UDEC_WRAP: return old == 0 || old > cut(operand, size) ? cut(operand, size) : old - 1;
  }
  stem_die("an atomic operation that this runtime does not know: build runtime and program with the same STEM");
}

static int swap_if(volatile void* p, uint64_t* expected, uint64_t desired, unsigned size) {
  switch (size) {
#define STEM_CAS(bytes, type)                                                                                                  \
  case bytes: {                                                                                                                \
    type e = (type)*expected;                                                                                                  \
    int ok = __atomic_compare_exchange_n((volatile type*)p, &e, (type)desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
    *expected = e;                                                                                                             \
    return ok;                                                                                                                 \
  }
    STEM_CAS(1, uint8_t)
    STEM_CAS(2, uint16_t)
    STEM_CAS(4, uint32_t)
    STEM_CAS(8, uint64_t)
#undef STEM_CAS
  }
  stem_die("an atomic access of a size that is not 1, 2, 4 or 8");
}

static uint64_t do_rmw(volatile void* p, unsigned op, uint64_t operand, unsigned size, uint64_t* written) {
  uint64_t old = stem_raw_load(p, size);
  do *written = combine(op, old, operand, size);
  while (!swap_if(p, &old, *written, size));
  return old;
}

static unsigned op_of(unsigned rmw) {
  switch (rmw) {
    case ADD: return STEM_OP_Add;
    case SUB: return STEM_OP_Sub;
    case AND: return STEM_OP_And;
    case OR: return STEM_OP_Or;
    case XOR: return STEM_OP_Xor;
  }
  return STEM_OP_COUNT;
}

/* The expression of what an rmw wrote, from the leaf of what it read; 0 with *pinned set if that is not modelled. */
static uint32_t written_expression(struct stem_thread* self, unsigned op, uint32_t leaf, uint32_t id, uint64_t operand, unsigned width, int* pinned) {
  *pinned = 0;
  if (op == XCHG) return id;
  uint64_t constant = width < 64 ? operand & ((1ull << width) - 1) : operand;
  if (op_of(op) != STEM_OP_COUNT) return stem_expr(self, stem_expr_head(op_of(op), width, width, 0), leaf, id, id ? 0 : constant);
  if (op == NAND) {
    uint32_t both = stem_expr(self, stem_expr_head(STEM_OP_And, width, width, 0), leaf, id, id ? 0 : constant);
    return stem_expr(self, stem_expr_head(STEM_OP_Xor, width, width, 0), both, 0, width < 64 ? (1ull << width) - 1 : ~0ull);
  }
  if (op >= MAX && op <= UMIN) {
    unsigned less = op == MAX || op == MIN ? STEM_OP_Slt : STEM_OP_Ult;
    uint32_t smaller = stem_expr(self, stem_expr_head(less, 1, width, 0), leaf, id, id ? 0 : constant);
    int keep_operand = op == MAX || op == UMAX; /* old < operand: a maximum takes the operand */
    if (keep_operand) {
      stem_append(self, stem_head(STEM_RAW_Expr2, 0, 0), 0, leaf, 0);
      return stem_expr(self, stem_expr_head(STEM_OP_Ite, width, width, 0), smaller, id, id ? 0 : constant);
    }
    stem_append(self, stem_head(STEM_RAW_Expr2, 0, 0), id ? 0 : constant, id, 0);
    return stem_expr(self, stem_expr_head(STEM_OP_Ite, width, width, 0), smaller, leaf, 0);
  }
  *pinned = 1;
  return 0;
}

uint64_t __stem_atomic_rmw(void* address, uint32_t operation, uint64_t operand, uint32_t id, uint32_t aux, void* site) {
  unsigned size = aux & 15;
  uint64_t written;
  if (!stem_on) return __stem_tls.result_id = 0, do_rmw(address, operation, operand, size, &written);
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  int leaf_wanted = operation != XCHG || (aux & STEM_AUX_LEAF);
  aux = (aux & ~STEM_AUX_LEAF) | STEM_AUX_ATOMIC | (leaf_wanted ? STEM_AUX_LEAF : 0);
  stem_access_begin(self, STEM_KIND_Rmw, address, size, site);
  uint64_t old = do_rmw(address, operation, operand, size, &written);
  stem_append(self, stem_head(STEM_KIND_Rmw, aux, (uint64_t)(uintptr_t)address), old, 0, stem_site_id(site));
  uint32_t leaf = leaf_wanted ? stem_next_id() : 0;
  int pinned = 0;
  uint32_t expr = written_expression(self, operation, leaf, id, operand, 8 * size, &pinned);
  stem_append(self, stem_head(STEM_RAW_Value2, 0, 0), written, expr, 0);
  if (pinned) {
    stem_pin(self, leaf, old, site);
    stem_pin(self, id, cut(operand, size), site);
  }
  stem_access_end(self, address, size);
  __stem_tls.result_id = leaf;
  return old;
}

/* Whether it succeeded decides what kind of event it is: that is pinned, so that the trace stays what it was. */
uint64_t __stem_atomic_cas(void* address, uint64_t expected, uint32_t expected_id, uint64_t desired, uint32_t desired_id, uint32_t aux, void* site) {
  unsigned size = aux & 15;
  uint64_t old = cut(expected, size);
  if (!stem_on) {
    swap_if(address, &old, desired, size);
    __stem_tls.result_id = 0;
    return old;
  }
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  aux |= STEM_AUX_ATOMIC | STEM_AUX_LEAF;
  stem_access_begin(self, STEM_KIND_Rmw, address, size, site);
  int ok = swap_if(address, &old, desired, size);
  stem_append(self, stem_head(ok ? STEM_KIND_Rmw : STEM_KIND_Read, aux, (uint64_t)(uintptr_t)address), old, 0, stem_site_id(site));
  uint32_t leaf = stem_next_id();
  if (ok) stem_append(self, stem_head(STEM_RAW_Value2, 0, 0), cut(desired, size), desired_id, 0);
  uint32_t equal = stem_expr(self, stem_expr_head(STEM_OP_Eq, 1, 8 * size, 0), leaf, expected_id, expected_id ? 0 : cut(expected, size));
  stem_pin(self, equal, (uint64_t)ok, site);
  stem_access_end(self, address, size);
  __stem_tls.result_id = leaf;
  return old;
}

uint64_t __stem_atomic_load(void* address, uint32_t aux, void* site) {
  if (!stem_on) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t v = stem_raw_load(address, aux & 15);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __stem_tls.result_id = 0;
    return v;
  }
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  unsigned size = aux & 15;
  aux |= STEM_AUX_ATOMIC;
  stem_access_begin(self, STEM_KIND_Read, address, size, site);
  uint64_t value = stem_raw_load(address, size);
  stem_append(self, stem_head(STEM_KIND_Read, aux, (uint64_t)(uintptr_t)address), value, 0, stem_site_id(site));
  __stem_tls.result_id = aux & STEM_AUX_LEAF ? stem_next_id() : 0;
  stem_access_end(self, address, size);
  return value;
}

void __stem_atomic_store(void* address, uint64_t value, uint32_t id, uint32_t aux, void* site) {
  unsigned size = aux & 15;
  if (!stem_on) {
    stem_raw_store(address, value, size);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return;
  }
  struct stem_thread* self = stem_self();
  STEM_ENTER(self);
  stem_access_begin(self, STEM_KIND_Write, address, size, site);
  stem_raw_store(address, value, size);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  stem_append(self, stem_head(STEM_KIND_Write, aux | STEM_AUX_ATOMIC, (uint64_t)(uintptr_t)address), cut(value, size), id, stem_site_id(site));
  stem_access_end(self, address, size);
}
