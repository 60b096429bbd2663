/* The plan of this run: a file mapped read-only, checked once, then walked. Without one, options come from the environment. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

static const char* plan;
static uint64_t plan_size, plan_end; /* of the file, of the items */
static char** environment;

const char* stem_environment(const char* name) {
  size_t n = __builtin_strlen(name);
  for (char** e = environment; e && *e; e++)
    if (__builtin_strncmp(*e, name, n) == 0 && (*e)[n] == '=') return *e + n + 1;
  return 0;
}

static void check(void) {
  const struct stem_plan_header* header = (const void*)plan;
  if (plan_size < sizeof *header || header->magic != STEM_PLAN_MAGIC) stem_die("STEM_PLAN does not name a plan of a run");
  if (header->version != STEM_PLAN_VERSION)
    stem_die("the plan of this run is of another version of STEM: build the program again with the stem-cc beside it");
  uint64_t at = sizeof *header;
  for (uint32_t i = 0; i < header->items; i++) {
    const struct stem_plan_item* item = (const void*)(plan + at);
    if (at + sizeof *item > plan_size || item->size > plan_size - at - sizeof *item) stem_die("the plan of this run is cut short");
    at += sizeof *item + ((uint64_t)item->size + 7) / 8 * 8;
  }
  plan_end = at;
}

void stem_plan_open(char** envp) {
  environment = envp;
  const char* path = stem_environment(STEM_PLAN_ENV);
  if (!path || !*path) return;
  int fd = (int)stem_sys(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
  struct stat st;
  if (fd < 0 || stem_sys(SYS_fstat, fd, &st, 0) < 0) stem_die("cannot read the file that STEM_PLAN names");
  plan_size = (uint64_t)st.st_size;
  plan = stem_map(plan_size, PROT_READ, MAP_PRIVATE, fd);
  if (!plan) stem_die("cannot read the file that STEM_PLAN names");
  stem_sys(SYS_close, fd, 0, 0);
  check();
}

/* The items were checked: walking by size stays inside. */
const struct stem_plan_item* stem_plan_next(enum stem_plan_type type, const struct stem_plan_item* after) {
  if (!plan) return 0;
  uint64_t at = after ? (uint64_t)((const char*)after - plan) + sizeof *after + ((uint64_t)after->size + 7) / 8 * 8
                      : sizeof(struct stem_plan_header);
  while (at < plan_end) {
    const struct stem_plan_item* item = (const void*)(plan + at);
    if (item->type == (uint32_t)type) return item;
    at += sizeof *item + ((uint64_t)item->size + 7) / 8 * 8;
  }
  return 0;
}

/* Options are asked for at the start only: the text is copied where it stays, NUL-terminated. */
static char pool[16384];
static size_t pool_used;

const char* stem_option(const char* key) {
  size_t n = __builtin_strlen(key);
  for (const struct stem_plan_item* item = 0; (item = stem_plan_next(STEM_PLAN_OPTION, item));) {
    const char* text = stem_plan_bytes(item);
    if (item->size <= n || __builtin_memcmp(text, key, n) != 0 || text[n] != '=') continue;
    size_t length = item->size - n - 1;
    while (length && text[n + length] == 0) length--;
    if (pool_used + length + 1 > sizeof pool) return 0;
    char* copy = pool + pool_used;
    __builtin_memcpy(copy, text + n + 1, length);
    copy[length] = 0;
    pool_used += length + 1;
    return copy;
  }
  if (plan) return 0;
  char name[64] = "STEM_";
  if (n + 6 > sizeof name) return 0;
  for (size_t i = 0; i < n; i++) name[5 + i] = key[i] >= 'a' && key[i] <= 'z' ? (char)(key[i] - 32) : key[i] == '-' ? '_' : key[i];
  return stem_environment(name);
}

uint64_t stem_option_number(const char* key, uint64_t otherwise) {
  const char* s = stem_option(key);
  if (!s || *s < '0' || *s > '9') return otherwise;
  uint64_t number = 0;
  for (; *s >= '0' && *s <= '9'; s++) number = number * 10 + (uint64_t)(*s - '0');
  return number;
}
