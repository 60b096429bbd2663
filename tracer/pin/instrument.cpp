// Which instructions call an analysis routine.
//
// In code that is recorded: every access of memory but return addresses and saved registers, the tables through which
// modules call each other and constants among the code; atomic operations; conditional branches; indirect jumps and
// calls; places where an address of the stack gets out of the stack and frame pointers (tracer/binary/stack.c).
// Everywhere: system calls.
//
// Is the frame pointer one? Pin shows no unwind tables: it is in a function that begins with push %rbp; mov %rsp,%rbp.
#include "tracer/pin/instrument.h"

#include "tracer/pin/tool.h"

namespace stem_pin {

namespace {

bool sets_frame_pointer(INS ins) {
  const RTN function = RTN_FindByAddress(INS_Address(ins));
  if (!RTN_Valid(function)) return false;
  static const UINT8 landing[] = {0xf3, 0x0f, 0x1e, 0xfa}, prologue[] = {0x55, 0x48, 0x89, 0xe5};
  UINT8 code[8] = {0};
  PIN_SafeCopy(code, reinterpret_cast<const void*>(RTN_Address(function)), sizeof code);
  const UINT8* at = __builtin_memcmp(code, landing, sizeof landing) == 0 ? code + sizeof landing : code;
  return __builtin_memcmp(at, prologue, sizeof prologue) == 0;
}

// call, ret, pop, leave: return addresses and saved registers.
bool is_bookkeeping(INS ins) {
  return INS_IsCall(ins) || INS_IsRet(ins) || INS_Opcode(ins) == XED_ICLASS_POP || INS_Opcode(ins) == XED_ICLASS_LEAVE;
}

bool is_linkage(const Module* m, INS ins) {
  if (!INS_IsIpRelRead(ins)) return false;
  const ADDRINT address = INS_NextAddress(ins) + static_cast<ADDRINT>(INS_MemoryDisplacement(ins));
  if (address - m->begin < m->end - m->begin) return true;
  return address - m->tables[0] < m->tables[1] - m->tables[0] || address - m->tables[2] < m->tables[3] - m->tables[2];
}

// Of an operand in memory: what decides its address.
UINT32 address_flags(INS ins, UINT32 operand, bool frame_pointer) {
  if (REG_valid(INS_OperandMemoryIndexReg(ins, operand))) return 0;
  const REG base = INS_OperandMemoryBaseReg(ins, operand);
  if (!REG_valid(base) || base == REG_INST_PTR || base == REG_RSP) return FREE;
  return base == REG_RBP && frame_pointer ? FREE : 0;
}

bool is_exchange(INS ins) { return INS_LockPrefix(ins) || INS_Opcode(ins) == XED_ICLASS_XCHG; }

void atomic(INS ins, UINT32 flags) {
  const UINT32 size = static_cast<UINT32>(INS_MemoryOperandSize(ins, 0));
  switch (INS_Opcode(ins)) {
    case XED_ICLASS_CMPXCHG:
    case XED_ICLASS_CMPXCHG_LOCK:
    case XED_ICLASS_CMPXCHG16B:
    case XED_ICLASS_CMPXCHG16B_LOCK:
      INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_compare), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID, IARG_MEMORYOP_EA,
                     0, IARG_UINT32, size, IARG_INST_PTR, IARG_REG_VALUE, REG_RAX, IARG_REG_VALUE, REG_RDX, IARG_END);
      break;
    case XED_ICLASS_CMPXCHG8B:
    case XED_ICLASS_CMPXCHG8B_LOCK:
      INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_compare_halves), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID,
                     IARG_MEMORYOP_EA, 0, IARG_INST_PTR, IARG_REG_VALUE, REG_RAX, IARG_REG_VALUE, REG_RDX, IARG_END);
      break;
    default:
      INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_exchange), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID,
                     IARG_MEMORYOP_EA, 0, IARG_UINT32, size, IARG_INST_PTR, IARG_UINT32, flags, IARG_END);
  }
}

void accesses(INS ins, const Module* m, bool frame_pointer) {
  if (INS_MemoryOperandCount(ins) == 0 || is_linkage(m, ins)) return;
  if (!INS_IsStandardMemop(
          ins)) { /* gathers, saving the processor's state: not recorded, but they may depend on what was read */
    INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_pin), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID, IARG_INST_PTR,
                   IARG_END);
    return;
  }
  if (is_exchange(ins))
    return atomic(ins, address_flags(ins, INS_MemoryOperandIndexToOperandIndex(ins, 0), frame_pointer));
  UINT32 more = 0;
  for (int writes = 0; writes < 2; ++writes) /* an instruction reads before it writes */
    for (UINT32 i = 0; i < INS_MemoryOperandCount(ins); ++i) {
      if (writes ? !INS_MemoryOperandIsWritten(ins, i) : !INS_MemoryOperandIsRead(ins, i)) continue;
      const UINT32 operand = INS_MemoryOperandIndexToOperandIndex(ins, i);
      if (is_bookkeeping(ins) && INS_OperandIsImplicit(ins, operand)) continue;
      /* What a repeated instruction does not do, because the count is 0, is no access; a conditional move reads in any
       * case. */
      const auto insert = INS_HasRealRep(ins) ? INS_InsertPredicatedCall : INS_InsertCall;
      insert(ins, IPOINT_BEFORE, writes ? AFUNPTR(on_write) : AFUNPTR(on_read), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID,
             IARG_MEMORYOP_EA, i, IARG_UINT32, static_cast<UINT32>(INS_MemoryOperandSize(ins, i)), IARG_INST_PTR,
             IARG_UINT32, address_flags(ins, operand, frame_pointer) | more, IARG_REG_VALUE, REG_STACK_PTR, IARG_END);
      more = MORE;
    }
}

void insert_escape(INS ins, bool frame_pointer, IARG_TYPE value, REG of) {
  IARGLIST arguments = IARGLIST_Alloc();
  if (value == IARG_REG_VALUE)
    IARGLIST_AddArguments(arguments, IARG_REG_VALUE, of, IARG_END);
  else
    IARGLIST_AddArguments(arguments, IARG_EXPLICIT_MEMORY_EA, IARG_END);
  if (frame_pointer)
    INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_escape_of_frame), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID,
                   IARG_IARGLIST, arguments, IARG_INST_PTR, IARG_REG_VALUE, REG_STACK_PTR, IARG_REG_VALUE, REG_RBP,
                   IARG_END);
  else
    INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_escape), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID, IARG_IARGLIST,
                   arguments, IARG_INST_PTR, IARG_REG_VALUE, REG_STACK_PTR, IARG_ADDRINT, static_cast<ADDRINT>(0),
                   IARG_END);
  IARGLIST_Free(arguments);
}

bool is_of_frame(REG r) { return r == REG_RSP || r == REG_RBP; }

// %rbp always counts: a copy of it that is no address of the stack is told from one by its value.
void escapes(INS ins, bool frame_pointer) {
  if (INS_IsLea(ins)) {
    if (is_of_frame(INS_OperandReg(ins, 0))) return;
    if (is_of_frame(INS_MemoryBaseReg(ins)) || is_of_frame(INS_MemoryIndexReg(ins)))
      insert_escape(ins, frame_pointer, IARG_EXPLICIT_MEMORY_EA, REG_INVALID());
    return;
  }
  if (is_bookkeeping(ins) || INS_Opcode(ins) == XED_ICLASS_CMP || INS_Opcode(ins) == XED_ICLASS_TEST) return;
  if (INS_Opcode(ins) == XED_ICLASS_PUSH && INS_OperandIsReg(ins, 0) && INS_OperandReg(ins, 0) == REG_RBP)
    return;                    /* saved, to be put back */
  bool goes_elsewhere = false; /* to memory, or to a register that is not one of the two */
  for (UINT32 i = 0; i < INS_OperandCount(ins); ++i) {
    if (INS_OperandIsImplicit(ins, i) || !INS_OperandWritten(ins, i)) continue;
    if (INS_OperandIsMemory(ins, i) || (INS_OperandIsReg(ins, i) && !is_of_frame(INS_OperandReg(ins, i))))
      goes_elsewhere = true;
  }
  if (INS_Opcode(ins) == XED_ICLASS_PUSH) goes_elsewhere = true;
  if (!goes_elsewhere) return;
  for (UINT32 i = 0; i < INS_OperandCount(ins); ++i)
    if (!INS_OperandIsImplicit(ins, i) && INS_OperandIsReg(ins, i) && INS_OperandRead(ins, i) &&
        is_of_frame(INS_OperandReg(ins, i)))
      insert_escape(ins, frame_pointer, IARG_REG_VALUE, INS_OperandReg(ins, i));
}

void control(INS ins) {
  if (INS_IsBranch(ins) && INS_HasFallThrough(ins)) {
    INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_branch), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID, IARG_INST_PTR,
                   IARG_BRANCH_TAKEN, IARG_END);
  } else if (INS_IsIndirectControlFlow(ins) && !INS_IsRet(ins)) {
    INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_pin), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID, IARG_INST_PTR,
                   IARG_END);
  } else if (INS_IsCall(ins) || INS_IsRet(ins)) {
    INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_leave), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID, IARG_END);
  }
}

// What the compiler puts around main.
bool is_startup(ADDRINT address) {
  static const char* const names[] = {"_start",
                                      "_init",
                                      "_fini",
                                      ".init",
                                      ".fini",
                                      "__do_global_dtors_aux",
                                      "frame_dummy",
                                      "register_tm_clones",
                                      "deregister_tm_clones",
                                      "__libc_csu_init",
                                      "__libc_csu_fini"};
  const std::string name = RTN_FindNameByAddress(address);
  for (const char* known : names)
    if (name == known) return true;
  return false;
}

}  // namespace

void PIN_FAST_ANALYSIS_CALL on_escape_of_frame(THREADID tid, ADDRINT value, ADDRINT site, ADDRINT sp,
                                               ADDRINT frame_pointer) {
  on_escape(tid, value, site, sp, frame_pointer > sp - 64 ? frame_pointer + 16 : 0);
}

void instrument(TRACE trace, VOID*) {
  const Module* m = module_at(TRACE_Address(trace));
  const bool seen = m && m->seen && !is_startup(TRACE_Address(trace));
  for (BBL block = TRACE_BblHead(trace); BBL_Valid(block); block = BBL_Next(block))
    for (INS ins = BBL_InsHead(block); INS_Valid(ins); ins = INS_Next(ins)) {
      if (INS_IsSyscall(ins))
        INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(on_syscall), IARG_FAST_ANALYSIS_CALL, IARG_THREAD_ID,
                       IARG_SYSCALL_NUMBER, IARG_SYSARG_VALUE, 0, IARG_SYSARG_VALUE, 1, IARG_END);
      if (!seen || INS_IsNop(ins)) continue;
      const bool frame_pointer = sets_frame_pointer(ins);
      escapes(ins, frame_pointer);
      accesses(ins, m, frame_pointer);
      control(ins);
    }
}

}  // namespace stem_pin
