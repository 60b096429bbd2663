/* Groups (trace/raw.h): what a stretch of code without a choice records, found out before it runs.
 *
 * If a thread has no unpinned reads when it comes to such a stretch, then which records follow depends on the code
 * alone. So they are made once, by the very functions that make them otherwise (access.c), for a thread that does not
 * exist, into memory of our own; each value that is not known yet is the number of its access. Translated code then
 * only stores addresses and values.
 *
 * When the code is left in the middle, by a fault, what it did so far is recorded the ordinary way. */
#include "tracer/binary/engine.h"

static struct bin_thread nobody;
static struct stem_rec made[BIN_GROUP_RECORDS + 2 * BIN_MAX_UNPINNED];
static struct stem_hot aside;

static struct bin_group** groups;
static uint32_t group_count;

/* access.c writes into `made` between the two. */
static struct {
  struct stem_rec *cursor, *limit;
  struct stem_hot* hot;
} kept;

static void begin_aside(struct bin_group* g) {
  kept.cursor = bin.cursor, kept.limit = bin.limit, kept.hot = bin_hot;
  bin_hot = &aside;
  bin.cursor = made + g->records;
  bin.limit = made + sizeof made / sizeof *made;
}

static int end_aside(struct bin_group* g) {
  g->records = (uint32_t)(bin.cursor - made);
  bin.cursor = kept.cursor, bin.limit = kept.limit, bin_hot = kept.hot;
  return g->records <= BIN_GROUP_RECORDS;
}

void bin_group_begin(struct bin_group* g) {
  g->access_count = g->records = g->size = g->marks = 0;
  g->has_branch = 0;
  nobody.next_id = 1;
  nobody.unpinned_count = nobody.combined_count = nobody.flag_reads = 0;
  nobody.last_read = nobody.last_event = 0;
  nobody.since_branch = 0;
}

int bin_group_clean(void) { return nobody.unpinned_count == 0; }
void bin_group_flags(void) { nobody.flag_reads = nobody.unpinned_count; }

int bin_group_access(struct bin_group* g, const struct bin_group_access* a) {
  if (g->access_count == BIN_GROUP_ACCESSES) return 0;
  uint32_t number = g->access_count++;
  g->access[number] = *a;
  begin_aside(g);
  if (!a->is_free) bin_pin(&nobody, a->site);
  if (a->told.write)
    bin_write(&nobody, number, a->told.size, 1 + number, a->site, 0);
  else
    bin_read(&nobody, number, a->told.size, 1 + number, a->site, 0);
  return end_aside(g);
}

int bin_group_branch(struct bin_group* g, uint64_t site, int noted) {
  begin_aside(g);
  bin_branch(&nobody, site, STEM_GROUP_TAKEN, noted ? nobody.flag_reads : BIN_MAX_UNPINNED);
  g->has_branch = 1;
  return end_aside(g);
}

void bin_group_mark(struct bin_group* g, uint64_t pc) {
  if (g->marks == BIN_GROUP_MARKS) return;
  g->mark[g->marks].pc = (uint32_t)pc;
  g->mark[g->marks++].accesses = g->access_count;
}

/* A place that can be gone back to. */
void bin_group_note(struct bin_group* g, struct bin_group_place* p) {
  p->accesses = g->access_count, p->records = g->records, p->ids = nobody.next_id - 1;
  p->has_branch = g->has_branch;
}

/* Where in a Group record addresses and values stand: the large ones first, so that all are aligned. */
static void lay_out(struct bin_group* g) {
  uint32_t at = 8;
  for (uint32_t i = 0; i < g->access_count; i++)
    if (g->access[i].has_address) g->access[i].told.at_addr = (uint16_t)at, at += 8;
  for (uint32_t size = 8; size; size /= 2)
    for (uint32_t i = 0; i < g->access_count; i++)
      if (g->access[i].told.size == size) g->access[i].told.at_value = (uint16_t)at, at += size;
  /* A piece of a wide access has the address of the first one. */
  for (uint32_t i = 1; i < g->access_count; i++)
    if (g->access[i].is_piece) g->access[i].told.at_addr = g->access[i - 1].told.at_addr;
  g->size = (at + sizeof(struct stem_rec) - 1) / sizeof(struct stem_rec);
}

static void* keep(uint32_t bytes) {
  enum { ROOM = 64 * 4096 };
  static uint32_t left;
  static char* at;
  bytes = (bytes + 7) & ~7u;
  if (left < bytes) at = stem_host_pages(ROOM), left = ROOM;
  char* place = at;
  at += bytes, left -= bytes;
  return place;
}

static void copy_bytes(void* to, const void* from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++) ((char*)to)[i] = ((const char*)from)[i];
}

static void tell(const void* bytes, uint32_t size) {
  if (bin.told_to != bin.cursor) bin.told_from = bin.cursor;
  bin_blob(STEM_BLOB_GROUP, bytes, size);
  bin.told_to = bin.cursor;
}

void bin_groups_again(void) {
  for (uint32_t i = 0; i < group_count; i++) tell(groups[i]->told, groups[i]->told_size);
}

const struct bin_group* bin_group_end(struct bin_group* g, const struct bin_group_place* p) {
  if (group_count == BIN_MAX_GROUPS) return 0;
  if (!groups) groups = stem_host_pages(BIN_MAX_GROUPS * sizeof *groups);
  g->access_count = p->accesses, g->records = p->records, g->ids = p->ids, g->has_branch = p->has_branch;
  lay_out(g);
  if (g->size > 255) return 0;
  g->number = group_count;
  uint32_t bytes = (uint32_t)(offsetof(struct bin_group, access) + g->access_count * sizeof *g->access);
  struct bin_group* copy = keep(bytes);
  copy_bytes(copy, g, bytes);
  groups[group_count++] = copy;

  static struct {
    struct stem_group head;
    char rest[BIN_GROUP_ACCESSES * sizeof(struct stem_group_access) + BIN_GROUP_RECORDS * sizeof(struct stem_rec)];
  } told;
  told.head = (struct stem_group){g->access_count, g->records, g->ids, g->size};
  struct stem_group_access* access = (struct stem_group_access*)told.rest;
  for (uint32_t i = 0; i < g->access_count; i++) access[i] = g->access[i].told;
  struct stem_rec* record = (struct stem_rec*)(access + g->access_count);
  for (uint32_t i = 0; i < g->records; i++) record[i] = made[i];
  copy->told_size = (uint32_t)(sizeof told.head + g->access_count * sizeof *access + g->records * sizeof *record);
  copy->told = keep(copy->told_size);
  copy_bytes(copy->told, &told, copy->told_size);
  tell(copy->told, copy->told_size);
  return copy;
}

/* --- a fault in the middle
 * ---------------------------------------------------------------------------------------------------------- */

static uint64_t value_in(const char* record, const struct stem_group_access* a) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < a->size; i++) ((char*)&value)[i] = record[a->at_value + i];
  return value;
}

/* The group that was begun and not ended: its head stands where the next record goes (bin_append sees to it that
 * nothing old does). */
static const struct bin_group* open_group(void) {
  if (!bin.cursor || bin.cursor >= bin.limit) return 0;
  uint64_t head = bin.cursor->head;
  uint32_t number = (uint32_t)head;
  if (number >= group_count || head != stem_group_head(number, groups[number]->size)) return 0;
  return bin.cursor + groups[number]->size <= bin.limit ? groups[number] : 0;
}

void bin_group_cut(struct bin_thread* t, uint64_t pc, int (*can)(uint64_t addr, unsigned size, int write),
                   uint64_t* addr) {
  const struct bin_group* g = open_group();
  static char record[256 * sizeof(struct stem_rec)];
  if (!g) return;
  uint32_t mark = 0;
  while (mark < g->marks && g->mark[mark].pc != (uint32_t)pc) mark++;
  if (mark == g->marks) return;
  uint32_t end = mark + 1 < g->marks ? g->mark[mark + 1].accesses : g->access_count;
  if (end > g->access_count) end = g->access_count;
  for (uint32_t i = 0; i < g->size * sizeof(struct stem_rec); i++) record[i] = ((const char*)bin.cursor)[i];
  for (uint32_t i = 0; i < end; i++) {
    const struct bin_group_access* a = &g->access[i];
    uint64_t at = a->told.addr;
    if (a->told.at_addr) at += *(const uint64_t*)(record + a->told.at_addr);
    int done = i < g->mark[mark].accesses || can(at, a->told.size, a->told.write);
    if (!a->is_free) bin_pin(t, a->site);
    if (!done && !a->told.write) { /* there is no value */
      *addr = at;
      return;
    }
    bin.countdown--;
    if (a->told.write)
      bin_write(t, at, a->told.size, value_in(record, &a->told), a->site, 0);
    else
      bin_read(t, at, a->told.size, value_in(record, &a->told), a->site, 0);
    if (!done) return;
  }
}
