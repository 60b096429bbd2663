/* Functions of libstdc++ that change objects of the program which its headers look at as well: std::thread's handle, the pointer
 * that a new thread's state travels in, a future's result. Each does what it did, on memory of ours; the program's changes by
 * Write events. Declared by their linkage names: this is C, and a program without C++ never gets here. */
#include "tracer/runtime/lib.h"

/* std::thread::join(), std::thread::detach(): if the handle is not 0, do it and set it to 0. */
#define HANDLE(name)                                                              \
  void name(pthread_t* self);                                                     \
  void __stem_wrap_##name(pthread_t* self);                                       \
  STEM_EXPORT void __stem_wrap_##name(pthread_t* self) {                          \
    struct lib_call call = lib_enter(__stem_wrap_##name);                         \
    LIB_PIN(call, 0, self);                                                       \
    if (!lib_live()) return STEM_REAL(name)(self);                                \
    pthread_t own = 0;                                                            \
    lib_read(&own, self, sizeof own, call.site);                                  \
    __stem_tls.site = call.site;                                                  \
    STEM_REAL(name)(&own); /* may throw: then nothing was changed */              \
    lib_give(&call, self, &own, sizeof own);                                      \
  }
HANDLE(_ZNSt6thread4joinEv)
HANDLE(_ZNSt6thread6detachEv)

/* std::thread::_M_start_thread(std::unique_ptr<_State>, void (*)()): takes the state out of the pointer. */
#define START _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE
#define WRAP_START __stem_wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE
void START(pthread_t* self, void** state, void (*depend)(void));
void WRAP_START(pthread_t* self, void** state, void (*depend)(void));

static void (*start(void))(pthread_t*, void**, void (*)(void)) {
  static void (*found)(pthread_t*, void**, void (*)(void));
  if (!found) found = (void (*)(pthread_t*, void**, void (*)(void)))stem_real_lookup(
      "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
  return found;
}

STEM_EXPORT void WRAP_START(pthread_t* self, void** state, void (*depend)(void)) {
  struct lib_call call = lib_enter(WRAP_START);
  LIB_PIN(call, 0, self), LIB_PIN(call, 1, state), LIB_PIN(call, 2, depend);
  if (!lib_live()) return start()(self, state, depend);
  void* own = 0;
  lib_read(&own, state, sizeof own, call.site);
  __stem_tls.site = call.site;
  start()(self, &own, depend);
  lib_give(&call, state, &own, sizeof own);
}

/* std::__future_base::_Result_base::_Result_base(): a virtual table and an empty exception. */
#define RESULT(name)                                                              \
  void name(uint64_t* self);                                                      \
  void __stem_wrap_##name(uint64_t* self);                                        \
  STEM_EXPORT void __stem_wrap_##name(uint64_t* self) {                           \
    struct lib_call call = lib_enter(__stem_wrap_##name);                         \
    LIB_PIN(call, 0, self);                                                       \
    if (!lib_live()) return STEM_REAL(name)(self);                                \
    uint64_t own[4] = {0};                                                        \
    STEM_REAL(name)(own);                                                         \
    lib_give(&call, self, own, 2 * sizeof *own);                                  \
  }
RESULT(_ZNSt13__future_base12_Result_baseC1Ev)
RESULT(_ZNSt13__future_base12_Result_baseC2Ev)
