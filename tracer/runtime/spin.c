/* Spin loops. In a serialised run nobody else makes progress while a thread spins, so spinning must be seen.
 *
 * A thread spins when its last operations were only reads that returned what the same address gave before (and tries that
 * failed, and yields): it then yields to everybody who does not, until somebody has changed something. Seen by scanning the
 * records of the thread's last turn, at most 256, whenever the scheduler is asked: a nanosecond a record.
 *
 * When everybody who could run spins, each question also takes a print of the thread's private state: the registers and the
 * stack of the instrumented caller. If that comes back the same again and again while nobody changed anything, the loop can
 * never end: a livelock. A loop that counts or computes has another print each time and is left alone. */
#include <unwind.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

#define SLOTS 64
#define SPIN_READS 100   /* reads without news before a thread counts as spinning */
#define REPEATS 24       /* returns of the same state before it counts as hopeless */
#define WINDOW 256
#define STACK_BYTES 4096

struct stem_spin {
  uint64_t reads;       /* without news */
  uint64_t epoch;       /* of stem_sched.effects when it was last looked at */
  uint64_t print;       /* of the private state, 0: none yet */
  uint32_t repeats;     /* how often the print came back */
  uint32_t since_print; /* questions since it was taken */
  uint32_t patience;    /* how often it took a whole window and never came back: the loop computes, look less often */
  uint32_t questions;
  struct { uint64_t addr, value; } seen[SLOTS];
};

static struct stem_rec* scanned; /* up to here, in the current chunk; 0: from nowhere known */

void stem_spin_reset(void) { scanned = __stem_hot.cursor; }

static struct stem_spin* spin_of(struct stem_thread* t) {
  if (!t->spin) t->spin = stem_pages(sizeof *t->spin);
  return t->spin;
}

static void effect(struct stem_spin* spin) {
  spin->reads = 0;
  spin->print = 0;
  spin->repeats = 0;
  stem_sched.effects++;
}

static void read_again(struct stem_spin* spin, uint64_t addr, uint64_t value) {
  uint32_t slot = (uint32_t)((addr * 0x9e3779b97f4a7c15u) >> 58);
  if (spin->seen[slot].addr == addr && spin->seen[slot].value == value) {
    spin->reads++;
  } else {
    spin->seen[slot].addr = addr;
    spin->seen[slot].value = value;
    spin->reads = 0;
  }
}

static void scan(struct stem_spin* spin, const struct stem_rec* at, const struct stem_rec* end) {
  for (; at < end; at++) {
    unsigned kind = at->head >> 48 & 0xff;
    switch (kind) {
      case STEM_KIND_Read:
        read_again(spin, at->head & 0xffffffffffffull, at->value);
        break;
      case STEM_KIND_Rmw: { /* its new value may stand after a few expressions */
        const struct stem_rec* r = at + 1;
        while (r < end && ((r->head >> 48 & 0xff) == STEM_RAW_Expr || (r->head >> 48 & 0xff) == STEM_RAW_Expr2)) r++;
        if (r < end && (r->head >> 48 & 0xff) == STEM_RAW_Value2 && r->value == at->value)
          read_again(spin, at->head & 0xffffffffffffull, at->value);
        else
          effect(spin);
        break;
      }
      case STEM_KIND_Yield:
      case STEM_KIND_LockFail:
      case STEM_KIND_RdLockFail:
      case STEM_KIND_WrLockFail:
      case STEM_KIND_SemFail:
        spin->reads += 4; /* nobody does these often without waiting for something */
        break;
      case STEM_KIND_Branch:
      case STEM_KIND_Pin:
      case STEM_KIND_Assert:
      case STEM_RAW_Expr:
      case STEM_RAW_Expr2:
      case STEM_RAW_Value2:
      case STEM_RAW_Switch:
      case STEM_RAW_Ticket:
      case STEM_RAW_Exposed:
        break;
      case STEM_KIND_Nondet: /* time: a loop that looks at the clock may end by itself */
        spin->print = 0;
        spin->repeats = 0;
        break;
      case STEM_RAW_Blob:
        at += (at->value + sizeof *at - 1) / sizeof *at;
        break;
      default:
        effect(spin);
        break;
    }
  }
}

void stem_spin_scan(void) {
  struct stem_thread* t = stem_sched.writer;
  if (!t || !scanned) return;
  const struct stem_rec *end = __stem_hot.cursor, *from = scanned;
  if (from > end || end - from > WINDOW) {
    stem_sched.effects++; /* the part we do not look at may have had one */
    from = end - WINDOW;
    if (scanned > end) from = end;
  }
  scan(spin_of(t), from, end);
  scanned = __stem_hot.cursor;
}

/* --- the private state of the instrumented caller ------------------------------------------------------------------------------- */

struct print {
  const void* entry;
  uint64_t hash;
  int found;
};

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9fb21c651e98df25u;
  return h ^ h >> 35;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context* context, void* out) {
  struct print* p = out;
  if ((const void*)_Unwind_GetIP(context) != p->entry) return _URC_NO_REASON;
  static const int callee_saved[] = {3, 6, 12, 13, 14, 15};
  for (int i = 0; i < 6; i++) p->hash = mix(p->hash, _Unwind_GetGR(context, callee_saved[i]));
  p->hash = mix(p->hash, _Unwind_GetCFA(context));
  p->found = 1;
  return _URC_END_OF_STACK;
}

extern _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn, void*) __attribute__((weak));
extern uintptr_t _Unwind_GetIP(struct _Unwind_Context*) __attribute__((weak));
extern uintptr_t _Unwind_GetGR(struct _Unwind_Context*, int) __attribute__((weak));
extern uintptr_t _Unwind_GetCFA(struct _Unwind_Context*) __attribute__((weak));

/* What lies above the hook's frame: the caller's locals, its callers', up to the end of the stack or 4 KiB. */
static uint64_t stack_print(struct stem_thread* t, uint64_t hash) {
  const uint64_t* from = t->entry_frame;
  const uint64_t* top = t->stack_top;
  if (!from || !top || from >= top) return 0;
  size_t n = (size_t)(top - from);
  if (n > STACK_BYTES / 8) n = STACK_BYTES / 8;
  for (size_t i = 0; i < n; i++) hash = mix(hash, from[i]);
  return hash;
}

static uint64_t private_print(struct stem_thread* t) {
  if (!t->entry || !_Unwind_Backtrace || !_Unwind_GetIP || !_Unwind_GetGR || !_Unwind_GetCFA) return 0;
  struct print p = {t->entry, mix(0x5713, (uint64_t)(uintptr_t)t->pending.site), 0};
  t->busy++;
  _Unwind_Backtrace(frame, &p);
  t->busy--;
  if (!p.found) return 0;
  return stack_print(t, p.hash) | 1;
}

void stem_spin_ask(struct stem_thread* self) {
  stem_spin_scan();
  struct stem_spin* spin = spin_of(self);
  if (spin->reads < SPIN_READS) return;
  if (spin->epoch != stem_sched.effects) {
    spin->epoch = stem_sched.effects;
    spin->print = 0;
    spin->repeats = 0;
  }
  if (++spin->questions & ((1u << spin->patience) - 1)) return;
  uint64_t print = private_print(self);
  if (!print) return;
  if (print == spin->print) {
    spin->repeats++;
    spin->since_print = 0;
    spin->patience = 0;
  } else if (!spin->print || ++spin->since_print > WINDOW) {
    if (spin->print && spin->patience < 10) spin->patience++;
    spin->print = print;
    spin->repeats = 0;
    spin->since_print = 0;
  }
}

int stem_spinning(struct stem_thread* t) {
  return t->spin && t->spin->reads >= SPIN_READS && t->spin->epoch == stem_sched.effects;
}

/* A spinner is asked at every operation, so that its state is seen; one that computes gets longer turns again. */
int64_t stem_spin_distance(struct stem_thread* t) { return t->spin->patience < 2 ? 0 : WINDOW / 2; }

int stem_spin_hopeless(struct stem_thread* t) { return stem_spinning(t) && t->spin->repeats >= REPEATS; }
