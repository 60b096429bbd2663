/* Memory and expressions as the models of library functions use them (lib.h).
 *
 * Everything goes through the entry points that instrumented code itself calls (abi.def), so a model's events are those of
 * a program that had the function's loop written out, in pieces of up to 8 bytes. Cost: one record a piece, and where the
 * model must know where a string ends, five expressions and a pin a piece that depends on anything free. */
#include "tracer/runtime/lib.h"

#include <link.h>
#include <string.h>

/* --- read-only segments of what was loaded at the start ------------------------------------------------------------------- */

#define SEGMENTS 128
static struct {
  uintptr_t begin, end;
} segments[SEGMENTS];
static unsigned segment_count;

static int add_segments(struct dl_phdr_info* info, size_t size, void* context) {
  for (int i = 0; i < info->dlpi_phnum && segment_count < SEGMENTS; i++) {
    const ElfW(Phdr)* p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || p->p_flags & PF_W) continue;
    segments[segment_count].begin = info->dlpi_addr + p->p_vaddr;
    segments[segment_count++].end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
  }
  return 0;
}

void lib_read_only_init(void) { dl_iterate_phdr(add_segments, 0); }

bool lib_read_only(const void* address) {
  for (unsigned i = 0; i < segment_count; i++)
    if ((uintptr_t)address - segments[i].begin < segments[i].end - segments[i].begin) return true;
  return false;
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

struct lib_chunk lib_load(const void* from, unsigned size, const void* site) {
  struct lib_chunk chunk = {0, 0, size};
  if (stem_on && !lib_read_only(from))
    chunk.value = stem_read(from, size, 1, site, &chunk.id);
  else
    memcpy(&chunk.value, from, size);
  return chunk;
}

struct lib_chunk lib_load_pinned(const void* from, unsigned size, const void* site) {
  struct lib_chunk chunk = {0, 0, size};
  if (stem_on && !lib_read_only(from))
    chunk.value = stem_read(from, size, 0, site, 0);
  else
    memcpy(&chunk.value, from, size);
  return chunk;
}

void lib_store(void* to, struct lib_chunk chunk, const void* site) {
  if (stem_on)
    stem_write(to, chunk.value, chunk.id, chunk.size, site);
  else
    memcpy(to, &chunk.value, chunk.size);
}

void lib_read(void* buffer, const void* from, size_t n, const void* site) {
  for (size_t i = 0; i < n;) {
    struct lib_chunk chunk = lib_load_pinned((const char*)from + i, lib_piece(n - i), site);
    memcpy((char*)buffer + i, &chunk.value, chunk.size);
    i += chunk.size;
  }
}

void lib_write(void* to, const void* buffer, size_t n, const void* site) {
  for (size_t i = 0; i < n;) {
    struct lib_chunk chunk = {0, 0, lib_piece(n - i)};
    memcpy(&chunk.value, (const char*)buffer + i, chunk.size);
    lib_store((char*)to + i, chunk, site);
    i += chunk.size;
  }
}

unsigned lib_string_piece(const char* from, size_t limit) {
  unsigned n = 0;
  while (n < 8 && n < limit && ((const volatile char*)from)[n++] != 0) {
  }
  return n ? lib_piece(n) : 0;
}

/* Another thread may write the string between two pieces: what counts is what each piece's event read. */
size_t lib_length(const char* from, size_t limit, const void* site) {
  size_t length = 0;
  while (length < limit) {
    struct lib_chunk chunk = lib_load(from + length, lib_string_piece(from + length, limit - length), site);
    lib_hold_end(chunk, site);
    for (unsigned i = 0; i < chunk.size; i++)
      if (!(chunk.value >> (8 * i) & 0xff)) return length + i;
    length += chunk.size;
  }
  return length;
}

static void grow(struct lib_copy* copy) {
  size_t room = copy->pages ? copy->pages : sizeof copy->small;
  char* text = stem_pages(2 * room < 4096 ? 4096 : 2 * room);
  memcpy(text, copy->text, copy->length);
  lib_copy_free(copy);
  copy->text = text;
  copy->pages = 2 * room < 4096 ? 4096 : 2 * room;
}

void lib_copy_string(struct lib_copy* copy, const char* from, size_t limit, const void* site) {
  copy->text = copy->small;
  copy->length = copy->pages = 0;
  for (bool ended = false; !ended && copy->length < limit;) {
    const char* at = from + copy->length;
    struct lib_chunk chunk = lib_load_pinned(at, lib_string_piece(at, limit - copy->length), site);
    if (copy->length + 9 > (copy->pages ? copy->pages : sizeof copy->small)) grow(copy);
    for (unsigned i = 0; i < chunk.size && !ended; i++) {
      char c = (char)(chunk.value >> (8 * i));
      if (c)
        copy->text[copy->length++] = c;
      else
        ended = true;
    }
  }
  copy->text[copy->length] = 0;
}

void lib_copy_free(struct lib_copy* copy) {
  if (copy->pages) stem_pages_free(copy->text, copy->pages);
  copy->pages = 0;
}

/* --- expressions ---------------------------------------------------------------------------------------------------------- */

static uint64_t mask(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }

struct lib_value lib_constant(uint64_t value, unsigned width) {
  return (struct lib_value){value & mask(width), 0, width};
}

struct lib_value lib_byte(struct lib_chunk chunk, unsigned index) {
  struct lib_value v = {chunk.value >> (8 * index) & 0xff, 0, 8};
  if (chunk.id)
    v.id = chunk.size == 1 ? chunk.id
                           : (uint32_t)__stem_convert(STEM_OP_Extract, 8, 8 * chunk.size, 8 * index, chunk.id);
  return v;
}

struct lib_value lib_difference(struct lib_chunk a, struct lib_chunk b, unsigned at, const void* site) {
  for (unsigned i = 0; i <= at; i++) lib_hold(lib_op(STEM_OP_Eq, lib_byte(a, i), lib_byte(b, i)), site);
  return lib_op(STEM_OP_Sub, lib_widen(lib_byte(a, at), 32), lib_widen(lib_byte(b, at), 32));
}

struct lib_value lib_widen(struct lib_value v, unsigned width) {
  if (v.id && v.width < width) v.id = (uint32_t)__stem_convert(STEM_OP_ZExt, width, v.width, 0, v.id);
  v.width = width;
  return v;
}

struct lib_value lib_narrow(struct lib_value v, unsigned width) {
  if (v.id && v.width > width) v.id = (uint32_t)__stem_convert(STEM_OP_Trunc, width, v.width, 0, v.id);
  v.width = width;
  v.value &= mask(width);
  return v;
}

static bool is_comparison(unsigned op) {
  return op == STEM_OP_Eq || op == STEM_OP_Ne || op == STEM_OP_Ult || op == STEM_OP_Ule || op == STEM_OP_Slt ||
         op == STEM_OP_Sle;
}

/* Only the operations that models need. */
static uint64_t compute(unsigned op, uint64_t a, uint64_t b, unsigned width) {
  int64_t sa = (int64_t)(a << (64 - width)) >> (64 - width), sb = (int64_t)(b << (64 - width)) >> (64 - width);
  switch (op) {
    case STEM_OP_Add: return a + b;
    case STEM_OP_Sub: return a - b;
    case STEM_OP_Mul: return a * b;
    case STEM_OP_And: return a & b;
    case STEM_OP_Or: return a | b;
    case STEM_OP_Xor: return a ^ b;
    case STEM_OP_Eq: return a == b;
    case STEM_OP_Ne: return a != b;
    case STEM_OP_Ult: return a < b;
    case STEM_OP_Ule: return a <= b;
    case STEM_OP_Slt: return sa < sb;
    case STEM_OP_Sle: return sa <= sb;
  }
  __builtin_trap();
}

struct lib_value lib_op(unsigned op, struct lib_value a, struct lib_value b) {
  unsigned width = is_comparison(op) ? 1 : a.width;
  struct lib_value v = {compute(op, a.value, b.value, a.width) & mask(width), 0, width};
  if (a.id || b.id) v.id = (uint32_t)__stem_binary(op, a.width, a.id, b.id, a.value, b.value);
  return v;
}

struct lib_value lib_choose(struct lib_value condition, struct lib_value a, struct lib_value b) {
  struct lib_value v = condition.value ? a : b;
  if (condition.id) v.id = (uint32_t)__stem_ite(a.width, condition.id, a.id, b.id, a.value, b.value);
  return v;
}

void lib_hold(struct lib_value v, const void* site) {
  if (v.id) stem_pin(stem_self(), v.id, v.value, site);
}

void lib_branch(struct lib_value v, const void* site) {
  if (v.id) __stem_branch(v.id, v.value, (void*)site);
}

/* The lowest bit set in (w - 0x01..01) & ~w & 0x80..80 is the top bit of w's first zero byte. */
void lib_hold_end(struct lib_chunk chunk, const void* site) {
  if (!chunk.id) return;
  unsigned width = 8 * chunk.size, end = 0;
  while (end < chunk.size && (chunk.value >> (8 * end) & 0xff)) end++;
  struct lib_value w = {chunk.value, chunk.id, width};
  struct lib_value ones = lib_constant(0x0101010101010101ull, width);
  uint64_t tops = 0x8080808080808080ull;
  if (end < chunk.size) tops &= mask(8 * (end + 1));
  struct lib_value t = lib_op(STEM_OP_And, lib_op(STEM_OP_Sub, w, ones), lib_op(STEM_OP_Xor, w, lib_constant(~0ull, width)));
  lib_hold(lib_op(STEM_OP_And, t, lib_constant(tops, width)), site);
}

static struct lib_value fold(struct lib_value c, unsigned first, uint64_t shift) {
  struct lib_value letter =
      lib_op(STEM_OP_Ult, lib_op(STEM_OP_Sub, c, lib_constant(first, 32)), lib_constant(26, 32));
  return lib_choose(letter, lib_op(STEM_OP_Add, c, lib_constant(shift, 32)), c);
}

struct lib_value lib_lower(struct lib_value c) { return fold(c, 'A', 32); }
struct lib_value lib_upper(struct lib_value c) { return fold(c, 'a', (uint64_t)-32); }
