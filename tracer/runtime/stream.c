/* Records into chunks of the shared mapping, and full chunks to the collector.
 *
 * Serialised recording has one stream, whose cursor is in the hot page, because instrumented code appends there itself.
 * Parallel recording has one a thread. A full chunk costs a few stores and a wake-up; if the collector is slower than we
 * are, the 64 chunks (12 MiB) fill up and the program waits for it. If it fails or dies, the program runs on and its
 * records are thrown away. */
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

struct stem_control* stem_control;
uint32_t stem_collector_wait;

static struct stem_lock pool_lock;
static struct stem_rec* scratch;  /* where records go that nobody will read */
static uint64_t serial_order;
static uint32_t serial_chunk = UINT32_MAX;
static uint64_t next_ticket;

static struct stem_rec* chunk_begin(uint32_t i) {
  return (struct stem_rec*)((char*)stem_control - STEM_PAGE + 2 * STEM_PAGE + (uint64_t)i * STEM_CHUNK_BYTES);
}

static void wake_collector(void) {
  __atomic_fetch_add(&stem_control->wake_collector, 1, __ATOMIC_RELEASE);
  stem_futex_wake(&stem_control->wake_collector, 1, 1);
}

static int collector_gone(void) {
  uint32_t pid = __atomic_load_n(&stem_control->collector_pid, __ATOMIC_ACQUIRE);
  return pid != 0 && stem_sys(SYS_kill, pid, 0, 0) == -3 /* ESRCH */;
}

static void use_scratch(struct stem_rec** cursor, struct stem_rec** limit) {
  struct stem_rec* s = __atomic_load_n(&scratch, __ATOMIC_ACQUIRE);
  if (!s) {
    s = stem_pages(STEM_CHUNK_BYTES);
    __atomic_store_n(&scratch, s, __ATOMIC_RELEASE);
  }
  __atomic_store_n(cursor, s, __ATOMIC_RELEASE);
  *limit = s + STEM_CHUNK_BYTES / sizeof(struct stem_rec);
}

/* A free chunk, the lowest so that memory stays warm; waits for the collector; UINT32_MAX when it failed. */
static uint32_t take_chunk(uint32_t stream, uint64_t order) {
  for (;;) {
    uint32_t seen = __atomic_load_n(&stem_control->wake_producer, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&stem_control->failed, __ATOMIC_ACQUIRE)) return UINT32_MAX;
    for (uint32_t i = 0; i < (stem_parallel ? STEM_CHUNKS : STEM_SERIAL_CHUNKS); i++) {
      struct stem_chunk* c = &stem_control->chunks[i];
      if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != STEM_CHUNK_FREE) continue;
      c->stream = stream;
      c->order = order;
      c->count = 0;
      __atomic_store_n(&stem_control->cursors[i], (uint64_t)(uintptr_t)chunk_begin(i), __ATOMIC_RELEASE);
      return i; /* the caller sets FILLING once its cursor points there */
    }
    wake_collector();
    stem_collector_wait = 1;
    long r = stem_futex_wait(&stem_control->wake_producer, seen, 100000000, 1);
    stem_collector_wait = 0;
    if (r == -110 /* ETIMEDOUT */ && collector_gone()) __atomic_store_n(&stem_control->failed, 1, __ATOMIC_RELEASE);
  }
}

static void give_chunk(uint32_t i, struct stem_rec* cursor) {
  struct stem_chunk* c = &stem_control->chunks[i];
  c->count = (uint32_t)(cursor - chunk_begin(i));
  __atomic_store_n(&c->state, STEM_CHUNK_FULL, __ATOMIC_RELEASE);
  wake_collector();
}

static void next_serial_chunk(void) {
  stem_spin_scan();
  if (!stem_control) return use_scratch(&__stem_hot.cursor, &__stem_hot.limit);
  if (serial_chunk != UINT32_MAX) {
    /* The collector reads hot.cursor for the chunk that is FILLING only: full first, then the new cursor, then FILLING. */
    give_chunk(serial_chunk, __stem_hot.cursor);
    serial_chunk = UINT32_MAX;
  }
  uint32_t i = take_chunk(0, serial_order);
  if (i == UINT32_MAX) {
    use_scratch(&__stem_hot.cursor, &__stem_hot.limit);
  } else {
    serial_order++;
    serial_chunk = i;
    __atomic_store_n(&__stem_hot.cursor, chunk_begin(i), __ATOMIC_RELEASE);
    __stem_hot.limit = chunk_begin(i + 1);
    __atomic_store_n(&stem_control->chunks[i].state, STEM_CHUNK_FILLING, __ATOMIC_RELEASE);
  }
  stem_spin_reset();
}

static void next_own_chunk(struct stem_thread* self) {
  if (!stem_control) return use_scratch(&self->cursor, &self->limit);
  stem_lock(&pool_lock);
  if (self->chunk != UINT32_MAX) give_chunk(self->chunk, self->cursor);
  self->chunk = take_chunk(self->index, self->chunks);
  if (self->chunk == UINT32_MAX) {
    use_scratch(&self->cursor, &self->limit);
  } else {
    self->chunks++;
    self->cursor = chunk_begin(self->chunk);
    self->limit = chunk_begin(self->chunk + 1);
    __atomic_store_n(&stem_control->chunks[self->chunk].state, STEM_CHUNK_FILLING, __ATOMIC_RELEASE);
  }
  stem_unlock(&pool_lock);
}

void stem_append_slowly(struct stem_thread* self, uint64_t head, uint64_t value, uint32_t expr, uint32_t site) {
  struct stem_rec* r;
  /* The watchdog took the token from it while it slept, and what it records now is no visible operation: it must ask first. */
  if (STEM_UNLIKELY(stem_sched.detached) && self->watchdog && self == stem_current) stem_arrive(self);
  if (STEM_LIKELY(!stem_parallel)) {
    if (STEM_UNLIKELY(__stem_hot.cursor >= __stem_hot.limit)) next_serial_chunk();
    r = __stem_hot.cursor;
  } else {
    if (STEM_UNLIKELY(self->cursor >= self->limit)) next_own_chunk(self);
    r = self->cursor;
  }
  r->head = head;
  r->value = value;
  r->expr = expr;
  r->site = site;
  if (STEM_LIKELY(!stem_parallel)) {
    __atomic_store_n(&__stem_hot.cursor, r + 1, __ATOMIC_RELEASE);
  } else {
    self->cursor = r + 1;
    if (stem_control && self->chunk != UINT32_MAX)
      __atomic_store_n(&stem_control->cursors[self->chunk], (uint64_t)(uintptr_t)(r + 1), __ATOMIC_RELEASE);
  }
}

void stem_blob(struct stem_thread* self, enum stem_blob what, const void* bytes, uint64_t length) {
  stem_append(self, stem_head(STEM_RAW_Blob, what, 0), length, 0, 0);
  const char* from = bytes;
  for (uint64_t done = 0; done < length; done += sizeof(struct stem_rec)) {
    struct stem_rec r = {0, 0, 0, 0};
    uint64_t n = length - done < sizeof r ? length - done : sizeof r;
    __builtin_memcpy(&r, from + done, n);
    stem_append(self, r.head, r.value, r.expr, r.site);
  }
}

uint64_t stem_ticket(void) { return __atomic_fetch_add(&next_ticket, 1, __ATOMIC_RELAXED); }

void stem_stream_open(struct stem_thread* self) {
  self->chunk = UINT32_MAX;
  self->cursor = self->limit = 0;
}

void stem_stream_close(struct stem_thread* self) {
  if (!stem_parallel || !stem_control || self->chunk == UINT32_MAX) return;
  stem_lock(&pool_lock);
  give_chunk(self->chunk, self->cursor);
  self->chunk = UINT32_MAX;
  self->cursor = self->limit = 0;
  stem_unlock(&pool_lock);
}

void stem_stream_finish(int wait) {
  if (!stem_control) return;
  if (!stem_parallel && serial_chunk != UINT32_MAX) {
    give_chunk(serial_chunk, __stem_hot.cursor);
    serial_chunk = UINT32_MAX;
    __stem_hot.cursor = __stem_hot.limit = 0; /* what still comes is after the end: the slow way, and from there nowhere */
  }
  __atomic_store_n(&stem_control->closing, 1, __ATOMIC_RELEASE);
  wake_collector();
  for (int i = 0; wait && i < 300; i++) { /* half a minute without news at most */
    uint32_t seen = __atomic_load_n(&stem_control->wake_producer, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&stem_control->closing, __ATOMIC_ACQUIRE) == 2 || stem_control->failed || collector_gone()) break;
    stem_futex_wait(&stem_control->wake_producer, seen, 100000000, 1);
  }
}

void stem_recording_forget(void) {
  serial_chunk = UINT32_MAX;
  serial_order = 0;
  next_ticket = 0;
  stem_control = 0;
  pool_lock.word = 0;
  __stem_hot.cursor = __stem_hot.limit = 0;
  __stem_hot.countdown = 0;
  stem_rounds_forget();
}
