#include "tests/runtime/fake_core.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/runtime/lib.h"

#define EVENTS 20000
struct fake_event fake_events[EVENTS];
uint32_t fake_event_count;
struct fake_node fake_nodes[EVENTS];
uint32_t fake_node_count;

int stem_on;
enum stem_mode stem_mode;
struct stem_hot __stem_hot;
_Thread_local struct stem_tls __stem_tls;
_Thread_local struct stem_thread* stem_current;
static struct stem_thread main_thread = {.path = "main"};

struct stem_thread* stem_adopt(void) { return stem_current = &main_thread; }

void fake_begin(void) {
  fake_event_count = fake_node_count = 0;
  memset(main_thread.library, 0, sizeof main_thread.library);
  stem_current = &main_thread;
  stem_on = 1;
}

void fake_end(void) {
  stem_on = 0;
  stem_current = 0;
}

void fake_call(const void* callee, const void* site) {
  __stem_tls.callee = callee;
  __stem_tls.site = site;
  memset(__stem_tls.args, 0xff, sizeof __stem_tls.args); /* of an earlier call: nobody is to believe them */
  __stem_tls.arg_count = 0;
  __stem_tls.returner = 0;
}

void fake_argument(int index, uint32_t id) {
  if (__stem_tls.arg_count == 0) memset(__stem_tls.args, 0, sizeof __stem_tls.args);
  __stem_tls.args[index] = id;
  __stem_tls.arg_count = STEM_MAX_ARGS;
}
uint32_t fake_result(const void* callee) { return __stem_tls.returner == callee ? __stem_tls.result_id : 0; }

static struct fake_event* add(enum fake_what what) {
  if (fake_event_count == EVENTS) abort();
  struct fake_event* e = &fake_events[fake_event_count++];
  memset(e, 0, sizeof *e);
  e->what = what;
  return e;
}

static uint32_t node(struct fake_node n) {
  if (fake_node_count + 1 == EVENTS) abort();
  fake_nodes[++fake_node_count] = n;
  return fake_node_count;
}

uint32_t fake_input(unsigned width) { return node((struct fake_node){.op = STEM_OP_Input, .width = width}); }

/* --- records ------------------------------------------------------------------------------------------------------------ */

void stem_append_slowly(struct stem_thread* self, uint64_t head, uint64_t value, uint32_t expr, uint32_t site) {
  switch (head >> 48 & 0xff) {
    case STEM_KIND_Input: add(FAKE_INPUT)->value = value; break;
    case STEM_KIND_Nondet: add(FAKE_NONDET)->value = value; break;
  }
}

void stem_blob(struct stem_thread* self, enum stem_blob what, const void* bytes, uint64_t length) {
  struct fake_event* e = &fake_events[fake_event_count - 1];
  if (what == STEM_BLOB_INPUT_NAME || what == STEM_BLOB_NONDET_NAME) {
    memcpy(e->name, bytes, length);
    e->name[length] = 0;
  } else if (length <= sizeof e->bytes) {
    memcpy(e->bytes, bytes, length);
    e->bytes_size = (uint32_t)length;
  }
}

uint64_t stem_read(const volatile void* address, unsigned size, int leaf, const void* site, uint32_t* id) {
  struct fake_event* e = add(FAKE_READ);
  e->addr = (uint64_t)(uintptr_t)address;
  e->size = size;
  memcpy(&e->value, (const void*)address, size);
  e->pinned = !leaf;
  if (leaf) e->id = node((struct fake_node){.op = STEM_OP_Read, .width = 8 * size, .ka = fake_event_count - 1});
  if (id) *id = e->id;
  return e->value;
}

void stem_write(volatile void* address, uint64_t value, uint32_t id, unsigned size, const void* site) {
  struct fake_event* e = add(FAKE_WRITE);
  e->addr = (uint64_t)(uintptr_t)address;
  e->size = size;
  e->value = value;
  e->id = id;
  memcpy((void*)address, &value, size);
}

void stem_read_range(const void* address, size_t size, const void* site) {
  for (size_t i = 0; i < size; i++) stem_read((const char*)address + i, 1, 0, site, 0);
}

void __stem_copy(void* to, void* from, uint64_t size, uint32_t flags, void* site) {
  int down = (flags & 1) && (char*)to > (char*)from;
  for (uint64_t i = 0; i < size; i++) {
    uint64_t at = down ? size - 1 - i : i;
    uint32_t id;
    uint64_t value = stem_read((char*)from + at, 1, 1, site, &id);
    stem_write((char*)to + at, value, id, 1, site);
  }
}

void __stem_fill(void* to, uint32_t byte, uint32_t id, uint64_t size, void* site) {
  for (uint64_t i = 0; i < size; i++) stem_write((char*)to + i, byte & 0xff, id, 1, site);
}

void __stem_alloc(void* address, uint64_t size, uint32_t zeroed, void* site) { add(FAKE_ALLOC)->addr = (uint64_t)(uintptr_t)address; }
void __stem_free(void* address, void* site) { add(FAKE_FREE)->addr = (uint64_t)(uintptr_t)address; }

/* --- expressions ---------------------------------------------------------------------------------------------------------- */

uint32_t __stem_binary(uint32_t op, uint32_t width, uint32_t a_id, uint32_t b_id, uint64_t a, uint64_t b) {
  int comparison = op >= STEM_OP_Eq && op <= STEM_OP_Sle;
  return node((struct fake_node){op, comparison ? 1 : width, width, 0, a_id, b_id, 0, a, b, 0});
}
uint32_t __stem_convert(uint32_t op, uint32_t width, uint32_t from_width, uint32_t low, uint32_t id) {
  return node((struct fake_node){op, width, from_width, low, id, 0, 0, 0, 0, 0});
}
uint32_t __stem_ite(uint32_t width, uint32_t condition, uint32_t a_id, uint32_t b_id, uint64_t a, uint64_t b) {
  return node((struct fake_node){STEM_OP_Ite, width, width, 0, condition, a_id, b_id, 0, a, b});
}
uint32_t stem_expr_input(struct stem_thread* self, uint32_t input, uint32_t offset, unsigned width) {
  return node((struct fake_node){.op = STEM_OP_Input, .width = width, .ka = (uint64_t)input << 32 | offset});
}
static void decide(enum fake_what what, uint32_t id, uint64_t value) {
  struct fake_event* e = add(what);
  e->id = id;
  e->value = value;
}
void stem_pin(struct stem_thread* self, uint32_t id, uint64_t value, const void* site) { decide(FAKE_PIN, id, value); }
void __stem_branch(uint32_t id, uint64_t outcome, void* site) { decide(FAKE_BRANCH, id, outcome); }
void __stem_assert(uint32_t id, uint64_t held, void* site) { decide(FAKE_ASSERT, id, held); }

/* --- the plan -------------------------------------------------------------------------------------------------------------- */

static char plan[65536] __attribute__((aligned(8)));
static size_t plan_used;

void fake_plan_clear(void) { plan_used = 0; }

static char* plan_add(enum stem_plan_type type, size_t size) {
  struct stem_plan_item* item = (void*)(plan + plan_used);
  *item = (struct stem_plan_item){type, (uint32_t)size};
  plan_used += sizeof *item + (size + 7) / 8 * 8;
  return (char*)(item + 1);
}

void fake_plan_input(const char* name, const void* bytes, size_t size) {
  char* to = plan_add(STEM_PLAN_INPUT, strlen(name) + 1 + size);
  strcpy(to, name);
  memcpy(to + strlen(name) + 1, bytes, size);
}
void fake_plan_option(const char* text) { strcpy(plan_add(STEM_PLAN_OPTION, strlen(text) + 1), text); }
void fake_plan_feed(const char* what, const void* bytes, size_t size) {
  char* to = plan_add(STEM_PLAN_FEED, 4 + strlen(what) + 1 + size);
  memset(to, 0, 4);
  strcpy(to + 4, what);
  memcpy(to + 4 + strlen(what) + 1, bytes, size);
}

const struct stem_plan_item* stem_plan_next(enum stem_plan_type type, const struct stem_plan_item* after) {
  size_t at = after ? (size_t)((char*)after - plan) + sizeof *after + (after->size + 7) / 8 * 8 : 0;
  while (at < plan_used) {
    const struct stem_plan_item* item = (void*)(plan + at);
    if (item->type == type) return item;
    at += sizeof *item + (item->size + 7) / 8 * 8;
  }
  return 0;
}

const char* stem_option(const char* key) {
  for (const struct stem_plan_item* i = 0; (i = stem_plan_next(STEM_PLAN_OPTION, i));) {
    const char* text = stem_plan_bytes(i);
    if (strncmp(text, key, strlen(key)) == 0 && text[strlen(key)] == '=') return text + strlen(key) + 1;
  }
  return 0;
}
uint64_t stem_option_number(const char* key, uint64_t otherwise) {
  const char* s = stem_option(key);
  return s ? strtoull(s, 0, 10) : otherwise;
}

/* --- the rest ---------------------------------------------------------------------------------------------------------------- */

int stem_visible(struct stem_thread* self, unsigned kind, const volatile void* addr, const void* site, stem_enabled_fn enabled,
                 uintptr_t arg, uint64_t deadline) {
  return 0;
}
void stem_done(struct stem_thread* self) {}
void stem_outside_begin(struct stem_thread* self) { add(FAKE_OUTSIDE); }
void stem_outside_end(struct stem_thread* self) {}
void stem_sleep_until(struct stem_thread* self, uint64_t deadline, const void* site) { add(FAKE_YIELD)->value = deadline; }
uint64_t stem_now(clockid_t clock) { return 5000000000u; }
uint64_t stem_deadline(clockid_t clock, const struct timespec* t) { return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec; }
uint64_t stem_deadline_in(uint64_t nanoseconds) { return nanoseconds; }
void stem_clock_reached(clockid_t clock, uint64_t nanoseconds) {}
void stem_message(struct stem_thread* self, const char* json) {
  struct fake_event* e = add(FAKE_MESSAGE);
  strncpy(e->name, json, sizeof e->name - 1);
}
void stem_note(const char* why) { stem_message(0, why); }
void stem_refuse(const char* why, const void* site) { stem_message(0, why); }
void stem_text_site(struct stem_text* text, const void* site) { stem_text_add(text, "\"0\""); }
void stem_finish(enum stem_outcome outcome, int code) {}
void* stem_pages(size_t bytes) { return calloc(1, bytes ? bytes : 1); }
void stem_pages_free(void* p, size_t bytes) { free(p); }
void stem_text_add(struct stem_text* text, const char* s) {
  while (*s && text->at + 1 < text->end) *text->at++ = *s++;
  *text->at = 0;
}
void stem_text_number(struct stem_text* text, uint64_t number, unsigned base) {
  char digits[24];
  int n = 0;
  do digits[n++] = "0123456789abcdef"[number % base];
  while (number /= base);
  while (n) stem_text_add(text, (char[]){digits[--n], 0});
}
void stem_text_json(struct stem_text* text, const char* s, size_t length) {
  stem_text_add(text, "\"");
  stem_text_add(text, s);
  stem_text_add(text, "\"");
}

#include <dlfcn.h>
void* stem_real_find(const char* name) { return dlsym(RTLD_NEXT, name); }
void* stem_real_lookup(const char* name) {
  void* f = stem_real_find(name);
  if (!f) abort();
  return f;
}
