/* What the scheduler asks signals.c, and what nondet files share with it. */
#ifndef STEM_TRACER_RUNTIME_SIGNALS_H
#define STEM_TRACER_RUNTIME_SIGNALS_H

#include "tracer/runtime/internal.h"

/* Replay: with the scheduler's lock held, once stem_sched.signal_at operations were done. Marks the thread that is to be
 * interrupted now. Weak in the scheduler. */
void stem_signals_due(void) __attribute__((weak));

void lib_signals_init(void);

#endif
