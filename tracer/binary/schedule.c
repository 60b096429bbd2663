/* The scheduler: one token; threads take turns, and switch just before visible operations.
 *
 * default  stays with a thread for a geometrically distributed number of operations (one in 1000 switches)
 * random   picks any thread at every operation
 * pct      random priorities, the highest runs; at depth - 1 random operations it falls below all others
 * guided   follows the plan (guided.c), then default
 * Sleeps and deadlines run on a clock that jumps when nobody can run and nobody is outside; without a deadline that is
 * a deadlock. */
#include "tracer/binary/engine.h"

#define LOOK_AGAIN 4096
#define PATIENCE 10000000000u /* ns that a guided thread may be outside */

static uint64_t idle_since;

uint64_t bin_random(void) { /* splitmix64 */
  uint64_t z = bin.random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t below(uint64_t n) { return (uint64_t)(((unsigned __int128)bin_random() * n) >> 64); }

/* --- pct
 * -------------------------------------------------------------------------------------------------------------------
 */

static uint64_t change_points[64];
static uint32_t changes, change_count;

static void pct_init(void) {
  uint64_t depth = bin_option_number("depth", 3), length = bin_option_number("length", 5000);
  change_count = depth < 2 ? 0 : depth > 64 ? 63 : (uint32_t)depth - 1;
  for (uint32_t i = 0; i < change_count; i++) {
    uint64_t at = 1 + below(length ? length : 1);
    uint32_t k = i;
    for (; k && change_points[k - 1] > at; k--) change_points[k] = change_points[k - 1];
    change_points[k] = at;
  }
}

uint64_t bin_now(void) { return stem_host_now() + bin.skipped; }

/* Switches are the rarer the longer a run is, as in the compiled runtime (choose.c there): after 17 million operations
 * one in 18,000 instead of one in 1,000. Only where nobody asked for a mean. */
static uint64_t mean(void) {
  uint64_t more = bin.switch_asked ? 0 : bin.operations >> 10;
  return bin.switch_one_in + (more < 1000000 ? more : 1000000);
}

static int64_t distance(void) {
  if (bin.live_count <= 1) return LOOK_AGAIN;
  if (bin.mode == BIN_RANDOM) return 0;
  if (bin.mode == BIN_PCT) {
    if (changes == change_count) return LOOK_AGAIN;
    int64_t left = (int64_t)(change_points[changes] - bin.operations);
    return left < 0 ? 0 : left > LOOK_AGAIN ? LOOK_AGAIN : left;
  }
  uint64_t u = bin_random() | 1;
  int zeros = __builtin_clzll(u);
  uint64_t fraction = (u << zeros << 1) >> 48;
  uint64_t log2 = ((uint64_t)(zeros + 1) << 16) - fraction;
  return (int64_t)((log2 * mean() * 45426 /* ln 2 in 16 bits */) >> 32);
}

/* --- the token
 * ------------------------------------------------------------------------------------------------------------------ */

static void account(void) {
  int64_t used = bin.granted - bin.countdown;
  if (used > 0) {
    bin.operations += (uint64_t)used;
    if (bin.mode == BIN_GUIDED) bin_guided_used(used);
  }
  bin.granted = bin.countdown;
}

static void set_countdown(int64_t n) {
  account();
  bin.granted = bin.countdown = n < 0 ? 0 : n;
}

int bin_is_enabled(struct bin_thread* t) {
  return t->state == BIN_PARKED && (!t->pending.enabled || t->pending.enabled(t, t->pending.arg));
}

static void grant(struct bin_thread* t, int64_t countdown, struct bin_thread* asking) {
  t->timed_out = !bin_is_enabled(t);
  t->state = BIN_RUNNING;
  bin.holder = bin.runs = t;
  bin_private_changed();
  idle_since = 0;
  t->granted_at = bin.operations;
  bin.granted = bin.countdown;
  if (!t->pending.arriving) {
    bin.operations++;
    if (bin.mode == BIN_GUIDED) bin_guided_used(1);
  } else if (countdown < INT64_MAX / 2) {
    countdown++;
  }
  set_countdown(countdown);
  if (bin.writer != t) {
    bin.writer = t;
    bin_append(stem_head(STEM_RAW_Switch, 0, 0), t->index, 0, 0);
  }
  __atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
  if (t != asking) stem_host_wake(t, asking != 0);
}

static int can_run(struct bin_thread* t, uint64_t now) {
  return t->state == BIN_PARKED && (bin_is_enabled(t) || (t->pending.deadline && t->pending.deadline <= now));
}

static struct bin_thread* choose(struct bin_thread* asking) {
  static struct bin_thread* candidates[BIN_MAX_THREADS];
  uint64_t now = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->pending.deadline) now = bin_now();
  if (bin.mode == BIN_PCT)
    while (changes < change_count && bin.operations >= change_points[changes]) {
      if (asking) asking->priority = change_count - changes;
      changes++;
    }
  struct bin_thread* stays = asking && bin.mode == BIN_DEFAULT && can_run(asking, now) ? asking : 0;
  if (stays && bin.countdown > 0) return stays;
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i] != stays && can_run(bin.live[i], now)) candidates[n++] = bin.live[i];
  if (n == 0) return stays;
  if (bin.mode != BIN_PCT) return candidates[below(n)];
  struct bin_thread* best = candidates[0];
  for (uint32_t i = 1; i < n; i++)
    if (candidates[i]->priority > best->priority) best = candidates[i];
  /* A spinning thread must not starve those it waits for. */
  if (best == asking && bin.operations - best->granted_at > 100000) best->priority = 0;
  return best;
}

/* Nobody can do anything before the next deadline. */
int bin_skip_to_deadline(void) {
  uint64_t first = 0, now = bin_now();
  for (uint32_t i = 0; i < bin.live_count; i++) {
    uint64_t at = bin.live[i]->state == BIN_PARKED ? bin.live[i]->pending.deadline : 0;
    if (at && (!first || at < first)) first = at;
  }
  if (first > now) bin.skipped += first - now;
  return first != 0;
}

static void pass_token(struct bin_thread* asking) {
  struct bin_thread* next = 0;
  int64_t countdown = 0;
  if (bin.mode == BIN_GUIDED) switch (bin_guided_choose(&next, &countdown)) {
      case BIN_GRANT:
        return grant(next, countdown, asking);
      case BIN_WAIT:
        if (!idle_since) idle_since = stem_host_now();
        if (stem_host_now() - idle_since < PATIENCE) return;
        bin_guided_give_up("the thread whose turn it is has been blocked outside the program for ten seconds");
        break;
      case BIN_OVER:
        bin.mode = BIN_DEFAULT;
    }
  next = choose(asking);
  if (!next && !bin.outside && bin_skip_to_deadline()) next = choose(asking);
  if (next) return grant(next, distance(), asking);
  int parked = 0, hope = bin.outside != 0;
  for (uint32_t i = 0; i < bin.live_count; i++)
    parked |= bin.live[i]->state == BIN_PARKED, hope |= bin.live[i]->state == BIN_UNBORN;
  if (parked && !hope) bin_deadlock();
}

void bin_looked(void) {
  if (!bin.holder && bin.on) pass_token(0);
}

static void wait_for_token(struct bin_thread* self) {
  if (self->state == BIN_OUTSIDE) bin.outside--;
  self->state = BIN_PARKED;
  if (bin.holder == self) {
    account();
    bin.holder = 0;
  }
  if (!bin.holder) pass_token(self);
  while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE) && bin.on) {
    uint64_t until = self->pending.deadline;
    stem_host_block(self, until > bin.skipped ? until - bin.skipped : until);
    if (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE)) bin_looked();
  }
  __atomic_store_n(&self->go, 0, __ATOMIC_RELAXED);
}

int bin_ask(struct bin_thread* self, const struct bin_pending* pending) {
  for (;;) {
    if (!bin.on) return 0;
    self->pending = *pending;
    wait_for_token(self);
    int timed_out = (int)self->timed_out;
    self->timed_out = 0;
    if (timed_out && pending->deadline) return 1;
    if (!timed_out) return 0;
  }
}

void bin_outside_begin(struct bin_thread* self) {
  if (!bin.on || self->state != BIN_RUNNING || self->joining) return;
  self->state = BIN_OUTSIDE;
  bin.outside++;
  if (bin.holder != self) return;
  account();
  bin.holder = 0;
  pass_token(0);
}

/* Coming back is an operation of the schedule: a replay, where the outside may answer at once, has to go on at the same
 * place. Not so from a lock inside a library: whether that one waits depends on more than the schedule. */
void bin_outside_end(struct bin_thread* self, int operation) {
  if (!bin.on || self->state != BIN_OUTSIDE) return;
  self->pending = (struct bin_pending){.kind = STEM_KIND_Yield, .arriving = (uint8_t)!operation};
  wait_for_token(self);
  self->timed_out = 0;
  if (!operation) return;
  self->came_back = 1;
  bin_event(self, STEM_KIND_Yield, 0, 0, 0, 0);
}

/* --- threads
 * -----------------------------------------------------------------------------------------------------------------------
 */

static void child_path(struct bin_thread* parent, struct bin_thread* t) {
  struct bin_text text = {t->path, t->path + sizeof t->path};
  size_t n = 0;
  while (parent->path[n]) n++;
  if (n + 12 < sizeof t->path) {
    bin_text_add(&text, parent->path);
  } else { /* creation chains of hundreds */
    bin_text_add(&text, "main/~");
    bin_text_number(&text, parent->index, 10);
  }
  bin_text_add(&text, "/");
  bin_text_number(&text, ++parent->children, 10);
}

/* From its Create on it is a candidate with a pending Start, whether or not the kernel has run it yet. */
struct bin_thread* bin_thread_new(struct bin_thread* parent) {
  if (bin.thread_count == BIN_MAX_THREADS) return 0;
  struct bin_thread* t = stem_host_pages(sizeof *t);
  t->parent = parent ? parent->index : UINT32_MAX;
  t->next_id = 1;
  t->index = bin.thread_count;
  if (parent) {
    child_path(parent, t);
  } else {
    struct bin_text text = {t->path, t->path + sizeof t->path};
    bin_text_add(&text, "main");
  }
  t->plan_index = bin_plan_thread(t->path);
  t->priority = 64 + (bin_random() >> 8);
  t->state =
      parent && parent->creating ? BIN_UNBORN : BIN_PARKED; /* made by other means than pthread_create: at once */
  t->pending = (struct bin_pending){.kind = STEM_KIND_Start};
  bin.all[bin.thread_count++] = t;
  bin.live[bin.live_count++] = t;
  return t;
}

void bin_thread_undo(struct bin_thread* t) {
  bin.thread_count--;
  bin.live_count--;
  bin.all[t->parent]->children--;
}

void bin_thread_define(struct bin_thread* t) {
  t->defined = 1;
  char name[32] = "main";
  struct bin_text text = {name, name + sizeof name};
  if (t->start) {
    bin_text_add(&text, "0x");
    bin_text_number(&text, t->start, 16);
  }
  size_t path = 0, start = 0;
  while (t->path[path]) path++;
  while (name[start]) start++;
  bin_append(stem_head(STEM_RAW_Thread, 0, 0), t->index, t->parent, 0);
  bin_blob(STEM_BLOB_THREAD_PATH, t->path, path);
  bin_blob(STEM_BLOB_THREAD_START, name, start);
}

struct bin_thread* bin_thread_by_host(int host) {
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->host == host) return bin.live[i];
  return 0;
}

/* A handle is reused once its thread was joined, or ended detached: the latest one counts. */
struct bin_thread* bin_thread_by_handle(uint64_t handle) {
  for (uint32_t i = bin.thread_count; i-- > 0;) {
    struct bin_thread* t = bin.all[i];
    if (t->handle == handle && !t->joined && !(t->detached && t->state == BIN_ENDED)) return t;
  }
  return 0;
}

void bin_start(struct bin_thread* self) {
  while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE) && bin.on) {
    stem_host_block(self, 0);
    if (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE)) bin_looked();
  }
  __atomic_store_n(&self->go, 0, __ATOMIC_RELAXED);
  self->timed_out = 0;
  if (!bin.on) return;
  if (!self->defined) bin_thread_define(self); /* made by other means than pthread_create */
  bin_event(self, STEM_KIND_Start, 0, 0, 0, 0);
}

void bin_end(struct bin_thread* self) {
  if (!bin.on) return;
  bin_pin(self, 0);
  self->ending = 1;
  bin_visible(self, STEM_KIND_End, 0, 0, 0, 0, 0);
  if (!bin.on) return;
  bin_event(self, STEM_KIND_End, 0, 0, 0, 0);
  self->state = BIN_ENDED;
  self->host = -1;
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i] == self) bin.live[i] = bin.live[--bin.live_count];
  if (bin.holder == self) {
    account();
    bin.holder = 0;
    pass_token(0);
  }
}

void bin_finish(enum bin_outcome outcome, int code) {
  if (!bin.on) return;
  bin.on = 0;
  struct bin_thread* self = bin.holder ? bin.holder : bin.all[0];
  if (bin.writer != self) bin_append(stem_head(STEM_RAW_Switch, 0, 0), self->index, 0, 0);
  bin_append(stem_head(STEM_KIND_Exit, 0, 0), (uint64_t)(int64_t)code, 0, 0);
  bin_append(stem_head(STEM_RAW_Value2, 0, 0), (uint64_t)outcome, 0, 0);
  bin_close(1);
}

static void begin(struct bin_thread* before) {
  const char* mode = bin_option("mode");
  const int guided = mode && mode[0] == 'g' && bin_plan_next(STEM_PLAN_STEPS, 0);
  bin.mode = !mode                              ? BIN_DEFAULT
             : mode[0] == 'r'                   ? BIN_RANDOM
             : guided                           ? BIN_GUIDED
             : mode[0] == 'p' && mode[1] == 'c' ? BIN_PCT
                                                : BIN_DEFAULT;
  bin.random = bin_option_number("seed", 1) * 0x9e3779b97f4a7c15u + 0x1234567;
  bin.switch_one_in = bin_option_number("switch", 0);
  bin.switch_asked = bin.switch_one_in != 0;
  if (!bin.switch_one_in) bin.switch_one_in = 1000;
  if (bin.mode == BIN_PCT) pct_init();
  if (bin.mode == BIN_GUIDED) bin_guided_init();
  struct bin_thread* t = bin_thread_new(0);
  if (before) {
    t->host = before->host, t->tid = before->tid, t->handle = before->handle;
    t->stack_low = before->stack_low, t->stack_high = before->stack_high;
    for (uint32_t i = 0; i < before->mark_count; i++) t->marks[i] = before->marks[i];
    t->mark_count = before->mark_count;
    t->writers = before->writers, t->writer_bytes = before->writer_bytes;
  }
  t->state = BIN_RUNNING;
  bin.holder = bin.writer = bin.runs = t;
  bin.on = 1;
  bin_private_changed();
  bin_thread_define(t);
  bin_visible(t, STEM_KIND_Start, 0, 0, 0, 0, 0);
  bin_event(t, STEM_KIND_Start, 0, 0, 0, 0);
}

void bin_init(void) { begin(0); }

void bin_again(void) {
  struct bin_thread* self = bin.holder;
  uint64_t skipped = bin.skipped;
  bin.countdown = bin.granted = 0;
  bin.operations = 0;
  bin.outside = bin.live_count = bin.thread_count = 0;
  bin.guided_wakes = 0;
  bin.diverged = 0;
  changes = change_count = 0;
  idle_since = 0;
  begin(self);
  bin.skipped = skipped;
}
