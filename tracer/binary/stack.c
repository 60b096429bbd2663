/* Which accesses of a thread's own stack need not be recorded.
 *
 * Nobody else can know an address of the stack before it was computed into a register or stored: before that, frames
 * are accessed relative to the stack or frame pointer only. The instrumentation reports such escapes. Everything at or
 * above the stack pointer of an escape may then be known to others, until that frame is gone: a *mark*; what lies below
 * the last mark is private. Writes from before the escape are not lost: for every four private bytes we keep who wrote
 * them last, and those of the frame are recorded at the escape, as writes of the place that made them. Nobody could
 * have seen them earlier.
 *
 * Costs a compare for most accesses of private frames, four bytes of memory for each four of used stack. */
#include "tracer/binary/engine.h"

#define MAX_MARKS (sizeof((struct bin_thread*)0)->marks / sizeof(uint64_t))

static int own(struct bin_thread* t, uint64_t addr) { return addr - t->stack_low < t->stack_high - t->stack_low; }

void bin_private_changed(void) {
  const struct bin_thread* t = bin.holder;
  bin.private_span = bin.private_low = bin.private_last = 0;
  if (!t || !t->writers) return;
  uint64_t high = t->mark_count ? t->marks[t->mark_count - 1] : t->stack_high;
  bin.private_low = t->stack_high - t->writer_bytes + 16;
  if (high > bin.private_low + 7) bin.private_span = high - bin.private_low - 7;
  bin.private_last = bin.private_low + bin.private_span - 1;
  bin.private_writers = (uint64_t)(uintptr_t)t->writers + t->stack_high;
}

static void drop_marks(struct bin_thread* t, uint64_t sp) {
  while (t->mark_count && t->marks[t->mark_count - 1] + 128 < sp) {
    t->mark_count--;
    bin_append(stem_head(STEM_KIND_Free, BIN_STACK, t->marks[t->mark_count]), 0, 0, 0);
    t->last_read = 0;
  }
  if (t == bin.holder) bin_private_changed();
}

int bin_private(struct bin_thread* t, uint64_t addr, unsigned size, int write, uint64_t site, uint64_t sp) {
  if (!own(t, addr)) return 0;
  if (t->mark_count && addr + size > t->marks[t->mark_count - 1]) {
    if (t->marks[t->mark_count - 1] + 128 < sp) drop_marks(t, sp);
    if (t->mark_count && addr + size > t->marks[t->mark_count - 1]) return 0;
  }
  if (write && t->writers) {
    uint64_t last = t->stack_high - addr;
    if (last < t->writer_bytes)
      for (uint64_t at = addr & ~3ull; at < addr + size; at += 4)
        t->writers[(t->stack_high - at) >> 2] = (uint32_t)site;
  }
  return 1;
}

/* What the frame wrote before anybody could know: [low, high). */
static void publish(struct bin_thread* t, uint64_t low, uint64_t high, uint64_t site) {
  uint32_t known = 0, foreign = 0; /* the last sites asked about */
  if (!t->writers) return;
  if (high - low > t->writer_bytes) high = low + t->writer_bytes;
  if (t->stack_high - low >= t->writer_bytes) return;
  for (uint64_t at = low & ~3ull; at + 4 <= high;) {
    uint32_t* w = &t->writers[(t->stack_high - at) >> 2];
    uint32_t by = *w;
    unsigned size =
        (at & 7) == 0 && at + 8 <= high && w[-1] == by ? 8 : 4; /* the next four bytes are one entry before */
    if (by) {
      w[0] = 0;
      if (size == 8) w[-1] = 0;
      if (by != known && by != foreign) {
        if (stem_host_same_function(by, site))
          known = by;
        else
          foreign = by;
      }
      if (by == known) {
        bin_visible(t, STEM_KIND_Write, at, by, 0, 0, 0);
        bin_write(t, at, size, size == 8 ? *(const uint64_t*)at : *(const uint32_t*)at, by, 0);
      }
    }
    at += size;
  }
}

void bin_escape(struct bin_thread* t, uint64_t addr, uint64_t sp, uint64_t site) {
  if (!own(t, addr)) return;
  if (t->mark_count && t->marks[t->mark_count - 1] + 128 < sp) drop_marks(t, sp);
  uint64_t low = (addr < sp ? addr : sp) & ~15ull;
  uint64_t high = t->mark_count ? t->marks[t->mark_count - 1] : t->stack_high;
  if (low >= high) return;          /* known already */
  if (t->mark_count == MAX_MARKS) { /* recursion: one mark for the last two; it goes when the upper frame does */
    t->mark_count--;
    bin_append(stem_head(STEM_KIND_Free, BIN_STACK, t->marks[t->mark_count]), 0, 0, 0);
    high = t->marks[t->mark_count - 1];
  }
  uint64_t cfa = stem_host_frame(site, sp);
  if (cfa > low && cfa < high)
    high = cfa; /* what belongs to this frame; callers above it have not let anything escape */
  bin_pin(t, site);
  uint64_t frame[4] = {cfa, 0, 0, 0};
  bin_append(stem_head(STEM_KIND_Alloc, BIN_STACK, low), high - low, 0, (uint32_t)site);
  bin_blob(STEM_BLOB_CALLERS, frame, sizeof frame);
  t->last_read = 0;
  t->marks[t->mark_count++] = low;
  if (t == bin.holder) bin_private_changed();
  publish(t, low, high, site);
}
