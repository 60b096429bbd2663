/* The end of a run, whatever way it comes: main returns or anybody calls exit (a handler that runs after all others),
 * _exit, quick_exit, abort, a failed assertion. Faults are in fault.c; against SIGKILL nothing need be done. Each leaves the
 * last records with the collector and lets the process end as it would have. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

static uint32_t finished;
static int assert_failed;

void stem_finish(enum stem_outcome outcome, int code) {
  if (!stem_on || __atomic_exchange_n(&finished, 1, __ATOMIC_ACQ_REL)) return;
  if ((uint32_t)stem_getpid() != stem_owner_pid) return; /* a vfork child: its end is not ours */
  struct stem_thread* self = stem_current ? stem_current : stem_thread_at(0);
  /* A deadlock that the end of a thread left behind: the last event is somebody's who has not ended. */
  if (self->state == STEM_THREAD_ENDED && stem_live_count) self = stem_live[0];
  stem_sched.over = 1;
  if (stem_parallel) stem_access_freeze(); /* nobody's event comes after the last */
  if (assert_failed && outcome == STEM_SIGNALLED) outcome = STEM_ASSERT_FAILED;
  if (!stem_parallel && stem_sched.writer != self) {
    stem_sched.writer = self;
    stem_append(self, stem_head(STEM_RAW_Switch, 0, 0), self->index, 0, 0);
  }
  if (stem_parallel) stem_append(self, stem_head(STEM_RAW_Ticket, 0, 0), stem_ticket(), 0, 0);
  stem_event(self, STEM_KIND_Exit, 0, 0, (uint64_t)(int64_t)code, 0, 0);
  stem_append(self, stem_head(STEM_RAW_Value2, 0, 0), (uint64_t)outcome, 0, 0);
  stem_stream_close(self);
  stem_stream_finish(!stem_launched);
  stem_on = 0; /* what still runs (destructors of libraries) does so unrecorded */
}

/* The thread that ends the run must hold the token; one that is outside gets it first, within reason. */
static void finish_from_program(enum stem_outcome outcome, int code) {
  if (!stem_on || (uint32_t)stem_getpid() != stem_owner_pid) return;
  struct stem_thread* self = stem_current;
  if (self && !stem_parallel && self->state == STEM_THREAD_OUTSIDE) stem_arrive(self);
  stem_finish(outcome, code);
}

static int quick_status;

static void at_exit(int status, void* unused) {
  (void)unused;
  finish_from_program(STEM_EXITED, status & 0xff);
}

static void at_quick_end(void) { finish_from_program(STEM_EXITED, quick_status & 0xff); }

STEM_EXPORT void quick_exit(int status) {
  quick_status = status;
  STEM_REAL(quick_exit)(status);
  __builtin_unreachable();
}

STEM_EXPORT void _exit(int status) {
  finish_from_program(STEM_EXITED, status & 0xff);
  for (;;) stem_sys(SYS_exit_group, status, 0, 0);
}

STEM_EXPORT void _Exit(int status) { _exit(status); }

/* SIGABRT is caught by fault.c like any fault: a handler of the program's own still runs first. */
STEM_EXPORT void abort(void) {
  STEM_REAL(abort)();
  __builtin_unreachable();
}

STEM_EXPORT void __assert_fail(const char* expression, const char* file, unsigned line, const char* function) {
  if (stem_on) {
    stem_event(stem_self(), STEM_KIND_Assert, 0, 0, 0, 0, stem_take_site());
    assert_failed = 1;
  }
  STEM_REAL(__assert_fail)(expression, file, line, function);
  __builtin_unreachable();
}

STEM_EXPORT void __assert_perror_fail(int error, const char* file, unsigned line, const char* function) {
  if (stem_on) {
    stem_event(stem_self(), STEM_KIND_Assert, 0, 0, 0, 0, stem_take_site());
    assert_failed = 1;
  }
  STEM_REAL(__assert_perror_fail)(error, file, line, function);
  __builtin_unreachable();
}

/* For models of verification benchmarks: reach_error and the like. */
void stem_assertion_failed(const void* site) {
  if (stem_on) stem_event(stem_self(), STEM_KIND_Assert, 0, 0, 0, 0, site);
  assert_failed = 1;
}

void stem_end_init(void) {
  on_exit(at_exit, 0);
  at_quick_exit(at_quick_end);
}

void stem_end_forget(void) { finished = 0; }
