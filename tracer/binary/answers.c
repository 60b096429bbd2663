/* Answers of the outside world, as the compiled runtime keeps them (tracer/runtime/nondet.c): recorded as Nondet
 * events, fed back on replay, per thread. An answer is a kind and bytes: 8 of the result, 4 of errno, then what the
 * call left in memory. A replay that asks for something else than was recorded says so once a thread and goes on with
 * real answers. A call that let others run says so with a bit of errno: its return is a Yield, also in a replay, where
 * nothing blocks. */
#include "tracer/binary/engine.h"

#define HEADER 12
#define BLOCKED 0x40000000

static uint64_t answers;

static const char* const kinds[] = {
#define BIN_ANSWER(name, text) text,
#include "tracer/binary/answers.def"
};

static const struct stem_plan_item* next_of(struct bin_thread* t) {
  const struct stem_plan_item* item = t->fed;
  while ((item = bin_plan_next(STEM_PLAN_FEED, item)))
    if (item->size >= sizeof(uint32_t) && *(const uint32_t*)(item + 1) == t->plan_index) return item;
  return 0;
}

static void lost(struct bin_thread* t, const char* what, const char* recorded, uint64_t site) {
  char why[256], json[1024];
  struct bin_text text = {why, why + sizeof why};
  t->fed_lost = 1;
  bin_text_add(&text, "the run asks the outside for ");
  bin_text_add(&text, what);
  bin_text_add(&text, recorded ? " where the recorded run asked for "
                               : ", after the last answer that was recorded for this thread");
  bin_text_add(&text, recorded ? recorded : "");
  bin_text_add(&text, "; from here on this thread gets real answers");
  text = (struct bin_text){json, json + sizeof json};
  bin_text_add(&text, "{\"kind\":\"divergence\",\"thread\":");
  bin_text_json(&text, t->path);
  bin_text_operation(&text, "found", 1 + STEM_KIND_Nondet, stem_host_key(site));
  bin_text_add(&text, ",\"why\":");
  bin_text_json(&text, why);
  bin_text_add(&text, "}");
  bin_message(json);
}

int bin_fed(struct bin_thread* t, unsigned kind, void* bytes, uint64_t room, struct bin_result* result, uint64_t site) {
  if (kind >= sizeof kinds / sizeof *kinds || t->fed_lost || !bin_plan_next(STEM_PLAN_FEED, 0)) return 0;
  const struct stem_plan_item* item = next_of(t);
  const char* name = item ? (const char*)(item + 1) + sizeof(uint32_t) : 0;
  uint64_t left = item ? item->size - sizeof(uint32_t) : 0, n = 0;
  while (n < left && name[n]) n++;
  int usable = name && n + 1 + HEADER <= left, same = usable;
  for (uint64_t i = 0; same && i <= n; i++) same = name[i] == kinds[kind][i];
  if (!same) {
    lost(t, kinds[kind], usable ? name : 0, site);
    return 0;
  }
  t->fed = item;
  t->came_back = 0;
  const char* from = name + n + 1;
  for (unsigned i = 0; i < 8; i++) ((char*)&result->value)[i] = from[i];
  for (unsigned i = 0; i < 4; i++) ((char*)&result->error)[i] = from[8 + i];
  if (result->error & BLOCKED) {
    result->error &= ~BLOCKED;
    bin_visible(t, STEM_KIND_Yield, 0, 0, 0, 0, 0);
    bin_event(t, STEM_KIND_Yield, 0, 0, 0, 0);
    t->came_back = 1;
  }
  uint64_t size = left - n - 1 - HEADER;
  for (uint64_t i = 0; i < size && i < room; i++) ((volatile char*)bytes)[i] = from[HEADER + i];
  return 1;
}

void bin_told(struct bin_thread* t, unsigned kind, const void* bytes, uint64_t size, const struct bin_result* result,
              uint64_t site) {
  if (kind >= sizeof kinds / sizeof *kinds) return;
  uint64_t n = 0;
  while (kinds[kind][n]) n++;
  bin_event(t, STEM_KIND_Nondet, 0, 0, answers++, site);
  bin_blob(STEM_BLOB_NONDET_NAME, kinds[kind], n);
  static char all[HEADER + 65536];
  char* to = size <= 65536 ? all : stem_host_pages(size + HEADER);
  for (unsigned i = 0; i < 8; i++) to[i] = ((const char*)&result->value)[i];
  int32_t error = result->error | (t->came_back ? BLOCKED : 0);
  t->came_back = 0;
  for (unsigned i = 0; i < 4; i++) to[8 + i] = ((const char*)&error)[i];
  for (uint64_t i = 0; i < size; i++) to[HEADER + i] = ((const char*)bytes)[i];
  bin_blob(STEM_BLOB_NONDET_BYTES, to, size + HEADER);
}
