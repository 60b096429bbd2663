/* The plan of a run: what the launcher tells the runtime. One file, named by the environment variable STEM_PLAN, mapped by
 * the runtime; freestanding, so that every recorder can read it.
 *
 *   struct stem_plan_header, then records: struct stem_plan_item followed by `size` bytes, padded to 8.
 *
 * Without a plan (STEM_RECORD=dir ./prog) the options come from the environment: STEM_MODE, STEM_SEED, ...
 *
 * Where traces go: stem-collect creates <STEM_RECORD>/<program>-<pid>.stemtrace and holds flock(LOCK_EX) on it until it is
 * finished, so that the launcher knows by locking it when it is complete. stem_control.collector_pid is set only once the
 * file is there and locked: a program that has begun to record cannot end without leaving its file. The collector ignores
 * SIGINT, SIGTERM, SIGHUP, SIGXFSZ and SIGPIPE.
 */
#ifndef STEM_TRACE_PLAN_H
#define STEM_TRACE_PLAN_H

#include <stdint.h>

#define STEM_PLAN_MAGIC 0x4e414c504d455453ull /* "STEMPLAN" */
#define STEM_PLAN_VERSION 1u
#define STEM_PLAN_ENV "STEM_PLAN"
#define STEM_RECORD_ENV "STEM_RECORD" /* folder that traces go to; set by `stem record` as well */
#define STEM_FIRST_FILE "first"       /* there until the process that the launcher started has taken it away (recorders of binaries) */

struct stem_plan_header {
  uint64_t magic;
  uint32_t version;
  uint32_t items;
};

enum stem_plan_type {
  STEM_PLAN_OPTION, /* "key=value":
                         mode=default|random|pct|guided|parallel   seed=N   switch=one in N   depth=N (pct)
                         expressions=0|1   libdir=where stem-collect is
                         symbolic-argv=1   symbolic-stdin=bytes at most   symbolic-file=paths, one a line
                         stop=N: call __stem_stop_here() just before visible operation N of the run (from 0); stop=last:
                           just before the last operation that the steps name. For debuggers.
                       An option that the runtime does not know is ignored. */
  STEM_PLAN_THREAD, /* a thread's creation path; the k-th such item is thread k of the steps below */
  STEM_PLAN_STEPS,  /* struct stem_plan_step[] */
  STEM_PLAN_INPUT,  /* name, NUL, bytes: given to the next input of that name; several of one name: in order */
  STEM_PLAN_FEED,   /* uint32_t thread, kind of answer, NUL, bytes: fed back in order per thread */
};

struct stem_plan_item {
  uint32_t type; /* enum stem_plan_type */
  uint32_t size;
};

/* Let `thread` execute `count` visible operations. If site_key is not 0, the last of them must be at that site, and of
 * that kind if kind is not 0 (1 + STEM_KIND_...); anything else is a divergence. */
struct stem_plan_step {
  uint64_t site_key;
  uint32_t thread;
  uint32_t count;
  uint32_t kind;
  uint32_t wakes; /* the step's last operation is a signal and wakes this thread: 1 + thread; 0: oldest waiter */
};

#endif
