// The analysis routines: what instrumented code calls, just before the instruction is done.
#include <sys/syscall.h>

#include "tracer/pin/tool.h"

namespace stem_pin {

namespace {

bool is_private(bin_thread* t, uint64_t addr, uint32_t size, int write, uint64_t site, uint64_t sp) {
  if (addr - t->stack_low >= t->stack_high - t->stack_low) return false;
  return bin_private(t, addr, size, write, site, sp);
}

uint64_t value_at(uint64_t addr, uint32_t size) {
  uint64_t value = 0;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(addr), size);
  return value;
}

uint32_t piece(uint32_t size, uint32_t done) { return size - done < 8 ? size - done : 8; }

uint64_t low_bytes(uint64_t value, uint32_t size) { return size < 8 ? value & ((1ull << (8 * size)) - 1) : value; }

// --- is memory there? Asked before every read that we make for the program: pages known to be
uint64_t pages[4096];

void pages_changed(uint64_t addr, uint64_t size) {
  if (size >> 12 >= 4096) {
    for (uint64_t& page : pages) page = 0;
    return;
  }
  for (uint64_t page = addr >> 12; page <= (addr + size) >> 12; page++)
    if (pages[page & 4095] == page) pages[page & 4095] = 0;
}

// One instruction makes several accesses: the others come with the first that is seen, nobody can run between them.
void be_visible(Client& c, bin_thread* t, unsigned kind, uint64_t addr, uint64_t site, uint32_t flags) {
  if ((flags & MORE) && c.counted == site)
    bin_also_visible();
  else
    visible(t, kind, addr, site);
  c.counted = site;
}

void begin_change(Client& c, Change change, uint64_t addr, uint32_t size, uint64_t site) {
  c.change = change;
  c.change_addr = addr;
  c.change_size = size;
  c.change_site = site;
}

}  // namespace

bool readable(uint64_t addr, uint64_t size) {
  for (uint64_t page = addr >> 12; page <= (addr + size - 1) >> 12; page++) {
    if (pages[page & 4095] == page) continue;
    char byte;
    if (PIN_SafeCopy(&byte, reinterpret_cast<const void*>(page << 12), 1) != 1) return false;
    pages[page & 4095] = page;
  }
  return true;
}

bool writable(uint64_t addr, uint64_t size) {
  for (uint64_t page = addr >> 12; page <= (addr + size - 1) >> 12; page++) {
    char byte;
    void* at = reinterpret_cast<void*>(page == addr >> 12 ? addr : page << 12);
    if (PIN_SafeCopy(&byte, at, 1) != 1 || PIN_SafeCopy(at, &byte, 1) != 1) return false; /* nobody else runs */
  }
  return true;
}

void PIN_FAST_ANALYSIS_CALL on_read(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, UINT32 flags, ADDRINT sp) {
  bin_thread* t = enter(tid);
  if (!t) return;
  Client& c = clients[tid];
  if (!(flags & MORE)) c.counted = 0;
  if (is_private(t, addr, size, 0, site, sp)) return;
  if (!(flags & FREE)) bin_pin(t, site);
  if (!readable(addr, size)) return; /* it faults in a moment */
  be_visible(c, t, STEM_KIND_Read, addr, site, flags);
  for (uint32_t done = 0; done < size; done += 8) {
    if (done) bin_also_visible();
    const uint32_t n = piece(size, done);
    bin_read(t, addr + done, n, value_at(addr + done, n), site, 0);
  }
}

void PIN_FAST_ANALYSIS_CALL on_write(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, UINT32 flags, ADDRINT sp) {
  bin_thread* t = enter(tid);
  if (!t || is_private(t, addr, size, 1, site, sp)) return;
  if (!(flags & FREE)) bin_pin(t, site);
  be_visible(clients[tid], t, STEM_KIND_Write, addr, site, flags);
  begin_change(clients[tid], WRITE, addr, size, site);
}

// Exchange, add, and the like: they work with whatever is there.
void PIN_FAST_ANALYSIS_CALL on_exchange(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, UINT32 flags) {
  bin_thread* t = enter(tid);
  if (!t || !readable(addr, size)) return;
  if (!(flags & FREE)) bin_pin(t, site);
  visible(t, STEM_KIND_Rmw, addr, site);
  clients[tid].old[0] = value_at(addr, size);
  begin_change(clients[tid], EXCHANGE, addr, size, site);
}

// A compare-and-swap: it holds what it was compared with.
void PIN_FAST_ANALYSIS_CALL on_compare(THREADID tid, ADDRINT addr, UINT32 size, ADDRINT site, ADDRINT expected,
                                       ADDRINT expected_high) {
  bin_thread* t = enter(tid);
  if (!t || !readable(addr, size)) return;
  bin_pin(t, site);
  visible(t, STEM_KIND_Rmw, addr, site);
  Client& c = clients[tid];
  bool same;
  if (size == 16) {
    c.old[0] = value_at(addr, 8), c.old[1] = value_at(addr + 8, 8);
    same = c.old[0] == expected && c.old[1] == expected_high;
  } else {
    c.old[0] = value_at(addr, size);
    same = c.old[0] == low_bytes(expected, size);
  }
  begin_change(c, same ? COMPARE : COMPARE_FAILED, addr, size, site);
}

// cmpxchg8b: the two halves are in two registers.
void PIN_FAST_ANALYSIS_CALL on_compare_halves(THREADID tid, ADDRINT addr, ADDRINT site, ADDRINT low, ADDRINT high) {
  on_compare(tid, addr, 8, site, high << 32 | (low & 0xffffffffu), 0);
}

void settle(Client& c) {
  bin_thread* t = c.thread;
  const uint32_t change = c.change;
  c.change = NONE;
  if (!bin.on) return;
  for (uint32_t done = 0; done < c.change_size; done += 8) {
    const uint32_t n = piece(c.change_size, done);
    const uint64_t addr = c.change_addr + done, site = c.change_site;
    if (done) bin_also_visible();
    switch (change) {
      case WRITE:
        bin_write(t, addr, n, value_at(addr, n), site, 0);
        break;
      case EXCHANGE:
        bin_rmw(t, addr, n, c.old[done / 8], value_at(addr, n), site, 0);
        break;
      case COMPARE:
        bin_rmw(t, addr, n, c.old[done / 8], value_at(addr, n), site, 1);
        break;
      case COMPARE_FAILED: /* a read, whose value decided */
        bin_read(t, addr, n, c.old[done / 8], site, STEM_AUX_ATOMIC);
        bin_pin(t, site);
        break;
    }
  }
}

void drop_change(THREADID tid) { clients[tid].change = NONE; }

void PIN_FAST_ANALYSIS_CALL on_branch(THREADID tid, ADDRINT site, BOOL taken) {
  bin_thread* t = enter(tid);
  if (t) bin_branch(t, site, taken != 0, BIN_MAX_UNPINNED);
}

void PIN_FAST_ANALYSIS_CALL on_pin(THREADID tid, ADDRINT site) {
  bin_thread* t = enter(tid);
  if (t) bin_pin(t, site);
}

void PIN_FAST_ANALYSIS_CALL on_leave(THREADID tid) {
  Client& c = clients[tid];
  if (c.change && c.state == INSIDE) settle(c);
}

void PIN_FAST_ANALYSIS_CALL on_escape(THREADID tid, ADDRINT value, ADDRINT site, ADDRINT sp, ADDRINT cfa) {
  bin_thread* t = enter(tid);
  if (!t) return;
  clients[tid].frame = cfa;
  bin_escape(t, value, sp, site);
}

void PIN_FAST_ANALYSIS_CALL on_syscall(THREADID tid, ADDRINT number, ADDRINT a, ADDRINT b) {
  Client& c = clients[tid];
  if (!bin.on) return;
  switch (number) {
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_mmap:
    case SYS_madvise:
      pages_changed(a, b);
      break;
    case SYS_brk:
    case SYS_shmdt:
      pages_changed(0, ~0ull);
      break;
    case SYS_exit:
    case SYS_exit_group:
      arrive(tid);
      break; /* it takes part, if only to end */
    default:
      break;
  }
  const bool blocks = bin.live_count > 1 && bin_may_block(number, a, b);
  if (c.state == ABSENT && blocks) arrive(tid); /* the scheduler would wait for it */
  if (c.state != INSIDE) return;
  bin_thread* t = enter(tid);
  if (!t) return;
  if (number == SYS_exit_group) {
    bin_finish(BIN_EXITED, static_cast<int>(a));
    stem_host_exit(static_cast<int>(a));
  }
  if (number == SYS_exit) {
    bin_end(t);
    leave(c);
    c.state = FOREIGN;
  } else if (blocks) {
    c.returns = number != SYS_futex;
    bin_outside_begin(t);
    if (t->state == BIN_OUTSIDE) leave(c);
  }
}

}  // namespace stem_pin
