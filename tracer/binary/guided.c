/* Follows the plan's schedule: (thread, number of visible operations), one after the other.
 *
 * Within a step the thread runs on its countdown; the step's last operation is asked for when the plan says at which
 * site, of which kind, or with which effect it must be. What does not fit is a divergence: reported with what was
 * wanted, what was found and what everybody waits for, and the run goes on freely. Never a hang. */
#include "tracer/binary/engine.h"

static const struct stem_plan_step* steps;
static uint32_t step_count, step;
static int64_t left; /* operations left in the current step */

static const char* plan_path(uint32_t index) {
  static char path[BIN_MAX_PATH];
  uint32_t k = 0;
  for (const struct stem_plan_item* item = 0; (item = bin_plan_next(STEM_PLAN_THREAD, item)); k++)
    if (k == index) {
      size_t n = item->size < sizeof path - 1 ? item->size : sizeof path - 1;
      for (size_t i = 0; i < n; i++) path[i] = ((const char*)(item + 1))[i];
      path[n] = 0;
      return path;
    }
  return "?";
}

static int same(const char* a, const char* b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

uint32_t bin_plan_thread(const char* path) {
  uint32_t k = 0;
  for (const struct stem_plan_item* item = 0; (item = bin_plan_next(STEM_PLAN_THREAD, item)); k++)
    if (same(plan_path(k), path)) return k;
  return UINT32_MAX;
}

void bin_guided_init(void) {
  const struct stem_plan_item* item = bin_plan_next(STEM_PLAN_STEPS, 0);
  steps = item ? (const struct stem_plan_step*)(item + 1) : 0;
  step_count = item ? (uint32_t)(item->size / sizeof *steps) : 0;
  left = step_count ? steps[0].count : 0;
}

void bin_guided_used(int64_t operations) { left -= operations; }

static struct bin_thread* thread_of_step(void) {
  for (uint32_t i = 0; i < bin.live_count; i++)
    if (bin.live[i]->plan_index == steps[step].thread) return bin.live[i];
  return 0;
}

static void diverge(const char* why, struct bin_thread* found) {
  static char buffer[32768];
  struct bin_text text = {buffer, buffer + sizeof buffer};
  uint32_t at = step < step_count ? step : step_count - 1;
  bin_text_add(&text, "{\"kind\":\"divergence\",\"step\":");
  bin_text_number(&text, at, 10);
  bin_text_add(&text, ",\"thread\":");
  bin_text_json(&text, plan_path(steps[at].thread));
  bin_text_operation(&text, "wanted", steps[at].kind, steps[at].site_key);
  if (found) bin_text_operation(&text, "found", 1u + found->pending.kind, stem_host_key(found->pending.site));
  bin_text_add(&text, ",\"why\":");
  bin_text_json(&text, why);
  bin_text_add(&text, ",\"operations_left\":");
  bin_text_number(&text, left > 0 ? (uint64_t)left : 0, 10);
  bin_text_add(&text, ",");
  bin_text_threads(&text);
  bin_text_add(&text, "}");
  bin_message(buffer);
  bin.diverged = 1;
  bin.mode = BIN_DEFAULT;
}

void bin_guided_give_up(const char* why) { diverge(why, thread_of_step()); }

/* A try that fails, a compare-and-swap that fails: another kind of event, the same operation before it is done. */
static int same_kind(unsigned pending, unsigned wanted) {
  if (pending == wanted) return 1;
  switch (wanted) {
    case STEM_KIND_LockFail:
      return pending == STEM_KIND_Lock;
    case STEM_KIND_RdLockFail:
      return pending == STEM_KIND_RdLock;
    case STEM_KIND_WrLockFail:
      return pending == STEM_KIND_WrLock;
    case STEM_KIND_SemFail:
      return pending == STEM_KIND_SemWait;
    case STEM_KIND_Read:
      return pending == STEM_KIND_Rmw;
    case STEM_KIND_OncePass:
      return pending == STEM_KIND_OnceBegin;
    case STEM_KIND_Yield:
      return 1; /* an operation that had no effect */
  }
  return 0;
}

enum bin_answer bin_guided_choose(struct bin_thread** next, int64_t* countdown) {
  bin.guided_wakes = 0;
  if (left < 0) {
    diverge("one instruction makes several accesses: the schedule asks for a switch between them", 0);
    return BIN_OVER;
  }
  while (step < step_count && left <= 0) {
    step++;
    left = step < step_count ? steps[step].count : 0;
  }
  if (step >= step_count) return BIN_OVER;
  const struct stem_plan_step* s = &steps[step];
  struct bin_thread* t = thread_of_step();
  if (!t || t->state == BIN_UNBORN) {
    int ended = 0;
    for (uint32_t i = 0; i < bin.thread_count; i++)
      ended |= bin.all[i]->plan_index == s->thread && bin.all[i]->state == BIN_ENDED;
    diverge(ended ? "the thread whose turn it is has ended" : "the thread whose turn it is does not exist yet", 0);
    return BIN_OVER;
  }
  if (t->state == BIN_OUTSIDE) return BIN_WAIT;
  if (!t->pending.arriving && !bin_is_enabled(t) && !t->pending.deadline) {
    diverge("the thread whose turn it is cannot go on: what it waits for is not there", t);
    return BIN_OVER;
  }
  int look = s->site_key || s->kind || s->wakes;
  if (left == 1 && look && !t->pending.arriving) {
    if ((s->site_key && stem_host_key(t->pending.site) != s->site_key) ||
        (s->kind && !same_kind(t->pending.kind, s->kind - 1))) {
      diverge("the thread is about to do something else than the schedule says", t);
      return BIN_OVER;
    }
    if (s->wakes) bin.guided_wakes = s->wakes;
  }
  *next = t;
  /* The pending operation is one of them; the last is asked for if it is to be looked at. */
  *countdown = left - 1 - (look && left > 1);
  return BIN_GRANT;
}
