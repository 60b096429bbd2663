/* abi.def as C declarations, so that a definition that does not fit the table does not compile. */
#ifndef STEM_TRACER_RUNTIME_ABI_FUNCTIONS_H
#define STEM_TRACER_RUNTIME_ABI_FUNCTIONS_H

#include <stdint.h>

typedef void stem_abi_void;
typedef _Bool stem_abi_i1;
typedef uint32_t stem_abi_i32;
typedef uint64_t stem_abi_i64;
typedef void* stem_abi_ptr;

#define void stem_abi_void
#define i1 stem_abi_i1
#define i32 stem_abi_i32
#define i64 stem_abi_i64
#define ptr stem_abi_ptr
#define STEM_FN(name, result, params) __attribute__((visibility("default"))) result name params;
#include "tracer/runtime/abi.def"
#undef void
#undef i1
#undef i32
#undef i64
#undef ptr

#endif
