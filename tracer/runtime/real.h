/* The functions that the runtime interposes, as the C library has them: STEM_REAL(pthread_create)(...).
 * Looked up once a place with dlsym(RTLD_NEXT); pthread_cond_* by version, because the unversioned answer is the old ABI. */
#ifndef STEM_TRACER_RUNTIME_REAL_H
#define STEM_TRACER_RUNTIME_REAL_H

void* stem_real_lookup(const char* name);                       /* ends the program with a message if it is not there */
void* stem_real_find(const char* name);                         /* or 0 */

#define STEM_REAL(name)                                                                \
  (*({                                                                                 \
    static __typeof__(&name) stem_real_f_;                                             \
    __typeof__(&name) f_ = __atomic_load_n(&stem_real_f_, __ATOMIC_RELAXED);           \
    if (__builtin_expect(!f_, 0)) {                                                    \
      f_ = (__typeof__(&name))stem_real_lookup(#name);                                 \
      __atomic_store_n(&stem_real_f_, f_, __ATOMIC_RELAXED);                           \
    }                                                                                  \
    f_;                                                                                \
  }))

#endif
