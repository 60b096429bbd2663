/* The simplest collector: turns the records of one run into text, one line a record, so that a test can look at them without
 * the trace format. Started by the runtime in place of stem-collect; writes <STEM_RECORD>/<producer's pid>-<n>.txt. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace/raw.h"

static const char* const kinds[] = {
#define STEM_EVENT(Name, text, visible) text,
#include "trace/events.def"
};
static const char* const others[] = {"SWITCH", "THREAD", "EXPR", "EXPR2", "VALUE2", "BLOB", "MODULE", "TICKET", "EXPOSED"};
static const char* const blobs[] = {"input-name", "input", "nondet-name", "nondet", "path", "start", "module", "callers", "meta", "message"};

static struct stem_control* control;
static char* base;
static FILE* out;
static uint64_t blob_left;

static void record(const struct stem_rec* r) {
  if (blob_left) {
    uint64_t n = blob_left < sizeof *r ? blob_left : sizeof *r;
    fwrite(r, 1, n, out);
    blob_left -= n;
    if (!blob_left) fputc('\n', out);
    return;
  }
  unsigned kind = r->head >> 48 & 0xff, aux = r->head >> 56;
  uint64_t addr = r->head & 0xffffffffffffull;
  if (kind == STEM_RAW_Blob) {
    fprintf(out, "%s: ", aux < 10 ? blobs[aux] : "?");
    blob_left = r->value;
    if (aux == STEM_BLOB_CALLERS || !blob_left) fputc('\n', out);
    return;
  }
  const char* name = kind < sizeof kinds / sizeof *kinds ? kinds[kind] : kind >= 0xc0 && kind < 0xc8 ? others[kind - 0xc0] : "?";
  fprintf(out, "%s addr=%" PRIx64 " aux=%x value=%" PRIu64 " expr=%u site=%u\n", name, addr, aux, r->value, r->expr, r->site);
}

static void drain(uint32_t i, uint64_t from, uint64_t to) {
  const struct stem_rec* r = (const struct stem_rec*)(base + 2 * STEM_PAGE + (uint64_t)i * STEM_CHUNK_BYTES);
  for (uint64_t k = from; k < to; k++) record(r + k);
}

int main(void) {
  int fd = atoi(getenv(STEM_RAW_ENV)), life = atoi(getenv(STEM_RAW_LIFE_ENV));
  base = mmap(0, STEM_RAW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return 1;
  control = (struct stem_control*)(base + STEM_PAGE);
  char path[4096];
  for (int i = 0; !out && i < 100; i++) { /* a process that calls exec records twice */
    snprintf(path, sizeof path, "%s/%u-%d.txt", getenv("STEM_RECORD"), control->producer_pid, i);
    out = fopen(path, "wx");
  }
  if (!out) return 1;
  __atomic_store_n(&control->collector_pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
  uint64_t order = 0;
  for (int gone = 0;;) {
    struct pollfd p = {life, POLLIN, 0};
    gone |= poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLIN));
    gone |= __atomic_load_n(&control->closing, __ATOMIC_ACQUIRE) == 1;
    uint32_t seen = __atomic_load_n(&control->wake_collector, __ATOMIC_ACQUIRE);
    int found = 0;
    for (uint32_t i = 0; i < STEM_CHUNKS; i++) { /* parallel streams: any full chunk (order is only checked by real readers) */
      struct stem_chunk* c = &control->chunks[i];
      if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != STEM_CHUNK_FULL || (!control->parallel && c->order != order)) continue;
      if (control->parallel) fprintf(out, "STREAM %u\n", c->stream);
      drain(i, 0, c->count);
      order++;
      found = 1;
      __atomic_store_n(&c->state, STEM_CHUNK_FREE, __ATOMIC_RELEASE);
      __atomic_fetch_add(&control->wake_producer, 1, __ATOMIC_RELEASE);
      syscall(SYS_futex, &control->wake_producer, FUTEX_WAKE, 1, 0, 0, 0);
    }
    if (found) continue;
    if (gone) break;
    struct timespec ts = {0, 20000000};
    syscall(SYS_futex, &control->wake_collector, FUTEX_WAIT, seen, &ts, 0, 0);
  }
  for (uint32_t i = 0; i < STEM_CHUNKS; i++) { /* what a killed program left behind */
    if (control->chunks[i].state != STEM_CHUNK_FILLING) continue;
    uint64_t cursor = control->parallel ? control->cursors[i] : (uint64_t)(uintptr_t)((struct stem_hot*)base)->cursor;
    if (control->parallel) fprintf(out, "STREAM %u\n", control->chunks[i].stream);
    drain(i, 0, (cursor - control->base - 2 * STEM_PAGE - (uint64_t)i * STEM_CHUNK_BYTES) / sizeof(struct stem_rec));
  }
  fclose(out);
  __atomic_store_n(&control->closing, 2, __ATOMIC_RELEASE);
  __atomic_fetch_add(&control->wake_producer, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &control->wake_producer, FUTEX_WAKE, 1, 0, 0, 0);
  return 0;
}
