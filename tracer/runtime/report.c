/* What every thread waits for, as a message for people, and the end of a run that cannot go on. */
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

const char* stem_kind_text(unsigned kind) {
  static const char* const names[] = {
#define STEM_EVENT(Name, text, visible) text,
#include "trace/events.def"
  };
  return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

/* Also one that has ended with the lock in its hands: the latest of that number. */
static struct stem_thread* by_tid(int tid) {
  for (uint32_t i = stem_thread_count; tid && i-- > 0;)
    if (stem_thread_at(i)->tid == tid) return stem_thread_at(i);
  return 0;
}

struct stem_thread* stem_holder_of(struct stem_thread* waiting) {
  const void* object = (const void*)(uintptr_t)waiting->pending.addr;
  switch (waiting->pending.kind) {
    case STEM_KIND_Lock:
      if (waiting->pending.enabled == stem_futex_free) return stem_futex_holder(waiting->pending.addr);
      return waiting->pending.enabled == stem_can_lock_mutex ? by_tid(stem_mutex_owner(object)) : 0;
    case STEM_KIND_RdLock:
    case STEM_KIND_WrLock: return by_tid(stem_rwlock_writer(object));
    case STEM_KIND_Join: return stem_thread_at((uint32_t)waiting->pending.arg);
    case STEM_KIND_AtomicBegin: return stem_atomic_owner();
    default: return 0; /* a condition variable, a semaphore, a barrier has no holder */
  }
}

void stem_text_threads(struct stem_text* text) {
  stem_text_add(text, "\"threads\":[");
  for (uint32_t i = 0; i < stem_live_count; i++) {
    struct stem_thread* t = stem_live[i];
    if (text->end - text->at < STEM_MAX_PATH * 2 + 300) break; /* hundreds of threads: what fits */
    if (i) stem_text_add(text, ",");
    stem_text_add(text, "{\"thread\":");
    stem_text_json(text, t->path, __builtin_strlen(t->path));
    if (t->state == STEM_THREAD_PARKED && !t->pending.arriving) {
      stem_text_add(text, ",\"op\":\"");
      stem_text_add(text, stem_kind_text(t->pending.kind));
      stem_text_add(text, "\"");
      if (t->pending.addr) {
        stem_text_add(text, ",\"addr\":\"");
        stem_text_number(text, t->pending.addr, 16);
        stem_text_add(text, "\"");
      }
      if (t->pending.site) {
        stem_text_add(text, ",\"site\":");
        stem_text_site(text, t->pending.site);
      }
      struct stem_thread* holder = stem_holder_of(t);
      if (holder) {
        stem_text_add(text, ",\"holder\":");
        stem_text_json(text, holder->path, __builtin_strlen(holder->path));
        if (holder->state == STEM_THREAD_ENDED) stem_text_add(text, ",\"ended\":1");
      }
    }
    stem_text_add(text, "}");
  }
  stem_text_add(text, "]");
}

void stem_report_stuck(struct stem_thread* self, const char* kind) {
  static char buffer[65536];
  int livelock = kind[0] == 'l';
  struct stem_text text = {buffer, buffer + sizeof buffer};
  stem_text_add(&text, "{\"kind\":\"");
  stem_text_add(&text, kind);
  stem_text_add(&text, "\",");
  stem_text_threads(&text);
  stem_text_add(&text, "}");
  stem_message(self, buffer);
  stem_finish(livelock ? STEM_LIVELOCK : STEM_DEADLOCK, livelock ? STEM_EXIT_LIVELOCK : STEM_EXIT_DEADLOCK);
  stem_sys(SYS_exit_group, livelock ? STEM_EXIT_LIVELOCK : STEM_EXIT_DEADLOCK, 0, 0);
  __builtin_trap();
}
