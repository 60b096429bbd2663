/* Spin loops. In a serialised run nobody else makes progress while a thread spins, so spinning must be seen.
 *
 * A thread spins when its last operations were only reads that returned what the same address gave before (and writes of what
 * is there already, tries that failed, and yields): it then yields to everybody who does not, until somebody has changed
 * something. Seen by scanning the last 256 records of the thread's turn whenever the scheduler is asked, and all of it if those
 * look like a spin loop: a nanosecond a record.
 *
 * When everybody who could run spins, each question also takes a print of the thread's private state: the registers and the
 * stack of the instrumented caller. If that comes back the same again and again while nobody changed anything, the loop can
 * never end: a livelock. A loop that counts or computes has another print each time and is left alone.
 *
 * Instrumented code keeps ids of expressions there as well, which are new in every round. An id enters the print as how many
 * were given out after it. So that a counter that happens to keep pace with the ids is not taken for one, a few ids are
 * wasted at each question, as many as a random number says: ids jump, a counter does not. */
#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

#define SLOTS 64
#define SPIN_READS 100   /* reads without news before a thread counts as spinning */
#define REPEATS 24       /* returns of the same state before it counts as hopeless */
#define WINDOW 256
#define STACK_BYTES 4096

#define JUMPS 32         /* remembered, */
#define ID_WINDOW 256    /* and how far back a number may be an id */

struct stem_spin {
  uint32_t jump_from[JUMPS], jump_to[JUMPS], jumps; /* ids that were wasted */
  uint32_t last_id;
  uint64_t random;
  uint64_t reads;       /* without news */
  uint64_t epoch;       /* of stem_sched.effects when it was last looked at */
  uint64_t print;       /* of the private state, 0: none yet */
  uint32_t repeats;     /* how often the print came back */
  uint32_t since_print; /* questions since it was taken */
  uint32_t patience;    /* how often it took a whole window and never came back: the loop computes, look less often */
  uint32_t questions;
  struct { uint64_t addr, value; } seen[SLOTS];
};

/* What memory holds, a word a slot, by the accesses that were scanned since some were not. */
static struct { uint64_t where, value, generation; } words[256];
static uint64_t generation = 1;

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

/* Is that what is there anyway? */
static int writes_the_same(const struct stem_rec* r) {
  uint64_t addr = r->head & 0xffffffffffffull, size = r->head >> 56 & 15, word = addr >> 3;
  uint32_t slot = (uint32_t)((word * 0x9e3779b97f4a7c15u) >> 56);
  int same = words[slot].generation == generation && words[slot].where == (addr << 4 | size) && words[slot].value == r->value;
  if ((addr & 7) + size > 8) generation++; /* over two words: rare enough to forget all */
  words[slot].where = addr << 4 | size;
  words[slot].value = r->value;
  words[slot].generation = generation;
  return same;
}

static void scan(struct stem_spin* spin, const struct stem_rec* at, const struct stem_rec* end) {
  for (; at < end; at++) {
    unsigned kind = at->head >> 48 & 0xff;
    switch (kind) {
      case STEM_KIND_Read:
        read_again(spin, at->head & 0xffffffffffffull, at->value);
        writes_the_same(at);
        break;
      case STEM_KIND_Write:
        if (writes_the_same(at))
          spin->reads++;
        else
          effect(spin);
        break;
      case STEM_KIND_SemInit: /* sem_getvalue is one with Try */
        if (at->head >> 56 & STEM_FLAG_TRY)
          spin->reads += 4;
        else
          effect(spin);
        break;
      case STEM_KIND_Rmw: { /* its new value may stand after a few expressions */
        const struct stem_rec* r = at + 1;
        while (r < end && ((r->head >> 48 & 0xff) == STEM_RAW_Expr || (r->head >> 48 & 0xff) == STEM_RAW_Expr2)) r++;
        if (r < end && (r->head >> 48 & 0xff) == STEM_RAW_Value2 && r->value == at->value)
          read_again(spin, at->head & 0xffffffffffffull, at->value);
        else
          effect(spin), generation++;
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
      case STEM_RAW_Rounds:
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

/* At a glance: reads of few places, and nothing that changes any. */
static int looks_idle(const struct stem_rec* at, const struct stem_rec* end) {
  uint64_t places[8] = {0}, others = 0;
  for (; at < end; at++) {
    unsigned kind = at->head >> 48 & 0xff;
    if (kind == STEM_KIND_Read || kind == STEM_KIND_Write || kind == STEM_KIND_Rmw) {
      uint64_t addr = at->head & 0xffffffffffffull;
      unsigned i = 0;
      while (i < 8 && places[i] && places[i] != addr) i++;
      if (i == 8 && ++others > 8) return 0;
      if (i < 8) places[i] = addr;
    } else if (kind == STEM_KIND_Lock || kind == STEM_KIND_Unlock || kind == STEM_KIND_SemPost || kind == STEM_KIND_SemWait) {
      return 0;
    }
  }
  return 1;
}

void stem_spin_scan(void) {
  struct stem_thread* t = stem_sched.writer;
  if (!t || !scanned) return;
  const struct stem_rec *end = __stem_hot.cursor, *from = scanned;
  struct stem_spin* spin = spin_of(t);
  if (from > end) from = end;
  const struct stem_rec* tail = end - from > WINDOW ? end - WINDOW : from;
  if (tail != from && !looks_idle(tail, end)) {
    stem_sched.effects++; /* the part that we do not look at may have had one */
    generation++;
    spin->reads = 0;
    from = tail;
  }
  scan(spin, from, end);
  scanned = __stem_hot.cursor;
}

/* --- the private state of the instrumented caller ------------------------------------------------------------------------------- */

struct print {
  const void* entry;
  uint64_t hash;
  int found;
  const struct stem_spin* spin;
};

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9fb21c651e98df25u;
  return h ^ h >> 35;
}

/* A number as it enters the print: an id as how many were given out after it, anything else as itself. */
static uint32_t plain(const struct stem_spin* spin, uint32_t word) {
  uint32_t next = __stem_tls.next_id, wasted = 0;
  if (word == 0 || word >= next) return word;
  for (uint32_t i = 0; i < JUMPS && i < spin->jumps; i++) {
    uint32_t k = (spin->jumps - 1 - i) % JUMPS;
    if (word >= spin->jump_to[k]) break;
    if (word >= spin->jump_from[k]) return word; /* wasted: nobody has it */
    wasted += spin->jump_to[k] - spin->jump_from[k];
  }
  uint32_t after = next - word - wasted;
  return after <= ID_WINDOW ? 0x80000000u + after : word;
}

static uint64_t mix_word(const struct stem_spin* spin, uint64_t h, uint64_t v) {
  if (stem_control && v - stem_control->base < STEM_RAW_SIZE) v = 0; /* where the next record goes: no business of the program's */
  return mix(h, (uint64_t)plain(spin, (uint32_t)(v >> 32)) << 32 | plain(spin, (uint32_t)v));
}

/* The unwinder is in libgcc, which a program in C is not linked with: found when first needed, as the C library does. */
static struct {
  __typeof__(&_Unwind_Backtrace) backtrace;
  __typeof__(&_Unwind_GetIP) ip;
  __typeof__(&_Unwind_GetGR) gr;
  __typeof__(&_Unwind_GetCFA) cfa;
} unwind;

static int find_unwinder(void) {
  static int tried;
  if (tried++) return unwind.cfa != 0;
  void* library = dlopen("libgcc_s.so.1", RTLD_LAZY);
  if (!library) return 0;
  unwind.backtrace = (__typeof__(unwind.backtrace))dlsym(library, "_Unwind_Backtrace");
  unwind.ip = (__typeof__(unwind.ip))dlsym(library, "_Unwind_GetIP");
  unwind.gr = (__typeof__(unwind.gr))dlsym(library, "_Unwind_GetGR");
  unwind.cfa = unwind.backtrace && unwind.ip && unwind.gr ? (__typeof__(unwind.cfa))dlsym(library, "_Unwind_GetCFA") : 0;
  return unwind.cfa != 0;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context* context, void* out) {
  struct print* p = out;
  if ((const void*)unwind.ip(context) != p->entry) return _URC_NO_REASON;
  static const int callee_saved[] = {3, 6, 12, 13, 14, 15};
  for (int i = 0; i < 6; i++) p->hash = mix_word(p->spin, p->hash, unwind.gr(context, callee_saved[i]));
  p->hash = mix(p->hash, unwind.cfa(context));
  p->found = 1;
  return _URC_END_OF_STACK;
}

/* What lies above the hook's frame: the caller's locals, its callers', up to the end of the stack or 4 KiB. */
static uint64_t stack_print(struct stem_thread* t, uint64_t hash) {
  const uint64_t* from = t->entry_frame;
  const uint64_t* top = t->stack_top;
  if (!from || !top || from >= top) return 0;
  size_t n = (size_t)(top - from);
  if (n > STACK_BYTES / 8) n = STACK_BYTES / 8;
  for (size_t i = 0; i < n; i++) hash = mix_word(t->spin, hash, from[i]);
  return hash;
}

/* The program's thread-local variables: a retry may be counted there. Without our own, which lie among them. */
struct tls_range {
  const char *from, *to;
};

static int executable_tls(struct dl_phdr_info* info, size_t size, void* out) {
  (void)size;
  struct tls_range* range = out;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data) {
      range->from = info->dlpi_tls_data;
      range->to = range->from + info->dlpi_phdr[i].p_memsz;
    }
  return 1; /* the first is the executable */
}

static uint64_t tls_print(const struct stem_spin* spin, uint64_t hash) {
  static ptrdiff_t offset; /* from our own variables: the same in every thread */
  static size_t size;
  const char* own = (const char*)&__stem_tls;
  if (!size) {
    struct tls_range range = {0, 0};
    dl_iterate_phdr(executable_tls, &range);
    offset = range.from - own;
    size = (size_t)(range.to - range.from) + !range.from;
  }
  if (size == 1) return hash;
  for (const char* at = own + offset; at + 8 <= own + offset + size && at - own - offset < STACK_BYTES; at += 8) {
    if ((at + 8 > own && at < own + sizeof __stem_tls) || at == (const char*)&stem_current) continue;
    uint64_t word;
    __builtin_memcpy(&word, at, 8);
    hash = mix_word(spin, hash, word);
  }
  return hash;
}

static uint64_t private_print(struct stem_thread* t) {
  if (!t->entry) return 0;
  struct print p = {t->entry, mix(0x5713, (uint64_t)(uintptr_t)t->pending.site), 0, t->spin};
  t->busy++;
  if (find_unwinder()) unwind.backtrace(frame, &p);
  if (p.found) p.hash = tls_print(t->spin, p.hash);
  t->busy--;
  if (!p.found) return 0;
  return stack_print(t, p.hash) | 1;
}

/* Ids that nobody gets: see the top of this file. */
static void waste_ids(struct stem_thread* self, struct stem_spin* spin) {
  if (spin->last_id == __stem_tls.next_id) return; /* a loop without expressions has no ids to mistake */
  spin->random = spin->random * 6364136223846793005u + 1442695040888963407u;
  uint32_t k = spin->jumps++ % JUMPS, n = (uint32_t)(spin->random >> 61);
  spin->jump_from[k] = __stem_tls.next_id;
  while (n--) stem_expr(self, stem_expr_head(STEM_OP_Const, 32, 32, 0), 0, 0, 0);
  spin->jump_to[k] = spin->last_id = __stem_tls.next_id;
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
  waste_ids(self, spin);
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
