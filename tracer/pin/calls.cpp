// In place of the C library's functions: pthread calls, sleeping, allocation, moving memory.
//
// A replacement asks the model before the real call (the thread waits there until the call cannot block), makes the
// real call, and tells the result. Condition variables, barriers and once-flags are the model's alone; memory is moved
// by the engine, piece by piece. All share one signature, and one entry, on_call(), which knows by its first argument
// what it stands for. tracer/valgrind/preload.c is the same in the program's own code.
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "tracer/pin/tool.h"

namespace stem_pin {

struct Call {
  Function* function;
  const CONTEXT* context;
  THREADID tid;
  AFUNPTR original;
  ADDRINT ra, site;
  ADDRINT a[5];
  bin_thread* thread;
};

AFUNPTR errno_location;

namespace {

enum How { PLAIN, TRY, TIMED };

ADDRINT call_real(Call& c, AFUNPTR function, ADDRINT a0, ADDRINT a1, ADDRINT a2, ADDRINT a3, ADDRINT a4) {
  ADDRINT result = 0;
  clients[c.tid].busy++;
  PIN_CallApplicationFunction(c.context, c.tid, CALLINGSTD_DEFAULT, function, 0, PIN_PARG(ADDRINT), &result,
                              PIN_PARG(ADDRINT), a0, PIN_PARG(ADDRINT), a1, PIN_PARG(ADDRINT), a2, PIN_PARG(ADDRINT),
                              a3, PIN_PARG(ADDRINT), a4, PIN_PARG_END());
  clients[c.tid].busy--;
  c.thread = enter(c.tid); /* it may have waited in a system call */
  return result;
}

ADDRINT real(Call& c) { return call_real(c, c.original, c.a[0], c.a[1], c.a[2], c.a[3], c.a[4]); }
ADDRINT number(ADDRINT result) {
  return static_cast<ADDRINT>(static_cast<uint32_t>(result));
} /* an int, in the lower half of a register */

ADDRINT ask(Call& c, bin_op op, ADDRINT object, ADDRINT a, ADDRINT b) {
  if (!c.thread) return 0;
  if (bin.countdown <= 0) let_others_in();
  return bin_call(c.thread, op, object, a, b, c.site);
}

int64_t nanoseconds(ADDRINT clock) {
  struct timespec ts;
  stem_sys4(SYS_clock_gettime, clock, &ts, 0, 0);
  return static_cast<int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec;
}

const int64_t* time_at(ADDRINT address) { return reinterpret_cast<const int64_t*>(address); }
bool bad_time(ADDRINT address) {
  return !readable(address, 16) || time_at(address)[1] < 0 || time_at(address)[1] >= 1000000000;
}
uint64_t length(ADDRINT address) {
  return static_cast<uint64_t>(time_at(address)[0] * 1000000000 + time_at(address)[1]);
}

// As CLOCK_MONOTONIC; never 0.
uint64_t deadline(ADDRINT clock, ADDRINT address) {
  const int64_t left = static_cast<int64_t>(length(address)) - nanoseconds(clock);
  return left <= 0 ? 1 : bin_now() + static_cast<uint64_t>(left);
}

AFUNPTR original(const char* name) {
  for (unsigned i = 0; i < function_count; i++)
    if (__builtin_strcmp(functions[i].name, name) == 0) return functions[i].original;
  return 0;
}

// --- what is taken and given back: mutexes, spinlocks, read-write locks. `time` is the index of the argument, -1: none
template <bin_op BEFORE, bin_op AFTER, How how, int clock, int time>
ADDRINT take(Call& c) {
  uint64_t until = 0;
  if (time >= 0) {
    if (bad_time(c.a[time < 0 ? 0 : time])) return real(c);
    until = deadline(clock < 0 ? CLOCK_REALTIME : c.a[clock < 0 ? 0 : clock], c.a[time < 0 ? 0 : time]);
  }
  const ADDRINT result = ask(c, BEFORE, c.a[0], how == TRY, until) ? ETIMEDOUT : number(real(c));
  ask(c, AFTER, c.a[0], result, how);
  return result;
}

ADDRINT mutex_unlock(Call& c) {
  ask(c, BIN_MUTEX_BEFORE, c.a[0], 2, 0);
  const uint32_t* words = reinterpret_cast<const uint32_t*>(c.a[0]); /* lock, count, owner, users, kind */
  const ADDRINT depth = (words[4] & 3) == 1 ? words[1] : 1;
  const ADDRINT result = number(real(c));
  ask(c, BIN_MUTEX_UNLOCKED, c.a[0], result, depth);
  return result;
}

ADDRINT spin_unlock(Call& c) {
  ask(c, BIN_SPIN_BEFORE, c.a[0], 2, 0);
  const ADDRINT result = number(real(c));
  ask(c, BIN_SPIN_UNLOCKED, c.a[0], result, 0);
  return result;
}

ADDRINT rwlock_unlock(Call& c) {
  ask(c, BIN_RW_UNLOCK_BEFORE, c.a[0], 0, 0);
  const ADDRINT result = number(real(c));
  ask(c, BIN_RW_UNLOCKED, c.a[0], result, 0);
  return result;
}

// --- condition variables
ADDRINT wait(Call& c, uint64_t until) {
  const AFUNPTR lock = original("pthread_mutex_lock"), unlock = original("pthread_mutex_unlock");
  const ADDRINT cond = c.a[0], mutex = c.a[1];
  if (!lock || !unlock) return real(c);
  ask(c, BIN_COND_WAIT, cond, mutex, until ? TIMED : PLAIN);
  call_real(c, unlock, mutex, 0, 0, 0, 0);
  const bool timed_out = ask(c, BIN_COND_WAKE, cond, 0, until) != 0;
  ask(c, BIN_MUTEX_BEFORE, mutex, 0, 0);
  const ADDRINT result = number(call_real(c, lock, mutex, 0, 0, 0, 0));
  ask(c, BIN_MUTEX_LOCKED, mutex, result, 0);
  return result ? result : timed_out ? ETIMEDOUT : 0;
}

ADDRINT cond_wait(Call& c) { return wait(c, 0); }

ADDRINT cond_timedwait(Call& c) {
  if (bad_time(c.a[2])) return EINVAL;
  const bool monotonic = reinterpret_cast<const uint32_t*>(c.a[0])[9] & 2; /* __wrefs */
  return wait(c, deadline(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, c.a[2]));
}

ADDRINT cond_clockwait(Call& c) { return bad_time(c.a[3]) ? EINVAL : wait(c, deadline(c.a[2], c.a[3])); }

template <bin_op OP>
ADDRINT only_told(Call& c) {
  ask(c, OP, c.a[0], 0, 0);
  return 0;
}

// --- semaphores
int* errno_of(Call& c) {
  return errno_location ? reinterpret_cast<int*>(call_real(c, errno_location, 0, 0, 0, 0, 0)) : 0;
}

ADDRINT sem_init(Call& c) {
  const ADDRINT result = number(real(c));
  if (result == 0) ask(c, BIN_SEM_INIT, c.a[0], c.a[2], 0);
  return result;
}

template <How how, int clock, int time>
ADDRINT sem_take(Call& c) {
  uint64_t until = 0;
  if (time >= 0) {
    if (bad_time(c.a[time < 0 ? 0 : time])) return real(c);
    until = deadline(clock < 0 ? CLOCK_REALTIME : c.a[clock < 0 ? 0 : clock], c.a[time < 0 ? 0 : time]);
  }
  if (ask(c, BIN_SEM_BEFORE, c.a[0], how == TRY, until)) {
    if (int* error = errno_of(c)) *error = ETIMEDOUT;
    ask(c, BIN_SEM_TAKEN, c.a[0], ETIMEDOUT, how);
    return number(static_cast<ADDRINT>(-1));
  }
  const ADDRINT result = number(real(c));
  int error = 0;
  if (result) {
    const int* at = errno_of(c);
    error = at ? *at : EAGAIN;
  }
  ask(c, BIN_SEM_TAKEN, c.a[0], static_cast<ADDRINT>(error), how);
  return result;
}

ADDRINT sem_post(Call& c) {
  ask(c, BIN_SEM_POST, c.a[0], 0, 0);
  return real(c);
}

// --- barriers, once, guards
ADDRINT barrier_init(Call& c) {
  const ADDRINT result = number(real(c));
  if (result == 0) ask(c, BIN_BARRIER_INIT, c.a[0], number(c.a[2]), 0);
  return result;
}

ADDRINT barrier_wait(Call& c) { return ask(c, BIN_BARRIER_WAIT, c.a[0], 0, 0) ? number(static_cast<ADDRINT>(-1)) : 0; }

ADDRINT once(Call& c) {
  if (!ask(c, BIN_ONCE_BEGIN, c.a[0], 0, 0)) return 0;
  /* The program's own code: it is recorded like any other. */
  PIN_CallApplicationFunction(c.context, c.tid, CALLINGSTD_DEFAULT, reinterpret_cast<AFUNPTR>(c.a[1]), 0,
                              PIN_PARG(void), PIN_PARG_END());
  c.thread = enter(c.tid);
  ask(c, BIN_ONCE_END, c.a[0], 1, 0);
  return 0;
}

ADDRINT guard_acquire(Call& c) {
  ask(c, BIN_GUARD_BEFORE, c.a[0], 0, 0);
  const ADDRINT result = number(real(c));
  ask(c, BIN_GUARD_TAKEN, c.a[0], result, 0);
  return result;
}

template <int done>
ADDRINT guard_end(Call& c) {
  real(c);
  ask(c, BIN_GUARD_DONE, c.a[0], done, 0);
  return 0;
}

// --- threads
ADDRINT create(Call& c) {
  const ADDRINT start = c.a[2];
  ask(c, BIN_CREATE_BEFORE, start, 0, 0);
  bin_thread* child = c.thread ? bin_thread_new(c.thread) : 0;
  if (!child) {
    if (c.thread) bin_note("more than 4096 threads: what comes after them is not recorded"), bin_finish(BIN_EXITED, 0);
    return real(c);
  }
  child->host = -1;
  ADDRINT handle = 0;
  const ADDRINT result =
      number(call_real(c, c.original, reinterpret_cast<ADDRINT>(&handle), c.a[1], c.a[2], c.a[3], 0));
  if (!c.thread) return result;
  handles[child->index] = result ? 0 : handle;
  if (result)
    bin_thread_undo(child);
  else if (c.a[0] && writable(c.a[0], sizeof handle))
    bin_copy(c.thread, c.a[0], reinterpret_cast<uint64_t>(&handle), sizeof handle, c.site, 0);
  ask(c, BIN_CREATED, start, result, handle);
  return result;
}

template <int tries, int time>
ADDRINT join(Call& c) {
  const uint64_t until = time && c.a[2] ? deadline(CLOCK_REALTIME, c.a[2]) : 0;
  switch (ask(c, BIN_JOIN_BEFORE, c.a[0], tries, until)) {
    case 1:
      return tries ? EBUSY : ETIMEDOUT;
    case 2:
      return real(c); /* not one that we know */
    default:
      break;
  }
  const AFUNPTR plain = original("pthread_join");
  const ADDRINT result = number(call_real(c, plain ? plain : c.original, c.a[0], c.a[1], plain ? 0 : c.a[2], 0, 0));
  ask(c, BIN_JOINED, c.a[0], result, 0);
  return result;
}

ADDRINT detach(Call& c) {
  ask(c, BIN_DETACHED, c.a[0], 0, 0);
  return real(c);
}

ADDRINT sleep_for(Call& c, uint64_t time) {
  ask(c, BIN_YIELD, 0, 0, bin_now() + time);
  return 0;
}

ADDRINT nanosleep(Call& c) { return bad_time(c.a[0]) ? real(c) : sleep_for(c, length(c.a[0])); }
ADDRINT usleep(Call& c) { return sleep_for(c, number(c.a[0]) * 1000ull); }
ADDRINT sleep(Call& c) { return sleep_for(c, number(c.a[0]) * 1000000000ull); }
ADDRINT clock_nanosleep(Call& c) {
  if (bad_time(c.a[2]) || (number(c.a[0]) != CLOCK_REALTIME && number(c.a[0]) != CLOCK_MONOTONIC)) return real(c);
  if (!(c.a[1] & TIMER_ABSTIME)) return sleep_for(c, length(c.a[2]));
  ask(c, BIN_YIELD, 0, 0, deadline(number(c.a[0]), c.a[2]));
  return 0;
}

// --- allocation: what the C library allocates for itself is nothing of the program's
void allocated(Call& c, ADDRINT address, ADDRINT size, bool zeroed) {
  ADDRINT sites[5];
  if (!c.thread || !address) return;
  const unsigned n = callers(c.context, c.ra, sites, 5);
  if (n == 0) return;
  uint64_t above[4] = {0, 0, 0, 0};
  for (unsigned i = 1; i < n; i++) above[i - 1] = sites[i] + 1;
  bin_pin(c.thread, sites[0]);
  bin_append(stem_head(STEM_KIND_Alloc, zeroed ? BIN_ZEROED : 0, address), size, 0, static_cast<uint32_t>(sites[0]));
  c.thread->last_read = 0;
  c.thread->since_branch = 1;
  bin_blob(STEM_BLOB_CALLERS, above, (n - 1) * sizeof *above);
}

void freed(Call& c, ADDRINT address) {
  if (!c.thread || !address) return;
  bin_pin(c.thread, c.site);
  bin_append(stem_head(STEM_KIND_Free, 0, address), 0, 0, static_cast<uint32_t>(c.site));
  c.thread->last_read = 0;
  c.thread->since_branch = 1;
}

template <int size, bool zeroed>
ADDRINT allocate(Call& c) {
  const ADDRINT result = real(c);
  allocated(c, result, zeroed ? c.a[0] * c.a[1] : c.a[size], zeroed);
  return result;
}

ADDRINT posix_memalign(Call& c) {
  const ADDRINT result = number(real(c));
  if (result == 0) allocated(c, *reinterpret_cast<const ADDRINT*>(c.a[0]), c.a[2], false);
  return result;
}

ADDRINT reallocate(Call& c) {
  const ADDRINT result = real(c);
  if (c.a[0] && (result || c.a[1] == 0)) freed(c, c.a[0]);
  allocated(c, result, c.a[1], false);
  return result;
}

ADDRINT release(Call& c) {
  freed(c, c.a[0]);
  return real(c);
}

// --- functions that move memory
bool called_by_program(Call& c) {
  Module* m = module_at(c.ra - 1);
  return c.thread && m && m->seen;
}

ADDRINT move(Call& c) {
  if (!called_by_program(c) || c.a[2] == 0 || !readable(c.a[1], c.a[2]) || !writable(c.a[0], c.a[2])) return real(c);
  bin_copy(c.thread, c.a[0], c.a[1], c.a[2], c.ra - 1, PIN_GetContextReg(c.context, REG_STACK_PTR));
  return c.a[0];
}

ADDRINT fill(Call& c) {
  if (!called_by_program(c) || c.a[2] == 0 || !writable(c.a[0], c.a[2])) return real(c);
  bin_fill(c.thread, c.a[0], static_cast<unsigned>(c.a[1] & 0xff), c.a[2], c.ra - 1,
           PIN_GetContextReg(c.context, REG_STACK_PTR));
  return c.a[0];
}

}  // namespace

Function functions[] = {
#define STEM_PIN_FUNCTION(name, arguments, ...) {#name, arguments, __VA_ARGS__, 0},
#include "tracer/pin/functions.def"
};
const unsigned function_count = sizeof functions / sizeof *functions;

ADDRINT on_call(Function* function, const CONTEXT* context, THREADID tid, AFUNPTR original, ADDRINT ra, ADDRINT a0,
                ADDRINT a1, ADDRINT a2, ADDRINT a3, ADDRINT a4) {
  Call c = {function, context, tid, original, ra, 0, {a0, a1, a2, a3, a4}, 0};
  Client& client = clients[tid];
  if (!client.busy) c.thread = enter(tid);
  if (!c.thread) { /* nothing is recorded of it */
    const uint32_t busy = client.busy;
    client.busy = busy ? busy : 1;
    ADDRINT result = 0;
    PIN_CallApplicationFunction(context, tid, CALLINGSTD_DEFAULT, original, 0, PIN_PARG(ADDRINT), &result,
                                PIN_PARG(ADDRINT), a0, PIN_PARG(ADDRINT), a1, PIN_PARG(ADDRINT), a2, PIN_PARG(ADDRINT),
                                a3, PIN_PARG(ADDRINT), a4, PIN_PARG_END());
    client.busy = busy;
    return result;
  }
  c.site = site_of(context, ra);
  return function->body(c);
}

}  // namespace stem_pin
