/* The plan of a run (trace/plan.h), as the launcher wrote it. */
#include "tracer/binary/engine.h"

static const char* plan;
static size_t plan_size;
static int options_only;

void bin_plan(const void* bytes, size_t size) {
  const struct stem_plan_header* header = bytes;
  if (size < sizeof *header || header->magic != STEM_PLAN_MAGIC || header->version != STEM_PLAN_VERSION) return;
  plan = bytes;
  plan_size = size;
}

void bin_plan_options_only(void) { options_only = 1; }

const struct stem_plan_item* bin_plan_next(enum stem_plan_type type, const struct stem_plan_item* after) {
  if (!plan || (options_only && type != STEM_PLAN_OPTION)) return 0;
  size_t at = sizeof(struct stem_plan_header);
  if (after) at = (size_t)((const char*)after - plan) + sizeof *after + (after->size + 7u) / 8 * 8;
  while (at + sizeof *after <= plan_size) {
    const struct stem_plan_item* item = (const struct stem_plan_item*)(plan + at);
    if (item->size > plan_size - at - sizeof *item) return 0;
    if (item->type == (uint32_t)type) return item;
    at += sizeof *item + (item->size + 7u) / 8 * 8;
  }
  return 0;
}

const char* bin_option(const char* key) {
  static char value[4096]; /* the caller uses it before it asks again */
  for (const struct stem_plan_item* item = 0; (item = bin_plan_next(STEM_PLAN_OPTION, item));) {
    const char* text = (const char*)(item + 1);
    size_t n = 0, k = 0;
    while (n < item->size && key[n] && text[n] == key[n]) n++;
    if (key[n] || n >= item->size || text[n] != '=') continue;
    for (n++; n < item->size && k + 1 < sizeof value; n++) value[k++] = text[n];
    value[k] = 0;
    return value;
  }
  return 0;
}

uint64_t bin_option_number(const char* key, uint64_t otherwise) {
  const char* s = bin_option(key);
  if (!s || *s < '0' || *s > '9') return otherwise;
  uint64_t number = 0;
  for (; *s >= '0' && *s <= '9'; s++) number = number * 10 + (uint64_t)(*s - '0');
  return number;
}
