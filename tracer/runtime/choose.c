/* Who runs next when no plan says so.
 *
 * default  stays with a thread for a geometrically distributed number of operations (one in 1000 switches), then picks
 *          another at random; sleepers and deadlines wait for their time, or until nobody else can run.
 * random   picks uniformly at every operation; a sleep or a deadline may be over at any time, since no program may rely on how
 *          long things take.
 * pct      probabilistic concurrency testing (Burckhardt et al. 2010): random priorities, the highest runs; at depth - 1
 *          random operations the running thread's priority falls below all others.
 * In every mode a thread that spins (spin.c) yields to all that do not. */
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

uint64_t stem_random(void) { /* splitmix64 */
  uint64_t z = stem_sched.random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t below(uint64_t n) { return (uint64_t)(((unsigned __int128)stem_random() * n) >> 64); }

#define LOOK_AGAIN 4096 /* nobody to switch to: still ask now and then, or a spin loop would never be seen */

/* Switches are the rarer the longer a run is: after 17 million operations one in 18,000 instead of one in 1,000, else a long run
 * would spend a tenth of its time on them. Only where nobody asked for a mean. */
static uint64_t mean(void) {
  uint64_t more = stem_sched.switch_asked ? 0 : stem_sched.operations >> 10;
  return stem_sched.switch_one_in + (more < 1000000 ? more : 1000000);
}

/* Exponential with the mean asked for: -log2 of a uniform number, piecewise linear between the powers of two. */
int64_t stem_distance(void) {
  if (stem_live_count <= 1) return LOOK_AGAIN;
  if (stem_mode == STEM_MODE_RANDOM) return 0;
  uint64_t u = stem_random() | 1;
  int zeros = __builtin_clzll(u);
  uint64_t fraction = (u << zeros << 1) >> 48; /* 16 bits */
  uint64_t log2 = ((uint64_t)(zeros + 1) << 16) - fraction;
  return (int64_t)((log2 * mean() * 45426 /* ln 2 in 16 bits */) >> 32);
}

/* --- pct -------------------------------------------------------------------------------------------------------------------- */

#define MAX_DEPTH 64
static uint64_t change_points[MAX_DEPTH];
static uint32_t changes, change_count;

void stem_pct_init(void) {
  uint64_t depth = stem_option_number("depth", 3), length = stem_option_number("length", 5000);
  if (depth < 1) depth = 3;
  change_count = (uint32_t)(depth - 1 < MAX_DEPTH ? depth - 1 : MAX_DEPTH);
  changes = 0;
  for (uint32_t i = 0; i < change_count; i++) { /* insertion keeps them sorted */
    uint64_t at = 1 + below(length ? length : 1);
    uint32_t k = i;
    for (; k && change_points[k - 1] > at; k--) change_points[k] = change_points[k - 1];
    change_points[k] = at;
  }
  for (uint32_t i = 0; i < stem_live_count; i++) stem_pct_thread(stem_live[i]);
}

void stem_pct_thread(struct stem_thread* t) { t->priority = MAX_DEPTH + (stem_random() >> 8); }

int64_t stem_pct_distance(void) {
  if (changes == change_count) return LOOK_AGAIN;
  int64_t left = (int64_t)(change_points[changes] - stem_sched.operations);
  return left < 0 ? 0 : left > LOOK_AGAIN ? LOOK_AGAIN : left;
}

static void pct_change(struct stem_thread* asking) {
  while (changes < change_count && stem_sched.operations >= change_points[changes]) {
    if (asking) asking->priority = change_count - changes;
    changes++;
  }
}

/* --- the choice ---------------------------------------------------------------------------------------------------------------- */

/* Those whose operation can be done and who do not spin. */
static uint32_t collect(struct stem_thread** out, struct stem_thread* except, int timeouts) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (t == except || t->state != STEM_THREAD_PARKED) continue;
    if (stem_is_enabled(t) ? !stem_spinning(t) : t->pending.deadline && (timeouts || t->pending.deadline <= stem_now(CLOCK_MONOTONIC)))
      out[n++] = t;
  }
  return n;
}

/* A program that handles signals may wait for one from outside: ten seconds, at a pace that spares the trace. */
static uint32_t naps;

static int may_be_interrupted(void) {
  if (!stem_signal_handlers || naps >= 10000) return 0;
  naps++;
  struct timespec millisecond = {0, 1000000};
  stem_sys(SYS_nanosleep, &millisecond, 0, 0); /* the signal ends it */
  return 1;
}

/* Private memory on the heap is not in the prints: a loop that counts there has this long to end. */
#define PERSISTENCE 250000000u
static uint64_t hopeless_since;

/* Everybody who could run spins: the sleeper that wakes first, else the spinners in turn. */
static struct stem_thread* among_spinners(struct stem_thread* asking) {
  struct stem_thread *oldest = 0, *sleeper = 0;
  int hopeless = 1;
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (t->state != STEM_THREAD_PARKED) continue;
    int enabled = stem_is_enabled(t);
    if (!enabled && !t->pending.deadline) {
      hopeless &= !t->pending.external;
      continue;
    }
    hopeless &= stem_spin_hopeless(t);
    if (enabled && (!oldest || t->granted_at < oldest->granted_at || (oldest == asking && t->granted_at == oldest->granted_at))) oldest = t;
    if (!enabled && (!sleeper || t->pending.deadline < sleeper->pending.deadline)) sleeper = t;
  }
  if (!oldest && !sleeper) return 0;
  if (!hopeless) hopeless_since = 0;
  if (hopeless && !hopeless_since) hopeless_since = stem_real_nanoseconds();
  if (hopeless && stem_real_nanoseconds() - hopeless_since > PERSISTENCE && !stem_sched.outside && !stem_signal_sources && !stem_sched.over && !may_be_interrupted())
    stem_report_stuck(stem_sched.writer, "livelock");
  if (!hopeless) naps = 0;
  if (!oldest) return 0; /* only sleepers: the caller lets time pass */
  return sleeper && sleeper->granted_at <= oldest->granted_at ? sleeper : oldest;
}

static struct stem_thread* highest(struct stem_thread** from, uint32_t n) {
  struct stem_thread* best = from[0];
  for (uint32_t i = 1; i < n; i++)
    if (from[i]->priority > best->priority) best = from[i];
  return best;
}

struct stem_thread* stem_choose(struct stem_thread* asking) {
  static struct stem_thread** candidates;
  if (!candidates) candidates = stem_pages(STEM_MAX_THREADS * sizeof *candidates);
  uint32_t n = 0;
  switch (stem_mode) {
    case STEM_MODE_PCT:
      pct_change(asking);
      n = collect(candidates, 0, 0);
      if (n) return highest(candidates, n);
      break;
    case STEM_MODE_RANDOM:
      /* Deadlines are chosen as others are, but four times less often: otherwise nothing ever waits successfully. */
      n = collect(candidates, 0, below(4) == 0);
      if (n) return candidates[below(n)];
      break;
    case STEM_MODE_DEFAULT:
    case STEM_MODE_GUIDED:
    case STEM_MODE_PARALLEL:
      if (asking && __stem_hot.countdown > 0 && stem_is_enabled(asking) && !stem_spinning(asking)) return asking;
      n = collect(candidates, asking, 0);
      if (n) return candidates[below(n)];
      if (asking && stem_is_enabled(asking) && !stem_spinning(asking)) return asking;
      break;
  }
  return among_spinners(asking);
}
