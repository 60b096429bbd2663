/* What translated code calls, just before an access is made: the access is then ours to schedule, and its value can be
 * read, since nobody else runs before it is done. */
#include "tracer/valgrind/tool.h"

static inline struct bin_thread* self(void) { return bin.holder; }
static inline Addr stack_pointer(void) { return VG_(get_SP)(VG_(get_running_tid)()); }

/* Most accesses are not of the stack; of those of the stack most are below the last mark. */
static inline Bool is_private(struct bin_thread* t, Addr addr, UInt size, Bool write, UInt site) {
  if (addr - t->stack_low >= t->stack_high - t->stack_low) return False;
  return bin_private(t, addr, size, write, site, stack_pointer());
}

struct stem_fault stem_faulting;

static inline ULong value_at(Addr addr, UInt size) {
  switch (size) {
    case 1:
      return *(volatile UChar*)addr;
    case 2:
      return *(volatile UShort*)addr;
    case 4:
      return *(volatile UInt*)addr;
    default:
      return *(volatile ULong*)addr;
  }
}

void stem_help_read(Addr addr, ULong at) {
  struct bin_thread* t = self();
  UInt size = (at >> 32) & 0xff, flags = at >> 40, site = (UInt)at;
  if (UNLIKELY(!bin.on || !t) || is_private(t, addr, size, False, site)) return;
  if (!(flags & STEM_AT_FREE)) bin_pin(t, site);
  if (UNLIKELY(!stem_readable(addr, size))) { /* it faults in a moment */
    stem_faulting = (struct stem_fault){addr, site};
    return;
  }
  if (flags & STEM_AT_MORE)
    bin_also_visible();
  else
    bin_visible(t, STEM_KIND_Read, addr, site, 0, 0, 0);
  bin_read(t, addr, size, value_at(addr, size), site, 0);
}

void stem_help_write(Addr addr, ULong value, ULong at) {
  struct bin_thread* t = self();
  UInt size = (at >> 32) & 0xff, flags = at >> 40, site = (UInt)at;
  if (UNLIKELY(!bin.on || !t) || is_private(t, addr, size, True, site)) return;
  if (!(flags & STEM_AT_FREE)) bin_pin(t, site);
  if (flags & STEM_AT_MORE)
    bin_also_visible();
  else
    bin_visible(t, STEM_KIND_Write, addr, site, 0, 0, 0);
  if (size < 8) value &= (1ull << (8 * size)) - 1;
  bin_write(t, addr, size, value, site, 0);
}

static void atomic_before(Addr addr, ULong at, Bool compares) {
  struct bin_thread* t = self();
  UInt site = (UInt)at;
  if (!bin.on || !t) return;
  if (compares || !((at >> 40) & STEM_AT_FREE)) bin_pin(t, site);
  bin_visible(t, STEM_KIND_Rmw, addr, site, 0, 0, 0);
}

/* A compare-and-swap: it holds what it was compared with. */
void stem_help_cas_before(Addr addr, ULong at) { atomic_before(addr, at, True); }

void stem_help_cas_after(Addr addr, ULong old, ULong expected, ULong now, ULong at) {
  struct bin_thread* t = self();
  UInt size = (at >> 32) & 0xff;
  if (!bin.on || !t) return;
  if ((at >> 40) & STEM_AT_MORE) bin_also_visible();
  if (old == expected) {
    bin_rmw(t, addr, size, old, now, (UInt)at, 1);
  } else { /* it failed: a read, whose value decided */
    bin_read(t, addr, size, old, (UInt)at, STEM_AUX_ATOMIC);
    bin_pin(t, (UInt)at);
  }
}

/* Exchange, add, and the like: they work with whatever is there. */
void stem_help_xchg_before(Addr addr, ULong at) { atomic_before(addr, at, False); }

void stem_help_xchg_after(Addr addr, ULong old, ULong now, ULong at) {
  struct bin_thread* t = self();
  UInt size = (at >> 32) & 0xff;
  if (!bin.on || !t) return;
  bin_rmw(t, addr, size, old, now, (UInt)at, 0);
}

void stem_help_branch(ULong taken, ULong at) {
  struct bin_thread* t = self();
  if (LIKELY(bin.on && t))
    bin_branch(t, (UInt)at, taken != 0, (at >> 40) & STEM_AT_NOTED ? t->flag_reads : BIN_MAX_UNPINNED);
}

void stem_help_flags(void) {
  struct bin_thread* t = self();
  if (LIKELY(bin.on && t)) t->flag_reads = t->unpinned_count;
}

void stem_help_pin(ULong at) {
  struct bin_thread* t = self();
  if (LIKELY(bin.on && t)) bin_pin(t, (UInt)at);
}

void stem_help_escape(Addr value, ULong at) {
  struct bin_thread* t = self();
  if (LIKELY(bin.on && t)) bin_escape(t, value, stack_pointer(), (UInt)at);
}
