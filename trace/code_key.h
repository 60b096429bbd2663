/* The key of a site that is an instruction of a binary nobody prepared: its module's name and its offset there. The same in every
 * run of a build, known to the recorder (which must recognise the sites of a schedule) and to the collector alike. */
#ifndef STEM_TRACE_CODE_KEY_H
#define STEM_TRACE_CODE_KEY_H

#include <stdint.h>

/* path: of the module; only what follows the last slash counts. offset: the address in the file's address space. */
static inline uint64_t stem_code_key(const char* path, uint64_t offset) {
  const char* name = path;
  for (const char* p = path; *p; p++)
    if (*p == '/') name = p + 1;
  uint64_t key = 0xcbf29ce484222325u;
  for (; *name; name++) key = (key ^ (unsigned char)*name) * 0x100000001b3u;
  key ^= offset * 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 29)) * 0xbf58476d1ce4e5b9u;
  key ^= key >> 32;
  return key ? key : 1;
}

#endif
