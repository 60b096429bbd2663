/* The watchdog: code that we do not see may block while it holds the token (a library that waits on a socket). A parked
 * thread looks every 50 ms; if nothing happened since its last look and the kernel says that the holder sleeps, the holder is
 * detached: the token goes on, and the sleeper asks for it at its next visible operation. While somebody is detached the
 * countdown stays at 0, so that no inline fast path appends behind the holder's back.
 *
 * The change of the countdown cannot race with the sleeper's own fast path: all threads are pinned to one CPU, so while we
 * run the sleeper does not, and it was seen asleep after the countdown was 0. */
#include <fcntl.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

static char task_state(int tid) {
  char path[64], line[256];
  struct stem_text text = {path, path + sizeof path};
  stem_text_add(&text, "/proc/self/task/");
  stem_text_number(&text, (uint64_t)tid, 10);
  stem_text_add(&text, "/stat");
  int fd = (int)stem_sys(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return '?';
  long n = stem_sys(SYS_read, fd, line, sizeof line);
  stem_sys(SYS_close, fd, 0, 0);
  for (long i = n - 3; i > 0; i--) /* the name may hold anything, so from the right: ") S" */
    if (line[i] == ')') return line[i + 2];
  return '?';
}

static int somebody_could_run(void) {
  for (uint32_t i = 0; i < stem_live_count; i++)
    if (stem_live[i]->state == STEM_THREAD_PARKED && (stem_is_enabled(stem_live[i]) || stem_live[i]->pending.deadline)) return 1;
  return 0;
}

static void tell(struct stem_thread* holder) {
  static int told;
  if (told++ >= 8) return;
  char buffer[1024];
  struct stem_text text = {buffer, buffer + sizeof buffer};
  stem_text_add(&text, "{\"kind\":\"blocked\",\"thread\":");
  stem_text_json(&text, holder->path, __builtin_strlen(holder->path));
  if (holder->pending.site) {
    stem_text_add(&text, ",\"site\":");
    stem_text_site(&text, holder->pending.site);
  }
  stem_text_add(&text, ",\"why\":\"a call that STEM does not model blocked after this; other threads ran meanwhile\"}");
  stem_message(holder, buffer);
}

void stem_watch(struct stem_thread* self) {
  static struct stem_rec* last_cursor;
  static uint64_t last_operations;
  static struct stem_thread* last_holder;
  if (!stem_try_lock(&stem_sched.lock)) return;
  struct stem_thread* holder = stem_sched.holder;
  if (!holder) {
    stem_pass_token(0); /* a deadline passed, a signal came, another process did something */
  } else if (stem_sched.sentinel == self && !stem_sched.over) {
    int quiet = last_holder == holder && last_cursor == __stem_hot.cursor && last_operations == stem_sched.operations;
    last_holder = holder;
    last_cursor = __stem_hot.cursor;
    last_operations = stem_sched.operations;
    if (quiet && !stem_collector_wait && task_state(holder->tid) == 'S' && somebody_could_run()) {
      int64_t countdown = __stem_hot.countdown;
      __stem_hot.countdown = 0;
      if (task_state(holder->tid) == 'S' && __stem_hot.countdown == 0) {
        __stem_hot.countdown = countdown;
        stem_account();
        stem_sched.granted = __stem_hot.countdown = 0;
        tell(holder);
        holder->state = STEM_THREAD_OUTSIDE;
        holder->watchdog = 1;
        stem_sched.outside++;
        stem_sched.detached++;
        stem_sched.holder = 0;
        stem_pass_token(0);
      } else if (__stem_hot.countdown == 0) {
        __stem_hot.countdown = countdown;
      }
    }
  }
  stem_unlock(&stem_sched.lock);
}
