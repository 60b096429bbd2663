/* Memory accesses without semantics: which reads hold, and what writes depend on (docs/architecture.md).
 *
 * All earlier reads of the thread are pinned before its next branch, synchronisation, allocation, external call, and
 * before an access whose address may depend on them. A write before that carries an opaque expression over them. Most
 * reads are pinned before the thread does anything else: then a bit in the read's own record says so, and no expression
 * is made. Otherwise a read is a leaf and its pin a record of its own, because what comes between does not need the
 * read to keep its value. */
#include "tracer/binary/engine.h"

static uint32_t new_id(struct bin_thread* t) { return t->next_id++; }

void bin_read(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t value, uint64_t site, unsigned aux) {
  if (__builtin_expect(t->unpinned_count == BIN_MAX_UNPINNED, 0)) bin_pin_all(t, site);
  struct stem_rec* r =
      bin_append(stem_head(STEM_KIND_Read, size | aux | STEM_AUX_LEAF, addr), value, 0, (uint32_t)site);
  uint32_t n = t->unpinned_count++;
  t->unpinned[n] = new_id(t);
  t->unpinned_value[n] = value;
  t->last_read = t->last_event = r;
  t->since_branch = 1;
}

/* Nothing of the run came after it; what a translator tells in between does not count. */
static int is_last(const struct stem_rec* r) {
  return r + 1 == bin.cursor || (r + 1 == bin.told_from && bin.told_to == bin.cursor);
}

void bin_pin_all(struct bin_thread* t, uint64_t site) {
  uint32_t n = t->unpinned_count;
  /* The last one: nothing came after it, so it may as well hold from the start. */
  if (n && t->last_read && t->last_read == t->last_event) {
    struct stem_rec* r = t->last_read;
    r->head |= (uint64_t)STEM_AUX_PINNED << 56;
    n--;
    if (t->unpinned[n] + 1 == t->next_id && is_last(r)) {
      r->head &= ~((uint64_t)STEM_AUX_LEAF << 56);
      t->next_id--;
    }
    t->last_read = 0;
  }
  for (uint32_t i = 0; i < n; i++)
    bin_append(stem_head(STEM_KIND_Pin, 0, 0), t->unpinned_value[i], t->unpinned[i], (uint32_t)site);
  t->unpinned_count = t->combined_count = t->flag_reads = 0;
}

static void pin_oldest(struct bin_thread* t, uint32_t n, uint64_t site) {
  for (uint32_t i = 0; i < n; i++)
    bin_append(stem_head(STEM_KIND_Pin, 0, 0), t->unpinned_value[i], t->unpinned[i], (uint32_t)site);
  for (uint32_t i = n; i < t->unpinned_count; i++)
    t->unpinned[i - n] = t->unpinned[i], t->unpinned_value[i - n] = t->unpinned_value[i];
  t->unpinned_count -= n;
  t->combined_count = t->flag_reads = 0;
}

static uint32_t opaque(struct bin_thread* t, unsigned width, uint64_t value, uint32_t a, uint32_t b) {
  bin_append(stem_expr_head(STEM_OP_Opaque, width, width, 0), value, a, b);
  return new_id(t);
}

/* Over all reads that nothing pinned. */
static uint32_t depends(struct bin_thread* t, unsigned width, uint64_t value) {
  uint32_t n = t->unpinned_count;
  if (n == 0) return 0;
  if (t->combined_count == 0) t->combined = t->unpinned[0], t->combined_count = 1;
  for (; t->combined_count + 1 < n; t->combined_count++)
    t->combined = opaque(t, 1, 0, t->combined, t->unpinned[t->combined_count]);
  return opaque(t, width, value, t->combined, t->combined_count < n ? t->unpinned[n - 1] : 0);
}

void bin_write(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t value, uint64_t site, unsigned aux) {
  uint32_t expr = t->unpinned_count ? depends(t, 8 * size, value) : 0;
  t->last_event = bin_append(stem_head(STEM_KIND_Write, size | aux, addr), value, expr, (uint32_t)site);
  t->since_branch = 1;
}

/* pinned: a compare-and-swap that succeeded; the caller has pinned what came before it. */
void bin_rmw(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t old, uint64_t now, uint64_t site,
             int pinned) {
  unsigned aux = size | STEM_AUX_ATOMIC;
  uint32_t expr = 0;
  if (pinned) {
    bin_append(stem_head(STEM_KIND_Rmw, aux | STEM_AUX_PINNED, addr), old, 0, (uint32_t)site);
  } else {
    if (t->unpinned_count == BIN_MAX_UNPINNED) bin_pin_all(t, site);
    bin_append(stem_head(STEM_KIND_Rmw, aux | STEM_AUX_LEAF, addr), old, 0, (uint32_t)site);
    uint32_t n = t->unpinned_count++;
    t->unpinned[n] = new_id(t);
    t->unpinned_value[n] = old;
    expr = depends(t, 8 * size, now);
  }
  t->last_event = bin_append(stem_head(STEM_RAW_Value2, 0, 0), now, expr, 0);
  t->last_read = 0;
  t->since_branch = 1;
}

/* Loops that do nothing others could see are no news: a branch is recorded when the thread did something since the last
 * one. */
void bin_branch(struct bin_thread* t, uint64_t site, int taken, uint32_t reads) {
  if (reads < t->unpinned_count)
    pin_oldest(t, reads, site);
  else
    bin_pin(t, site);
  if (!t->since_branch) return;
  t->since_branch = 0;
  bin_append(stem_head(STEM_KIND_Branch, 0, 0), (uint64_t)taken, 0, (uint32_t)site);
}

static uint64_t bytes_at(uint64_t addr, unsigned size) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; i++) value |= (uint64_t)*(const volatile uint8_t*)(addr + i) << (8 * i);
  return value;
}

static unsigned piece(uint64_t addr, uint64_t left) {
  unsigned n = 8 - (unsigned)(addr & 7);
  return left < n ? (unsigned)left : n;
}

/* Library functions that move memory, done here piece by piece: every piece is an operation like any other. */
void bin_read_range(struct bin_thread* t, uint64_t addr, uint64_t size, uint64_t site, uint64_t sp) {
  for (unsigned n; size; addr += n, size -= n) {
    n = piece(addr, size);
    if (bin_private(t, addr, n, 0, site, sp)) continue;
    bin_visible(t, STEM_KIND_Read, addr, site, 0, 0, 0);
    t->last_event =
        bin_append(stem_head(STEM_KIND_Read, n | STEM_AUX_PINNED, addr), bytes_at(addr, n), 0, (uint32_t)site);
    t->since_branch = 1;
  }
}

static void store(struct bin_thread* t, uint64_t addr, unsigned size, uint64_t value, uint64_t site, uint64_t sp) {
  int seen = !bin_private(t, addr, size, 1, site, sp);
  if (seen) bin_visible(t, STEM_KIND_Write, addr, site, 0, 0, 0);
  for (unsigned i = 0; i < size; i++) *(volatile uint8_t*)(addr + i) = (uint8_t)(value >> (8 * i));
  if (seen) bin_write(t, addr, size, value, site, 0);
}

static void copy_piece(struct bin_thread* t, uint64_t to, uint64_t from, unsigned n, uint64_t site, uint64_t sp) {
  bin_read_range(t, from, n, site, sp);
  store(t, to, n, bytes_at(from, n), site, sp);
}

void bin_copy(struct bin_thread* t, uint64_t to, uint64_t from, uint64_t size, uint64_t site, uint64_t sp) {
  bin_pin(t, site);
  if (to <= from || to >= from + size) {
    for (unsigned n; size; to += n, from += n, size -= n) {
      n = piece(to, size);
      copy_piece(t, to, from, n, site, sp);
    }
  } else {
    while (size) {
      unsigned n = (unsigned)((to + size) & 7);
      if (n == 0) n = 8;
      if (n > size) n = (unsigned)size;
      size -= n;
      copy_piece(t, to + size, from + size, n, site, sp);
    }
  }
}

void bin_written(struct bin_thread* t, uint64_t addr, uint64_t size, uint64_t site, uint64_t sp) {
  bin_pin(t, site);
  for (unsigned n; size; addr += n, size -= n) {
    n = piece(addr, size);
    store(t, addr, n, bytes_at(addr, n), site, sp);
  }
}

void bin_fill(struct bin_thread* t, uint64_t to, unsigned byte, uint64_t size, uint64_t site, uint64_t sp) {
  bin_pin(t, site);
  uint64_t pattern = 0x0101010101010101u * (byte & 0xff);
  for (unsigned n; size; to += n, size -= n) {
    n = piece(to, size);
    store(t, to, n, n == 8 ? pattern : pattern & ((1ull << (8 * n)) - 1), site, sp);
  }
}
