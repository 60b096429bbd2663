/* Looks up the C library's own functions behind our interposers. */
#include <dlfcn.h>

#include "tracer/runtime/internal.h"

static int starts_with(const char* s, const char* prefix) {
  while (*prefix)
    if (*s++ != *prefix++) return 0;
  return 1;
}

void* stem_real_find(const char* name) {
  void* f = 0;
  if (starts_with(name, "pthread_cond_")) f = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* condattr_ and clockwait are not there */
  return f ? f : dlsym(RTLD_NEXT, name);
}

void* stem_real_lookup(const char* name) {
  void* f = stem_real_find(name);
  if (!f) {
    char buffer[200];
    struct stem_text text = {buffer, buffer + sizeof buffer};
    stem_text_add(&text, "the C library has no ");
    stem_text_add(&text, name);
    stem_text_add(&text, " (a statically linked program cannot be recorded)");
    stem_die(buffer);
  }
  return f;
}
