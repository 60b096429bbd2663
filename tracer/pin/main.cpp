// Pin's callbacks: start, threads, images, signals, fork. None of them waits for another thread (tool.h).
#include <string.h>

#include "tracer/pin/instrument.h"
#include "tracer/pin/tool.h"

using namespace stem_pin;

namespace {

char** program_arguments;
int program_argument_count;
char program_path[4096];

const char* argument(int index) { return index < program_argument_count ? program_arguments[index] : 0; }

void replace(IMG image) {
  for (SEC section = IMG_SecHead(image); SEC_Valid(section); section = SEC_Next(section)) {
    if (!SEC_IsExecutable(section)) continue;
    for (RTN routine = SEC_RtnHead(section); RTN_Valid(routine); routine = RTN_Next(routine)) {
      if (SYM_Valid(RTN_Sym(routine)) && SYM_IFuncResolver(RTN_Sym(routine))) continue; /* it only chooses */
      std::string name = RTN_Name(routine);
      name = name.substr(0, name.find('@'));
      for (unsigned i = 0; i < function_count; i++) {
        if (name != functions[i].name) continue;
        PROTO proto =
            PROTO_Allocate(PIN_PARG(ADDRINT), CALLINGSTD_DEFAULT, functions[i].name, PIN_PARG(ADDRINT),
                           PIN_PARG(ADDRINT), PIN_PARG(ADDRINT), PIN_PARG(ADDRINT), PIN_PARG(ADDRINT), PIN_PARG_END());
        functions[i].original = RTN_ReplaceSignature(
            routine, AFUNPTR(on_call), IARG_PROTOTYPE, proto, IARG_PTR, &functions[i], IARG_CONST_CONTEXT,
            IARG_THREAD_ID, IARG_ORIG_FUNCPTR, IARG_RETURN_IP, IARG_FUNCARG_ENTRYPOINT_VALUE, 0,
            IARG_FUNCARG_ENTRYPOINT_VALUE, 1, IARG_FUNCARG_ENTRYPOINT_VALUE, 2, IARG_FUNCARG_ENTRYPOINT_VALUE, 3,
            IARG_FUNCARG_ENTRYPOINT_VALUE, 4, IARG_END);
        PROTO_Free(proto);
      }
      if (name == "__errno_location") errno_location = AFUNPTR(RTN_Address(routine));
    }
  }
}

bool has_functions(const char* path) {
  const char* name = strrchr(path, '/');
  name = name ? name + 1 : path;
  return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2", 6) == 0 || strncmp(name, "libpthread", 10) == 0 ||
         strncmp(name, "libstdc++", 9) == 0;
}

void image_loaded(IMG image, VOID*) {
  const std::string path = IMG_Name(image);
  ADDRINT begin = ~static_cast<ADDRINT>(0), end = 0;
  for (SEC section = IMG_SecHead(image); SEC_Valid(section); section = SEC_Next(section)) {
    if (!SEC_Mapped(section) || !SEC_IsExecutable(section) || SEC_Size(section) == 0) continue;
    if (SEC_Address(section) < begin) begin = SEC_Address(section);
    if (SEC_Address(section) + SEC_Size(section) > end) end = SEC_Address(section) + SEC_Size(section);
  }
  Module* m = begin < end ? add_module(path.c_str(), begin, end, IMG_LoadOffset(image)) : 0;
  for (SEC section = IMG_SecHead(image); m && SEC_Valid(section); section = SEC_Next(section)) {
    const std::string name = SEC_Name(section);
    const int at = name == ".got" ? 0 : name == ".got.plt" ? 2 : -1;
    if (at >= 0) m->tables[at] = SEC_Address(section), m->tables[at + 1] = SEC_Address(section) + SEC_Size(section);
  }
  if (IMG_IsMainExecutable(image)) strncpy(program_path, path.c_str(), sizeof program_path - 1);
  if (has_functions(path.c_str())) replace(image);
}

void thread_begins(THREADID tid, CONTEXT* context, INT32, VOID*) {
  if (tid >= PIN_MAX_THREADS) return;
  Client& c = clients[tid]; /* numbers of threads that ended are used again */
  memset(static_cast<void*>(&c), 0, sizeof c);
  c.stack = PIN_GetContextReg(context, REG_STACK_PTR);
  c.handle = PIN_GetContextReg(context, REG_SEG_FS_BASE); /* glibc's pthread_t */
  if (tid == 0) main_begins(tid, program_path, argument);
}

void signal_comes(THREADID tid, CONTEXT_CHANGE_REASON reason, const CONTEXT*, CONTEXT*, INT32, VOID*) {
  if (reason == CONTEXT_CHANGE_REASON_SIGNAL || reason == CONTEXT_CHANGE_REASON_FATALSIGNAL) drop_change(tid);
  if (reason == CONTEXT_CHANGE_REASON_FATALSIGNAL)
    bin_close(1); /* the trace ends there, and the launcher knows the signal */
}

void forked(THREADID, const CONTEXT*, VOID*) {
  bin.on = 0;
  bin_forget();
}

}  // namespace

int main(int argc, char** argv) {
  PIN_InitSymbolsAlt(
      static_cast<SYMBOL_INFO_MODE>(static_cast<UINT32>(IFUNC_SYMBOLS) | static_cast<UINT32>(DEBUG_OR_EXPORT_SYMBOLS)));
  if (PIN_Init(argc, argv)) return 1;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--") == 0) {
      program_arguments = argv + i + 1;
      program_argument_count = argc - i - 1;
      break;
    }
  bin_launch(program_argument_count ? program_arguments[0] : "program");
  IMG_AddInstrumentFunction(image_loaded, 0);
  TRACE_AddInstrumentFunction(instrument, 0);
  PIN_AddThreadStartFunction(thread_begins, 0);
  PIN_AddContextChangeFunction(signal_comes, 0);
  PIN_AddForkFunction(FPOINT_AFTER_IN_CHILD, forked, 0);
  PIN_StartProgram();
  return 0;
}
