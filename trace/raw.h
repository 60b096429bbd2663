/* What a recorder writes while the program runs: fixed records in memory shared with the collector process.
 *
 * A recorder must be cheap, must not need the C or C++ library, and must lose nothing when the program is killed. So it
 * only appends 24-byte records to chunks of a shared mapping; `stem-collect`, another process, turns them into the
 * compact, checksummed, compressed trace file (trace/format.h) and goes on doing so whatever happens to the program.
 * The same header serves the compiled runtime, the Valgrind tool and the Pin tool: it includes nothing but <stdint.h>.
 *
 * The mapping (one memfd of STEM_RAW_SIZE bytes):
 *   page 0   struct stem_hot      what instrumented code touches at every access
 *   page 1   struct stem_control  hand-over of chunks between the recorder and the collector
 *   then     STEM_CHUNKS chunks of STEM_CHUNK_BYTES, used as a pool
 *
 * Serialised recording (default): one stream, in order; a Switch record says whose records follow.
 * Parallel recording: one stream per thread, each record preceded by a Ticket record where its order matters; the
 * collector merges the streams by ticket.
 */
#ifndef STEM_TRACE_RAW_H
#define STEM_TRACE_RAW_H

#include <stdint.h>

#define STEM_RAW_MAGIC 0x5741524d45545321ull /* "!STEMRAW" */
#define STEM_RAW_VERSION 5u

/* How the collector is started: environment and descriptors are inherited. STEM_FD names the memfd; STEM_LIFE_FD the read
 * end of a pipe whose write end only the program holds (close-on-exec): end of file means that the program is gone or
 * became another by exec, so drain what is there and finish. */
#define STEM_RAW_ENV "STEM_FD"
#define STEM_RAW_LIFE_ENV "STEM_LIFE_FD"

/* Exit codes of a program that the runtime had to end (the trace's last event says the same). */
#define STEM_EXIT_DEADLOCK 97
#define STEM_EXIT_LIVELOCK 98

enum {
#define STEM_EVENT(Name, text, visible) STEM_KIND_##Name,
#include "trace/events.def"
  /* Records that are not events of their own. */
  STEM_RAW_Switch = 0xC0, /* value: thread index (serialised streams only) */
  STEM_RAW_Thread,        /* defines a thread: value: index; expr: parent index; then two blobs: path, start function */
  STEM_RAW_Expr,          /* next expression id of this thread; see stem_expr_head */
  STEM_RAW_Expr2,         /* precedes an Ite's Expr record and holds its third operand: expr: id (0: constant, in value).
                             The Expr record then holds condition (expr) and second operand (site, or 0 and value) */
  STEM_RAW_Value2,        /* value: Event.value2 of the thread's last Rmw or Exit; expr: Event.expr of that Rmw. Between the
                             two stand at most the Expr records that the written value needs, never a visible event */
  STEM_RAW_Blob,          /* value: length; aux: enum stem_blob; the bytes follow in (length + 23) / 24 records */
  STEM_RAW_Module,        /* a loaded ELF object: addr: load bias; value: address of its first site record; expr: number of
                             bytes of site records; then a blob: its path. Before the first record that uses its sites. Of a
                             binary that nobody prepared: the address and size of its code, whose addresses are its sites */
  STEM_RAW_Ticket,        /* value: position of the next record in the total order (parallel streams) */
  STEM_RAW_Exposed,       /* addr: somewhere in an object that was given to code which is not recorded */
  STEM_RAW_Rounds,        /* a loop that only computed: value: how many rounds; expr: id of what the first began with; site: which
                             round (they are numbered from 1, in the order of their blobs). Takes nodes * rounds ids */
  STEM_RAW_Group,         /* a stretch of code that was run through: see stem_group */
};

enum {
#define STEM_OP(Name, text, arity) STEM_OP_##Name,
#include "trace/ops.def"
  STEM_OP_COUNT
};

/* One record. head: address in bits 0-47, kind in 48-55, aux in 56-63. site: the low 32 bits of the address of the
 * site's record in its module (unique per process; registration checks it), 0 if unknown. */
struct stem_rec {
  uint64_t head;
  uint64_t value;
  uint32_t expr;
  uint32_t site;
};

/* aux of memory accesses: the size in bytes in bits 0-3, and these. For other events aux holds trace::Flag bits 0-7, and
 * for synchronisation events (which have no expression) expr holds bits 8-15, in place. */
#define STEM_AUX_ATOMIC 0x10u
#define STEM_AUX_LEAF 0x20u   /* Read, Rmw: this read takes the thread's next expression id */
#define STEM_AUX_PINNED 0x40u /* Read, Rmw: its value is pinned at once */

static inline uint64_t stem_head(unsigned kind, unsigned aux, uint64_t addr) {
  return (addr & 0xffffffffffffull) | ((uint64_t)kind << 48) | ((uint64_t)aux << 56);
}

/* An Expr record: aux: the operation; expr: id of the first operand (0: constant, in value); site: id of the second
 * operand (0: constant, in value); both constant never happens. Address bits: width of the result in bits 0-7, width of
 * the operand in bits 8-15, lowest bit of an Extract in bits 16-23. Ids count from 1 in each thread, in stream order:
 * each Expr record and each Read or Rmw with STEM_AUX_LEAF takes the next one. Op::Input: value as in ops.def. */
static inline uint64_t stem_expr_head(unsigned op, unsigned width, unsigned operand_width, unsigned low) {
  return stem_head(STEM_RAW_Expr, op, (uint64_t)width | (uint64_t)operand_width << 8 | (uint64_t)low << 16);
}

/* The expressions that one round of a loop makes. A node is an Expr record of an operation with two operands, but its operands
 * (expr, site) are 0: the constant in value; 1: what the round began with; 2 + k: node k of the round. */
struct stem_round {
  uint32_t epoch, number; /* the runtime's: in which recording it was told, and as which */
  uint32_t nodes;
  uint32_t result; /* the node that the next round begins with */
  struct stem_rec node[];
};

/* What a stretch of code without a choice records is the same each time but for addresses and values: a recorder of binaries tells
 * the records once, as a blob, and then of each run through it only what differs. Groups are numbered from 0, in the order of their
 * blobs. A Group record has the number in bits 0-31 of its address, the outcome of the branch at its end in bits 32-39, and in aux
 * how many records of the stream it takes, itself included: the rest of it, from its second word on, are addresses and values.
 *
 * In the blob, after this head: the accesses, then the records. There an address is the number of an access; a value is 0, or 1 plus
 * the number of the access whose value it is, or STEM_GROUP_TAKEN; ids of expressions count from 1, the thread's next one. */
struct stem_group {
  uint32_t accesses, records, ids;
  uint32_t size; /* of a Group record, in records */
};
struct stem_group_access {
  uint64_t addr;              /* to which is added what stands in the Group record, */
  uint16_t at_addr, at_value; /* so many bytes from its beginning. 0: nothing */
  uint16_t size;
  uint16_t write;
};
#define STEM_GROUP_TAKEN 0x10000u
static inline uint64_t stem_group_head(uint32_t number, uint32_t size) {
  return (uint64_t)number | (uint64_t)STEM_RAW_Group << 48 | (uint64_t)size << 56;
}

enum stem_blob {
  STEM_BLOB_INPUT_NAME,   /* after an Input event, */
  STEM_BLOB_INPUT_BYTES,  /* then this */
  STEM_BLOB_NONDET_NAME,  /* after a Nondet event, */
  STEM_BLOB_NONDET_BYTES, /* then this */
  STEM_BLOB_THREAD_PATH,
  STEM_BLOB_THREAD_START,
  STEM_BLOB_MODULE_PATH,
  STEM_BLOB_CALLERS, /* after an Alloc event: up to eight return addresses, 8 bytes each, innermost first; of a frame of the stack
                        that a recorder of binaries reports: its canonical frame address */
  STEM_BLOB_META,    /* JSON: trace::Meta, at the start of the stream */
  STEM_BLOB_MESSAGE, /* a line for the person at the terminal: deadlock report, divergence; JSON, see tracer/launch */
  STEM_BLOB_ROUND,   /* struct stem_round with its nodes */
  STEM_BLOB_GROUP,   /* struct stem_group with its accesses and records */
};

#define STEM_PAGE 4096u
#define STEM_CHUNK_BYTES (24u * 8192u) /* 192 KiB */
#define STEM_CHUNKS 64u
#define STEM_SERIAL_CHUNKS 32u /* as many are used by a serialised stream: they stay in the processors' own caches */
#define STEM_RAW_SIZE (2u * STEM_PAGE + (uint64_t)STEM_CHUNKS * STEM_CHUNK_BYTES)

/* Page 0. In serialised recording only the thread that holds the token touches it. */
struct stem_hot {
  struct stem_rec* cursor; /* where the next record goes (producer's address) */
  struct stem_rec* limit;  /* end of the chunk */
  int64_t countdown;       /* visible operations left before the scheduler must be asked; <= 0 always asks */
                           /* nothing recorded, or parallel recording: cursor == limit == 0, so every access calls */
};

enum stem_chunk_state { STEM_CHUNK_FREE, STEM_CHUNK_FILLING, STEM_CHUNK_FULL };

struct stem_chunk {
  uint32_t state;  /* enum stem_chunk_state; the collector frees, the recorder fills */
  uint32_t stream; /* 0 in serialised recording, thread index in parallel recording */
  uint64_t order;  /* ordinal of the chunk within its stream, from 0 */
  uint32_t count;  /* records, once FULL; while FILLING the cursor tells (hot.cursor, or cursors[]) */
  uint32_t reserved;
};

/* Page 1. */
struct stem_control {
  uint64_t magic;
  uint32_t version;
  uint32_t parallel;       /* 1: one stream per thread, with tickets */
  uint64_t base;           /* address of the mapping in the producer */
  uint32_t producer_pid;
  uint32_t collector_pid;  /* 0 until it is there */
  uint32_t closing;        /* 1: set by the producer at an orderly end: drain and finish; 2: set by the collector (and
                              wake_producer woken) once the trace file is complete */
  uint32_t failed;         /* set by the collector: it could not write (disk full); the program runs on unrecorded */
  uint32_t wake_collector; /* futex words */
  uint32_t wake_producer;
  struct stem_chunk chunks[STEM_CHUNKS];
  uint64_t cursors[STEM_CHUNKS]; /* parallel recording: how far each FILLING chunk is filled (producer's address) */
};

#endif
