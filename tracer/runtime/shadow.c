/* Symbolic values in private memory: a table per thread from 8-byte words to what each byte holds.
 *
 * A byte is (expression, which byte of its value); reading back what was written whole gives the expression itself, anything
 * else is put together with Extract and Concat, so no mixture of sizes ever turns a symbolic value into a constant.
 * Open addressing, grown by half its load; most programs keep few such bytes, and inline code looks at shadow_live first. */
#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/state.h"

struct word {
  uint64_t key;       /* address >> 3; 0: never used */
  uint32_t ids[8];    /* 0: concrete */
  uint8_t place[8];   /* which byte of the expression's value (bits 0-3), and how many bytes that has (bits 4-7) */
};

struct stem_shadow {
  struct word* words;
  uint64_t capacity;  /* a power of two */
  uint64_t used;      /* slots with a key */
};

static uint64_t slot_of(const struct stem_shadow* s, uint64_t key) {
  return (key * 0x9e3779b97f4a7c15u) >> (64 - __builtin_ctzll(s->capacity));
}

static struct word* find(struct stem_shadow* s, uint64_t key) {
  if (!s) return 0;
  for (uint64_t i = slot_of(s, key);; i = (i + 1) & (s->capacity - 1)) {
    if (s->words[i].key == key) return &s->words[i];
    if (s->words[i].key == 0) return 0;
  }
}

static int is_empty(const struct word* w) {
  uint32_t any = 0;
  for (int i = 0; i < 8; i++) any |= w->ids[i];
  return !any;
}

/* Words that became concrete are dropped when the table is rebuilt. */
static void rebuild(struct stem_shadow* s) {
  uint64_t live = 0;
  for (uint64_t i = 0; i < s->capacity; i++) live += s->words[i].key && !is_empty(&s->words[i]);
  struct stem_shadow bigger = {0, 256, 0};
  while (bigger.capacity < live * 4) bigger.capacity *= 2;
  bigger.words = stem_pages(bigger.capacity * sizeof(struct word));
  for (uint64_t i = 0; i < s->capacity; i++) {
    struct word* w = &s->words[i];
    if (!w->key || is_empty(w)) continue;
    uint64_t k = slot_of(&bigger, w->key);
    while (bigger.words[k].key) k = (k + 1) & (bigger.capacity - 1);
    bigger.words[k] = *w;
    bigger.used++;
  }
  stem_pages_free(s->words, s->capacity * sizeof(struct word));
  *s = bigger;
}

static struct word* find_or_make(struct stem_thread* self, uint64_t key) {
  struct stem_shadow* s = self->shadow;
  if (!s) {
    s = self->shadow = stem_pages(sizeof *s);
    s->capacity = 256;
    s->words = stem_pages(s->capacity * sizeof(struct word));
  }
  struct word* w = find(s, key);
  if (w) return w;
  if (s->used * 2 >= s->capacity) rebuild(s);
  uint64_t i = slot_of(s, key);
  while (s->words[i].key) i = (i + 1) & (s->capacity - 1);
  s->words[i].key = key;
  s->used++;
  return &s->words[i];
}

void stem_shadow_free(struct stem_thread* self) {
  struct stem_shadow* s = self->shadow;
  if (!s) return;
  self->shadow = 0;
  __stem_tls.shadow_live = 0;
  stem_pages_free(s->words, s->capacity * sizeof(struct word));
  stem_pages_free(s, sizeof *s);
}

static void set_byte(struct word* w, unsigned at, uint32_t id, uint8_t place) {
  __stem_tls.shadow_live += (id != 0) - (w->ids[at] != 0);
  w->ids[at] = id;
  w->place[at] = place;
}

void stem_shadow_clear(const void* address, size_t size) {
  struct stem_thread* self = stem_current;
  if (!self || !__stem_tls.shadow_live) return;
  uint64_t begin = (uint64_t)(uintptr_t)address, end = begin + size;
  struct stem_shadow* s = self->shadow;
  if (s && size / 8 > s->capacity) { /* a huge range: walk the table instead */
    for (uint64_t i = 0; i < s->capacity; i++)
      for (unsigned b = 0; s->words[i].key && b < 8; b++) {
        uint64_t a = s->words[i].key * 8 + b;
        if (a >= begin && a < end) set_byte(&s->words[i], b, 0, 0);
      }
    return;
  }
  for (uint64_t a = begin; a < end; a = (a | 7) + 1) {
    struct word* w = find(s, a >> 3);
    if (!w) continue;
    for (uint64_t b = a; b < end && b >> 3 == a >> 3; b++) set_byte(w, b & 7, 0, 0);
  }
}

void stem_shadow_set(const void* address, unsigned size, uint32_t id) {
  if (!stem_on) return;
  if (!id) return stem_shadow_clear(address, size);
  struct stem_thread* self = stem_self();
  uint64_t a = (uint64_t)(uintptr_t)address;
  struct word* w = 0;
  for (unsigned i = 0; i < size; i++) {
    if (!w || ((a + i) & 7) == 0) w = find_or_make(self, (a + i) >> 3);
    set_byte(w, (a + i) & 7, id, (uint8_t)(i | size << 4));
  }
}

struct byte {
  uint32_t id;
  uint8_t place;
};

static struct byte byte_at(struct stem_thread* self, uint64_t a) {
  struct word* w = find(self->shadow, a >> 3);
  struct byte b = {0, 0};
  if (w && w->ids[a & 7]) b = (struct byte){w->ids[a & 7], w->place[a & 7]};
  return b;
}

/* Runs of bytes of one expression (or of none) become one piece each; pieces are joined from the low end up. */
static uint32_t assemble(struct stem_thread* self, const struct byte* bytes, unsigned size, uint64_t value) {
  uint32_t whole = 0;
  uint64_t whole_value = 0;
  unsigned whole_bytes = 0;
  for (unsigned i = 0; i < size;) {
    unsigned n = 1;
    while (i + n < size && bytes[i + n].id == bytes[i].id && (!bytes[i].id || bytes[i + n].place == bytes[i].place + n)) n++;
    uint64_t part_value = value >> 8 * i;
    if (n < 8) part_value &= (1ull << 8 * n) - 1;
    uint32_t part = bytes[i].id;
    unsigned total = bytes[i].place >> 4;
    if (part && n != total)
      part = stem_expr(self, stem_expr_head(STEM_OP_Extract, 8 * n, 8 * total, 8 * (bytes[i].place & 15u)), part, 0, 0);
    if (i == 0) {
      whole = part;
      whole_value = part_value;
    } else {
      if (part || whole)
        whole = stem_expr(self, stem_expr_head(STEM_OP_Concat, 8 * (whole_bytes + n), 8 * n, 0), part, whole, part ? whole_value : part_value);
      whole_value |= part_value << 8 * i;
    }
    whole_bytes += n;
    i += n;
  }
  return whole;
}

uint32_t stem_shadow_get(const void* address, unsigned size, uint64_t value) {
  struct stem_thread* self = stem_current;
  if (!self || !__stem_tls.shadow_live) return 0;
  struct byte bytes[8];
  uint64_t a = (uint64_t)(uintptr_t)address;
  uint32_t any = 0;
  for (unsigned i = 0; i < size; i++) any |= (bytes[i] = byte_at(self, a + i)).id;
  return any ? assemble(self, bytes, size, value) : 0;
}

void __stem_shadow_set(void* address, uint32_t size, uint32_t id) { stem_shadow_set(address, size, id); }
uint32_t __stem_shadow_get(void* address, uint32_t size, uint64_t value) { return stem_shadow_get(address, size, value); }
void __stem_shadow_clear(void* address, uint64_t size) { stem_shadow_clear(address, size); }

/* A struct that is passed by value: copied by the call itself, without a place for its expressions. */
void __stem_pin_range(void* address, uint64_t size, uint32_t is_private, void* site) {
  for (uint64_t done = 0; done < size;) {
    unsigned piece = size - done >= 8 ? 8 : size - done >= 4 ? 4 : size - done >= 2 ? 2 : 1;
    char* at = (char*)address + done;
    done += piece;
    if (!is_private) {
      __stem_load(at, piece | STEM_AUX_PINNED, site);
      continue;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < piece; i++) value |= (uint64_t)(unsigned char)at[i] << 8 * i;
    uint32_t known = stem_shadow_get(at, piece, value);
    if (known) __stem_pin(known, value, site);
  }
}

void __stem_shadow_copy(void* to, void* from, uint64_t size) {
  struct stem_thread* self = stem_current;
  if (!self || !__stem_tls.shadow_live || to == from) return;
  uint64_t t = (uint64_t)(uintptr_t)to, f = (uint64_t)(uintptr_t)from;
  int backwards = t > f && t < f + size;
  for (uint64_t k = 0; k < size; k++) {
    uint64_t i = backwards ? size - 1 - k : k;
    struct byte b = byte_at(self, f + i);
    if (b.id)
      set_byte(find_or_make(self, (t + i) >> 3), (t + i) & 7, b.id, b.place);
    else
      stem_shadow_clear((void*)(uintptr_t)(t + i), 1);
  }
}
