/* What a program tells STEM about itself. Works with any compiler: without STEM these do nothing (inputs keep the value they
 * have, or 0), so a program can keep them in its ordinary build.
 *
 *   #include <stem.h>
 *   int n = 3;
 *   stem_input(&n, sizeof n, "n");     n is an input: 3 unless the run is given another value (--input n=7)
 *   int m = stem_input_int("m");       the same with 0 as its value
 *   stem_assume(n < 100);              runs in which this does not hold are of no interest: they end here, quietly
 *   stem_assert(n != 42);              a run in which this does not hold is a finding
 */
#ifndef STEM_H
#define STEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compiled by stem-cc the functions are in the runtime. Compiled by anything else each translation unit brings a weak one
 * that does nothing: linked with STEM's runtime, that one wins. */
#ifdef __STEM__
#define STEM_API_(signature, body) extern signature;
#else
#define STEM_API_(signature, body) extern signature; __attribute__((weak)) signature body
#endif

/* Makes the `size` bytes at `ptr` an input called `name`. */
STEM_API_(void stem_input(void* ptr, size_t size, const char* name), { (void)ptr; (void)size; (void)name; })

/* An input of that type, 0 unless given. */
STEM_API_(int stem_input_int(const char* name), { (void)name; return 0; })
STEM_API_(unsigned stem_input_uint(const char* name), { (void)name; return 0; })
STEM_API_(long stem_input_long(const char* name), { (void)name; return 0; })
STEM_API_(unsigned long stem_input_ulong(const char* name), { (void)name; return 0; })
STEM_API_(char stem_input_char(const char* name), { (void)name; return 0; })
STEM_API_(int stem_input_bool(const char* name), { (void)name; return 0; })

STEM_API_(void stem_assume(int condition), { (void)condition; })
STEM_API_(void stem_assert(int condition), { (void)condition; })

#undef STEM_API_

#ifdef __cplusplus
}
#endif

#endif
