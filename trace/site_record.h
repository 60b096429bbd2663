/* What stem-cc leaves in an ELF file: sites, variables, type layouts and bitcode. Freestanding: the pass writes these
 * structures, the runtime reads a site's key, trace/program.h reads all of it from the file.
 *
 * Section      holds
 * stem_sites   struct stem_site[]: alloc, writable by nobody; all translation units' arrays, contiguous. A site's identity at
 *              run time is the address of its record. Its linker-made bounds are __start_stem_sites, __stop_stem_sites.
 * stem_vars    struct stem_variable[]: the global variables that a translation unit defines.
 * .stem.bc     framed bitcode modules (struct stem_bitcode, then `size` bytes, padded to 8), not loaded at run time.
 *
 * Strings and addresses are self-relative: the address is that of the field plus its value; 0 means absent. So the records need
 * no relocation at run time, the linker merges equal strings, and strip leaves all of it alone.
 */
#ifndef STEM_TRACE_SITE_RECORD_H
#define STEM_TRACE_SITE_RECORD_H

#include <stdint.h>

#define STEM_SITES_SECTION "stem_sites"
#define STEM_VARS_SECTION "stem_vars"
#define STEM_BITCODE_SECTION ".stem.bc"
#define STEM_RECORD_VERSION 1u

enum stem_site_kind {
  STEM_SITE_READ,
  STEM_SITE_WRITE,
  STEM_SITE_RMW,    /* atomic read-modify-write, compare-and-swap */
  STEM_SITE_COPY,   /* memcpy and the like: reads and writes */
  STEM_SITE_FILL,   /* memset */
  STEM_SITE_BRANCH, /* text: "if", "switch" */
  STEM_SITE_ASSERT,
  STEM_SITE_CALL,   /* a call that the runtime may intercept; text: the callee */
  STEM_SITE_ALLOC,  /* heap; layout: of one element where it can be told */
  STEM_SITE_FREE,
  STEM_SITE_STACK,  /* a local variable comes to life; text: its name; layout */
  STEM_SITE_PIN,    /* where an unmodelled operation holds its operands */
  STEM_SITE_CODE,   /* never in a file: an instruction of a binary that nobody prepared; layout: of its function's frame, whose
                       end is the canonical frame address; text: told by what it accesses first */
};

struct stem_site {
  uint64_t key;      /* structural; never 0 */
  uint8_t kind;      /* enum stem_site_kind */
  uint8_t version;   /* STEM_RECORD_VERSION */
  uint16_t column;   /* 65535: that or more */
  uint32_t line;
  int32_t file;      /* absolute path */
  int32_t function;  /* as the programmer would write it */
  int32_t linkage;   /* linkage name of the function */
  int32_t text;      /* as the programmer would write it: q->head */
  int32_t path;      /* field path below the innermost object named: .head */
  int32_t layout;    /* ALLOC, STACK: see below */
};

enum stem_variable_flag {
  STEM_VARIABLE_TLS = 1,      /* thread-local: address is absent */
  STEM_VARIABLE_CONST = 2,    /* never written */
};

struct stem_variable {
  uint64_t size;
  int32_t address;  /* of the variable; 0 where the linker decides (inline variables, common symbols): find it by name */
  int32_t name;     /* linkage name */
  int32_t display;  /* as the programmer would write it: ns::table, function::counter for a static local */
  int32_t file;
  uint32_t line;
  int32_t layout;
  uint32_t flags;   /* enum stem_variable_flag */
  uint32_t version; /* STEM_RECORD_VERSION */
};

/* A layout is a string that turns an offset into a field path (trace::field_path):
 *   layout := size type                  size in bytes, decimal
 *   type   := ""                         nothing inside: a number, a pointer
 *           | "{" member,... "}"         member := name "@" offset "+" size type; a base class or anonymous member has no name
 *           | "[" stride "*" count type "]"   count 0: as many as there are
 * Example: struct { int n; struct { int max, min; } limits[4]; }  is  36{n@0+4,limits@4+32[8*4{max@0+4,min@4+4}]}
 */

#define STEM_BITCODE_MAGIC 0x3130434244454d53ull /* "SMEDBC01" */

struct stem_bitcode {
  uint64_t magic;
  uint64_t size;     /* bytes that follow, before padding to 8 */
  uint64_t raw_size; /* after decompression (zstd); equal to size when stored as it is */
  uint64_t hash;     /* xxh3 of the decompressed bytes, as trace/program checks it */
};

/* The 16 bytes before the entry of every instrumented function: a caller that holds a symbolic argument looks for them before it
 * trusts a function it does not know to take expression ids. */
#define STEM_FUNCTION_MARK_0 0x5354454d66756e63ull
#define STEM_FUNCTION_MARK_1 0xb7a1d90e3c68f254ull

#endif
