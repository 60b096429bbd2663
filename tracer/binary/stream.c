/* Records into chunks of the memory that is shared with the collector (trace/raw.h): one stream, in order.
 *
 * A full chunk costs a few stores and a wake-up. When the collector is slower than we are the chunks fill up and the
 * program waits for it; when it fails or dies the program runs on and its records are thrown away. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "tracer/binary/engine.h"
#include "tracer/runtime/sys.h"

static struct bin_thread nobody = {.unpinned_count = 1};
struct bin bin = {.runs = &nobody};
static struct stem_hot nowhere;
struct stem_hot* bin_hot = &nowhere;
static struct stem_control* control;
static struct stem_rec* scratch;
static uint64_t order;
static uint32_t chunk = UINT32_MAX;

struct stem_control* bin_control(void) { return control; }

static struct stem_rec* chunk_begin(uint32_t i) {
  return (struct stem_rec*)((char*)control + STEM_PAGE + (uint64_t)i * STEM_CHUNK_BYTES);
}

static void wake_collector(void) {
  __atomic_fetch_add(&control->wake_collector, 1, __ATOMIC_RELEASE);
  stem_sys4(SYS_futex, &control->wake_collector, FUTEX_WAKE, 1, 0);
}

static void wait_for_collector(uint32_t seen) {
  struct timespec ts = {0, 100000000};
  stem_sys4(SYS_futex, &control->wake_producer, FUTEX_WAIT, seen, &ts);
  uint32_t pid = __atomic_load_n(&control->collector_pid, __ATOMIC_ACQUIRE);
  if (pid && stem_sys4(SYS_kill, pid, 0, 0, 0) == -3 /* ESRCH */)
    __atomic_store_n(&control->failed, 1, __ATOMIC_RELEASE);
}

static void use_scratch(void) {
  if (!scratch) scratch = stem_host_pages(STEM_CHUNK_BYTES);
  __atomic_store_n(&bin_hot->cursor, scratch, __ATOMIC_RELEASE);
  bin.cursor = scratch;
  bin.limit = scratch + STEM_CHUNK_BYTES / sizeof(struct stem_rec);
  bin.cursor->head = 0;
}

static uint32_t take_chunk(void) {
  for (;;) {
    uint32_t seen = __atomic_load_n(&control->wake_producer, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE)) return UINT32_MAX;
    for (uint32_t i = 0; i < STEM_SERIAL_CHUNKS; i++) {
      struct stem_chunk* c = &control->chunks[i];
      if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != STEM_CHUNK_FREE) continue;
      c->stream = 0;
      c->order = order++;
      c->count = 0;
      return i;
    }
    wake_collector();
    wait_for_collector(seen);
  }
}

static void give_chunk(void) {
  struct stem_chunk* c = &control->chunks[chunk];
  c->count = (uint32_t)(bin.cursor - chunk_begin(chunk));
  __atomic_store_n(&c->state, STEM_CHUNK_FULL, __ATOMIC_RELEASE);
  chunk = UINT32_MAX;
  wake_collector();
}

void bin_next_chunk(void) {
  /* Nobody changes a record of a chunk that was handed over. */
  for (uint32_t i = 0; i < bin.live_count; i++) bin.live[i]->last_read = bin.live[i]->last_event = 0;
  if (!control) return use_scratch();
  if (chunk != UINT32_MAX) give_chunk();
  uint32_t i = take_chunk();
  if (i == UINT32_MAX) return use_scratch();
  chunk = i;
  bin.cursor = chunk_begin(i);
  bin.limit = chunk_begin(i + 1);
  bin.cursor->head = 0;
  __atomic_store_n(&bin_hot->cursor, bin.cursor, __ATOMIC_RELEASE);
  __atomic_store_n(&control->chunks[i].state, STEM_CHUNK_FILLING, __ATOMIC_RELEASE);
}

int bin_open(void* mapping, uint32_t pid) {
  bin_hot = mapping;
  control = (struct stem_control*)((char*)mapping + STEM_PAGE);
  control->version = STEM_RAW_VERSION;
  control->base = (uint64_t)(uintptr_t)mapping;
  control->producer_pid = pid;
  __atomic_store_n(&control->magic, STEM_RAW_MAGIC, __ATOMIC_RELEASE);
  return 0;
}

void bin_blob(enum stem_blob what, const void* bytes, uint64_t length) {
  bin_append(stem_head(STEM_RAW_Blob, what, 0), length, 0, 0);
  const char* from = bytes;
  for (uint64_t done = 0; done < length; done += sizeof(struct stem_rec)) {
    struct stem_rec r = {0, 0, 0, 0};
    uint64_t n = length - done < sizeof r ? length - done : sizeof r;
    for (uint64_t i = 0; i < n; i++) ((char*)&r)[i] = from[done + i];
    bin_append(r.head, r.value, r.expr, r.site);
  }
}

void bin_module(const char* path, uint64_t bias, uint64_t begin, uint64_t size) {
  bin_append(stem_head(STEM_RAW_Module, 0, bias), begin, (uint32_t)size, 0);
  uint64_t n = 0;
  while (path[n]) n++;
  bin_blob(STEM_BLOB_MODULE_PATH, path, n);
}

void bin_event(struct bin_thread* t, unsigned kind, unsigned flags, uint64_t addr, uint64_t value, uint64_t site) {
  if (!bin.on) return; /* the process is about to die: a thread that was parked is on its way out */
  t->last_event = bin_append(stem_head(kind, flags & 0xff, addr), value, flags & 0xff00, (uint32_t)site);
  t->since_branch = 1;
}

void bin_close(int wait) {
  if (!control) return;
  if (chunk != UINT32_MAX) give_chunk();
  bin.cursor = bin.limit = 0;
  __atomic_store_n(&control->closing, 1, __ATOMIC_RELEASE);
  wake_collector();
  for (int i = 0; wait && i < 600; i++) {
    uint32_t seen = __atomic_load_n(&control->wake_producer, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&control->closing, __ATOMIC_ACQUIRE) == 2 ||
        __atomic_load_n(&control->failed, __ATOMIC_ACQUIRE))
      break;
    wait_for_collector(seen);
  }
  control = 0;
}

void bin_forget(void) {
  control = 0;
  chunk = UINT32_MAX;
  order = 0;
  bin_hot = &nowhere;
  bin.cursor = bin.limit = 0;
}
