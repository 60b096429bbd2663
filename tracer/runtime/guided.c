/* Follows the plan's schedule: (thread, number of visible operations), one after the other.
 *
 * Within a step the thread runs on its countdown like in any mode; the step's last operation is asked for when the plan
 * says at which site, of which kind, or with which effect it must be. What does not fit is a divergence: it is reported with
 * what was wanted, what was found and what everybody waits for, and the run goes on in default mode. Never a hang. */
#include "tracer/runtime/state.h"

static const struct stem_plan_step* steps;
static uint32_t step_count, step;
static int64_t left;          /* operations left in the current step */
static int stop_at_last;
uint32_t stem_guided_wakes;
int stem_diverged;

uint32_t stem_plan_thread(const char* path) {
  uint32_t k = 0;
  size_t n = __builtin_strlen(path);
  for (const struct stem_plan_item* item = 0; (item = stem_plan_next(STEM_PLAN_THREAD, item)); k++) {
    const char* text = stem_plan_bytes(item);
    size_t size = item->size;
    while (size && text[size - 1] == 0) size--;
    if (size == n && __builtin_memcmp(text, path, n) == 0) return k;
  }
  return UINT32_MAX;
}

static const char* plan_path(uint32_t index, size_t* size) {
  uint32_t k = 0;
  for (const struct stem_plan_item* item = 0; (item = stem_plan_next(STEM_PLAN_THREAD, item)); k++)
    if (k == index) {
      *size = item->size;
      while (*size && ((const char*)stem_plan_bytes(item))[*size - 1] == 0) --*size;
      return stem_plan_bytes(item);
    }
  *size = 1;
  return "?";
}

void stem_guided_init(void) {
  const struct stem_plan_item* item = stem_plan_next(STEM_PLAN_STEPS, 0);
  steps = item ? stem_plan_bytes(item) : 0;
  step_count = item ? (uint32_t)(item->size / sizeof *steps) : 0;
  step = 0;
  left = step_count ? steps[0].count : 0;

  const char* stop = stem_option("stop");
  stop_at_last = stop && __builtin_strcmp(stop, "last") == 0;
}

void stem_guided_used(int64_t operations) { left -= operations; }

static struct stem_thread* thread_of_step(void) {
  for (uint32_t i = 0; i < stem_live_count; i++)
    if (stem_live[i]->plan_index == steps[step].thread) return stem_live[i];
  return 0;
}

/* --- divergence ---------------------------------------------------------------------------------------------------------------- */

static void add_operation(struct stem_text* text, const char* name, unsigned kind_plus_1, uint64_t key) {
  static const char hex[] = "0123456789abcdef";
  stem_text_add(text, ",\"");
  stem_text_add(text, name);
  stem_text_add(text, "\":{");
  if (kind_plus_1) {
    stem_text_add(text, "\"op\":\"");
    stem_text_add(text, stem_kind_text(kind_plus_1 - 1));
    stem_text_add(text, key ? "\"," : "\"");
  }
  if (key) {
    char digits[20] = "";
    for (int i = 0; i < 16; i++) digits[i] = hex[key >> (60 - 4 * i) & 15];
    stem_text_add(text, "\"site\":\"");
    stem_text_add(text, digits);
    stem_text_add(text, "\"");
  }
  stem_text_add(text, "}");
}

static void diverge(const char* why, struct stem_thread* found) {
  static char buffer[32768];
  struct stem_text text = {buffer, buffer + sizeof buffer};
  size_t size;
  const char* path = plan_path(steps[step].thread, &size);
  stem_text_add(&text, "{\"kind\":\"divergence\",\"step\":");
  stem_text_number(&text, step, 10);
  stem_text_add(&text, ",\"thread\":");
  stem_text_json(&text, path, size);
  add_operation(&text, "wanted", steps[step].kind, steps[step].site_key);
  if (found) add_operation(&text, "found", 1u + found->pending.kind, stem_site_key(found->pending.site));
  stem_text_add(&text, ",\"why\":");
  stem_text_json(&text, why, __builtin_strlen(why));
  stem_text_add(&text, ",\"operations_left\":");
  stem_text_number(&text, left > 0 ? (uint64_t)left : 0, 10);
  stem_text_add(&text, ",");
  stem_text_threads(&text);
  stem_text_add(&text, "}");
  stem_message(stem_sched.writer, buffer);
  stem_diverged = 1;
  stem_mode = STEM_MODE_DEFAULT;
}

void stem_guided_give_up(const char* why) { diverge(why, thread_of_step()); }

/* A try that fails, a compare-and-swap that fails: another kind of event, the same operation before it is done. */
static int same_kind(unsigned pending, unsigned wanted) {
  if (pending == wanted) return 1;
  switch (wanted) {
    case STEM_KIND_LockFail: return pending == STEM_KIND_Lock;
    case STEM_KIND_RdLockFail: return pending == STEM_KIND_RdLock;
    case STEM_KIND_WrLockFail: return pending == STEM_KIND_WrLock;
    case STEM_KIND_SemFail: return pending == STEM_KIND_SemWait;
    case STEM_KIND_Read: return pending == STEM_KIND_Rmw;
    case STEM_KIND_OncePass: return pending == STEM_KIND_OnceBegin;
    case STEM_KIND_Yield: return 1; /* an operation that had no effect: a failed join, an unlock refused */
  }
  return 0;
}

enum stem_guided_answer stem_guided_choose(struct stem_thread** next, int64_t* countdown) {
  stem_guided_wakes = 0;
  while (step < step_count && left <= 0) {
    step++;
    left = step < step_count ? steps[step].count : 0;

  }
  if (step >= step_count) return STEM_GUIDED_OVER;
  const struct stem_plan_step* s = &steps[step];
  struct stem_thread* t = thread_of_step();
  if (!t) {
    int ended = 0;
    for (uint32_t i = 0; i < stem_thread_count; i++) ended |= stem_thread_at(i)->plan_index == s->thread;
    diverge(ended ? "the thread whose turn it is has ended" : "the thread whose turn it is does not exist yet", 0);
    return STEM_GUIDED_OVER;
  }
  if (t->state == STEM_THREAD_OUTSIDE) return STEM_GUIDED_WAIT;
  if (!t->pending.arriving && !stem_is_enabled(t) && !t->pending.deadline) {
    if (t->pending.external) return STEM_GUIDED_WAIT;
    diverge("the thread whose turn it is cannot go on: what it waits for is not there", t);
    return STEM_GUIDED_OVER;
  }
  int look = s->site_key || s->kind || s->wakes || (stop_at_last && step + 1 == step_count);
  if (left == 1 && look && !t->pending.arriving && !stem_interrupted(t)) {
    if ((s->site_key && stem_site_key(t->pending.site) != s->site_key) || (s->kind && !same_kind(t->pending.kind, s->kind - 1))) {
      diverge("the thread is about to do something else than the schedule says", t);
      return STEM_GUIDED_OVER;
    }
    if (s->wakes) stem_guided_wakes = s->wakes;
    if (stop_at_last && step + 1 == step_count) t->stop_here = 1;
  }
  *next = t;
  /* The pending operation is one of them; the last is asked for if it is to be looked at. */
  *countdown = left - 1 - (look && left > 1);
  return STEM_GUIDED_GRANT;
}
