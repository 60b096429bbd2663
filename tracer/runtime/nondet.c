/* Answers of the outside world: recorded as Nondet events, fed back on replay.
 *
 * An answer is a kind ("time", "read") and bytes: 8 of the result, 4 of errno, then what the call left in memory. They are kept
 * per thread, because the order of two threads' calls is the schedule's business, not the world's. A replay that asks for
 * something else than was recorded has left the recorded path: it says so once a thread and goes on with real answers.
 * A call that blocked let others run: its return is a Yield, recorded before the answer, and the answer says so (a bit of errno),
 * so that a replay, where nothing blocks, gives the answer at the same place of the schedule.
 * Cost: five records of 24 bytes for a small answer. */
#include "tracer/runtime/lib.h"

#include <string.h>

#define HEADER 12
#define BLOCKED 0x40000000

static uint64_t answers; /* recorded so far */

bool lib_feeding(void) { return stem_plan_next(STEM_PLAN_FEED, 0) != 0; }

static const struct stem_plan_item* next_of(const struct stem_thread* self) {
  const struct stem_plan_item* item = (const void*)(uintptr_t)self->library[LIB_FEED];
  while ((item = stem_plan_next(STEM_PLAN_FEED, item))) {
    uint32_t thread;
    if (item->size < sizeof thread) continue;
    memcpy(&thread, stem_plan_bytes(item), sizeof thread);
    if (thread == self->plan_index) return item;
  }
  return 0;
}

/* "the run asks for X where the recorded one asked for Y" */
static void report(struct stem_thread* self, const char* what, const char* recorded, const void* site) {
  char why[256], json[512];
  struct stem_text text = {why, why + sizeof why};
  stem_text_add(&text, "the run asks the outside for ");
  stem_text_add(&text, what);
  if (recorded) {
    stem_text_add(&text, " where the recorded run asked for ");
    stem_text_add(&text, recorded);
  } else {
    stem_text_add(&text, ", after the last answer that was recorded for this thread");
  }
  stem_text_add(&text, "; from here on this thread gets real answers");
  text = (struct stem_text){json, json + sizeof json};
  stem_text_add(&text, "{\"kind\":\"divergence\",\"thread\":");
  stem_text_json(&text, self->path, strlen(self->path));
  stem_text_add(&text, ",\"found\":{\"op\":\"nondet\",\"site\":");
  stem_text_site(&text, site);
  stem_text_add(&text, "},\"why\":");
  stem_text_json(&text, why, strlen(why));
  stem_text_add(&text, "}");
  stem_message(self, json);
}

bool lib_fed(const char* what, const void* site, struct lib_answer* answer) {
  struct stem_thread* self = stem_current;
  if (!lib_feeding() || self->library[LIB_LOST]) return false;
  const struct stem_plan_item* item = next_of(self);
  const char* kind = item ? (const char*)stem_plan_bytes(item) + sizeof(uint32_t) : 0;
  size_t room = item ? item->size - sizeof(uint32_t) : 0;
  size_t length = kind ? strnlen(kind, room) : 0;
  bool usable = kind && length + 1 + HEADER <= room;
  if (!usable || strcmp(kind, what) != 0) {
    self->library[LIB_LOST] = 1;
    int error = errno;
    report(self, what, usable ? kind : 0, site);
    errno = error;
    return false;
  }
  self->library[LIB_FEED] = (uint64_t)(uintptr_t)item;
  const char* bytes = kind + length + 1;
  memcpy(&answer->result, bytes, 8);
  memcpy(&answer->error, bytes + 8, 4);
  self->library[LIB_BLOCKED] = (answer->error & BLOCKED) != 0;
  answer->error &= ~BLOCKED;
  answer->bytes = bytes + HEADER;
  answer->size = (uint32_t)(room - length - 1 - HEADER);
  if (answer->error) errno = answer->error;
  return true;
}

void lib_record(const char* what, int64_t result, int error, const void* bytes, size_t size, const void* site) {
  struct stem_thread* self = stem_current;
  if (!lib_live()) return;
  int keep = errno;
  char small[256];
  char* all = size + HEADER <= sizeof small ? small : stem_pages(size + HEADER);
  int32_t err = error;
  if (self->library[LIB_BLOCKED]) {
    self->library[LIB_BLOCKED] = 0;
    err |= BLOCKED;
    stem_sleep_until(self, 0, site);
  }
  memcpy(all, &result, 8);
  memcpy(all + 8, &err, 4);
  if (size) memcpy(all + HEADER, bytes, size);
  uint64_t index = __atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED);
  stem_event(self, STEM_KIND_Nondet, 0, 0, index, 0, site);
  stem_blob(self, STEM_BLOB_NONDET_NAME, what, strlen(what));
  stem_blob(self, STEM_BLOB_NONDET_BYTES, all, size + HEADER);
  if (all != small) stem_pages_free(all, size + HEADER);
  errno = keep;
}

void lib_give(const struct lib_call* call, void* to, const void* bytes, size_t n) {
  if (!n) return;
  int keep = errno;
  if (call->site && lib_live())
    lib_write(to, bytes, n, call->site);
  else
    memcpy(to, bytes, n);
  errno = keep;
}

int64_t lib_ask(const struct lib_call* call, const char* what, void* bytes, size_t n, lib_world world, void* context) {
  if (!lib_live()) return world(context, bytes);
  struct lib_answer answer;
  if (lib_fed(what, call->site, &answer)) {
    memcpy(bytes, answer.bytes, answer.size < n ? answer.size : n);
  } else {
    errno = 0;
    answer.result = world(context, bytes);
    answer.error = errno;
  }
  lib_record(what, answer.result, answer.error, bytes, n, call->site);
  if (answer.error) errno = answer.error;
  return answer.result;
}
