/* Which statements of a translated block call a helper.
 *
 * Loads and stores, atomic operations, conditional jumps, indirect jumps and calls (they pin reads), and every place
 * where an address of the stack gets out of the stack and frame pointers (an escape, tracer/binary/stack.c). Code of
 * system libraries is left alone; so are reads of the tables through which modules call each other.
 *
 * Is the frame pointer one? With -fomit-frame-pointer rbp is a register like any other. The unwind tables say: where
 * the frame's address is computed from rbp, rbp points into the frame. */
#include "tracer/valgrind/block.h"

enum {
  PLAIN,
  FRAME /* stack pointer plus a constant */,
  WITHIN /* stack pointer plus something */,
  OF_THREAD /* thread pointer */,
  GUARD /* the word with which a function sees that its frame was written over; nobody writes it */
};

static Bool frame_pointer_at(Addr pc) {
  Addr cfa = ML_(get_CFA)(pc, 0x10000000, 0x20000000, ~(Addr)0, 0);
  return cfa > 0x1ff00000 && cfa < 0x20100000;
}

void stem_add(struct block* b, IRStmt* st) { addStmtToIRSB(b->out, st); }
static void add(struct block* b, IRStmt* st) { stem_add(b, st); }

IRExpr* stem_temp(struct block* b, IRExpr* e) {
  IRTemp t = newIRTemp(b->out->tyenv, typeOfIRExpr(b->out->tyenv, e));
  add(b, IRStmt_WrTmp(t, e));
  return IRExpr_RdTmp(t);
}

static IRExpr* temp(struct block* b, IRExpr* e) { return stem_temp(b, e); }

static IRExpr* plus(struct block* b, IRExpr* addr, UInt offset) {
  if (offset == 0) return addr;
  return temp(b, IRExpr_Binop(Iop_Add64, addr, IRExpr_Const(IRConst_U64(offset))));
}

/* An atom as 64 bits; `part` of a vector. */
static IRExpr* as_word(struct block* b, IRExpr* e, UInt part) {
  static const IROp lanes[4] = {Iop_V256to64_0, Iop_V256to64_1, Iop_V256to64_2, Iop_V256to64_3};
  switch (typeOfIRExpr(b->out->tyenv, e)) {
    case Ity_I1:
      return temp(b, IRExpr_Unop(Iop_1Uto64, e));
    case Ity_I8:
      return temp(b, IRExpr_Unop(Iop_8Uto64, e));
    case Ity_I16:
      return temp(b, IRExpr_Unop(Iop_16Uto64, e));
    case Ity_I32:
      return temp(b, IRExpr_Unop(Iop_32Uto64, e));
    case Ity_I64:
      return e;
    case Ity_F32:
      return as_word(b, temp(b, IRExpr_Unop(Iop_ReinterpF32asI32, e)), 0);
    case Ity_F64:
      return temp(b, IRExpr_Unop(Iop_ReinterpF64asI64, e));
    case Ity_V128:
      return temp(b, IRExpr_Unop(part ? Iop_V128HIto64 : Iop_V128to64, e));
    case Ity_V256:
      return temp(b, IRExpr_Unop(lanes[part], e));
    default:
      return NULL;
  }
}

static IRExpr* at(struct block* b, UInt size, UInt flags) {
  return IRExpr_Const(IRConst_U64(STEM_AT(b->pc, size, flags)));
}

static UInt kind_of(struct block* b, IRExpr* e) { return e->tag == Iex_RdTmp ? b->kind[e->Iex.RdTmp.tmp] : PLAIN; }
static Bool is_frame(UInt kind) { return kind == FRAME || kind == WITHIN; }

static UInt address_flags(struct block* b, IRExpr* addr) {
  if (addr->tag == Iex_Const) return STEM_AT_FREE;
  UInt kind = kind_of(b, addr);
  return kind == FRAME || kind == OF_THREAD ? STEM_AT_FREE : 0;
}

static Bool is_linkage(struct block* b, IRExpr* addr) {
  if (addr->tag != Iex_Const) return False;
  Addr a = addr->Iex.Const.con->Ico.U64;
  struct module* m = b->module;
  if (a - m->begin < m->end - m->begin) return True; /* a constant among the code */
  const NSegment* segment = VG_(am_find_nsegment)(a);
  if (segment && !segment->hasW) return True; /* constants */
  return a - m->got < m->got_end - m->got || a - m->gotplt < m->gotplt_end - m->gotplt;
}

static void call(struct block* b, const HChar* name, void* helper, IRExpr** args, IRExpr* guard) {
  if (b->pass == PLAN) return;
  IRDirty* d = unsafeIRDirty_0_N(0, name, VG_(fnptr_to_fnentry)(helper), args);
  if (guard) d->guard = guard;
  add(b, IRStmt_Dirty(d));
}

/* Return addresses and saved registers: call, ret, pop, leave. */
static Bool is_bookkeeping(Addr pc) {
  const UChar* p = (const UChar*)pc;
  while ((*p & 0xf0) == 0x40 || *p == 0xf2 || *p == 0xf3 || *p == 0x66) p++;
  return (*p >= 0x58 && *p <= 0x5f) || *p == 0xc3 || *p == 0xc2 || *p == 0xc9 || *p == 0xe8;
}

/* push %rbp: the caller's frame pointer, kept to be put back. */
static Bool saves_frame_pointer(Addr pc) { return *(const UChar*)pc == 0x55; }

static IRExpr* word_of(struct block* b, const uint64_t* where) {
  return temp(b, IRExpr_Load(Iend_LE, Ity_I64, IRExpr_Const(IRConst_U64((Addr)where))));
}

IRExpr* stem_binop(struct block* b, IROp op, IRExpr* x, IRExpr* y) { return temp(b, IRExpr_Binop(op, x, y)); }
IRExpr* stem_number(ULong n) { return IRExpr_Const(IRConst_U64(n)); }
static IRExpr* binop(struct block* b, IROp op, IRExpr* x, IRExpr* y) { return stem_binop(b, op, x, y); }
static IRExpr* number(ULong n) { return stem_number(n); }

/* Most accesses of frames are of what is private to the thread: seen here without a call, as is_private() in helpers.c
 * does. Of a write the place is noted (tracer/binary/stack.c), four bytes for each four, at an address that goes down
 * as the stack's goes up; one that is not aligned calls. The guard of the call for all others. */
static IRExpr* unless_private(struct block* b, IRExpr* addr, UInt size, Bool write) {
  IRExpr* offset = binop(b, Iop_Sub64, addr, word_of(b, &bin.private_low));
  if (write && size > 1)
    offset = binop(b, Iop_Or64, offset,
                   binop(b, Iop_Shl64, binop(b, Iop_And64, addr, number(size - 1)), IRExpr_Const(IRConst_U8(60))));
  IRExpr* asks = binop(b, Iop_CmpLE64U, word_of(b, &bin.private_span), offset);
  if (!write) return asks;
  IRExpr* slot = binop(b, Iop_Sub64, word_of(b, &bin.private_writers), binop(b, Iop_And64, addr, number(~3ull)));
  if (size == 8) slot = binop(b, Iop_Sub64, slot, number(4));
  ULong site = (UInt)b->pc;
  IRExpr* by = size == 8 ? number(site << 32 | site) : IRExpr_Const(IRConst_U32((UInt)site));
  add(b, IRStmt_StoreG(Iend_LE, slot, by, temp(b, IRExpr_Unop(Iop_Not1, asks))));
  return asks;
}

/* Something that is not part of a group comes. */
static void peculiar(struct block* b) {
  if (b->pass == PLAN) stem_plan_action(b, &(struct action){.kind = ACT_OTHER});
  stem_is_fast(b);
}

static Bool is_simple(struct block* b, IRExpr* data, UInt size) {
  if (data && !as_word(b, data, 0)) return False;
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16 || size == 32;
}

static void plan_access(struct block* b, IRExpr* addr, UInt size, IRExpr* data, IRExpr* guard, Bool frame) {
  struct action a = {.kind = frame ? ACT_FRAME : ACT_ACCESS, .size = size, .write = data != NULL};
  a.flags = address_flags(b, addr);
  a.constant = addr->tag == Iex_Const;
  if (a.constant) a.address = addr->Iex.Const.con->Ico.U64;
  a.known = !guard && is_simple(b, data, size);
  if (frame) {
    a.place = b->place[addr->Iex.RdTmp.tmp];
    a.known &= a.place.base != BASE_NONE && (!data || (a.place.offset & ((size < 8 ? size : 8) - 1)) == 0);
  }
  stem_plan_action(b, &a);
}

/* True: nothing more is to be done for it, except that of a read that is part of a group the value is still to come. */
static Bool access(struct block* b, IRExpr* addr, UInt size, IRExpr* data, IRExpr* guard) {
  if (is_linkage(b, addr) || kind_of(b, addr) == GUARD || (kind_of(b, addr) == FRAME && is_bookkeeping(b->pc)))
    return False;
  if (data && b->in->jumpkind == Ijk_Call && data->tag == Iex_Const && data->Iex.Const.con->tag == Ico_U64 &&
      data->Iex.Const.con->Ico.U64 == b->next)
    return False; /* an indirect call pushes where it returns to */
  Bool frame = is_frame(kind_of(b, addr));
  if (b->pass == PLAN) plan_access(b, addr, size, data, guard, frame);
  if (stem_is_fast(b)) {
    if (frame) {
      stem_frame_access(b, b->place[addr->Iex.RdTmp.tmp], size, data != NULL);
      return False;
    }
    stem_group_address(b, addr);
    if (data) stem_group_value(b, data, size);
    return True;
  }
  if (b->pass == PLAN) return False;
  UInt flags = address_flags(b, addr);
  for (UInt part = 0; part * 8 < size; part++) {
    UInt n = size - part * 8 < 8 ? size - part * 8 : 8;
    IRExpr* where = at(b, n, flags | (part ? STEM_AT_MORE : 0));
    IRExpr* a = plus(b, addr, part * 8);
    IRExpr* word = data ? as_word(b, data, part) : NULL;
    if (data && !word) continue;
    IRExpr* asks = !guard && frame && (n & (n - 1)) == 0 ? unless_private(b, a, n, data != NULL) : guard;
    if (!data)
      call(b, "stem_help_read", &stem_help_read, mkIRExprVec_2(a, where), asks);
    else
      call(b, "stem_help_write", &stem_help_write, mkIRExprVec_3(a, word, where), asks);
  }
  return False;
}

static void escape(struct block* b, IRExpr* e) {
  if (!is_frame(kind_of(b, e)) || b->escaped[e->Iex.RdTmp.tmp]) return;
  b->escaped[e->Iex.RdTmp.tmp] = True;
  b->escapes = True;
  call(b, "stem_help_escape", &stem_help_escape, mkIRExprVec_2(e, at(b, 0, 0)), NULL);
}

/* --- what temporaries are, and where stack addresses get out
 * ---------------------------------------------------------------------- */

static Bool is_constant(IRExpr* e) { return e->tag == Iex_Const; }

static UInt sum_kind(struct block* b, IRExpr* x, IRExpr* y, Bool minus) {
  UInt k = kind_of(b, x), l = kind_of(b, y);
  if (k == PLAIN && l == PLAIN) return PLAIN;
  if (is_frame(k) && is_frame(l)) return PLAIN; /* a distance */
  if (k == OF_THREAD && is_constant(y) && y->Iex.Const.con->Ico.U64 == 0x28) return GUARD;
  if (is_constant(y)) return k;
  if (is_constant(x) && !minus) return l;
  return is_frame(k) || is_frame(l) ? WITHIN : PLAIN;
}

/* Which of the registers that groups.c can test where the block is entered. */
static UInt base_of(Int offset) {
  if (offset == offsetof(VexGuestAMD64State, guest_RSP)) return BASE_SP;
  return offset == offsetof(VexGuestAMD64State, guest_RBP) ? BASE_FP : BASE_NONE;
}

static struct place place_of(struct block* b, IRExpr* e) {
  return e->tag == Iex_RdTmp ? b->place[e->Iex.RdTmp.tmp] : (struct place){BASE_NONE, 0};
}

static struct place moved(struct block* b, IRExpr* x, IRExpr* y, Bool minus) {
  if (!minus && is_constant(x)) return moved(b, y, x, False);
  struct place p = place_of(b, x);
  if (!is_constant(y) || y->Iex.Const.con->tag != Ico_U64) return (struct place){BASE_NONE, 0};
  p.offset += (Long)(minus ? -y->Iex.Const.con->Ico.U64 : y->Iex.Const.con->Ico.U64);
  if (p.offset > 1 << 20 || p.offset < -(1 << 20)) p.base = BASE_NONE;
  return p;
}

static void expression(struct block* b, IRTemp to, IRExpr* e) {
  switch (e->tag) {
    case Iex_Get:
      if (e->Iex.Get.ty != Ity_I64) return;
      if (e->Iex.Get.offset == offsetof(VexGuestAMD64State, guest_RSP)) b->kind[to] = FRAME;
      if (e->Iex.Get.offset == offsetof(VexGuestAMD64State, guest_RBP) && b->seen && frame_pointer_at(b->pc))
        b->kind[to] = FRAME;
      b->place[to] = b->registers[base_of(e->Iex.Get.offset)];
      if (e->Iex.Get.offset == offsetof(VexGuestAMD64State, guest_FS_CONST)) b->kind[to] = OF_THREAD;
      return;
    case Iex_RdTmp:
      b->kind[to] = kind_of(b, e);
      b->place[to] = place_of(b, e);
      return;
    case Iex_Binop: {
      IRExpr *x = e->Iex.Binop.arg1, *y = e->Iex.Binop.arg2;
      if (e->Iex.Binop.op == Iop_Add64 || e->Iex.Binop.op == Iop_Sub64) {
        b->kind[to] = sum_kind(b, x, y, e->Iex.Binop.op == Iop_Sub64);
        if (!is_constant(x) || !is_constant(y)) b->place[to] = moved(b, x, y, e->Iex.Binop.op == Iop_Sub64);
      } else if (e->Iex.Binop.op == Iop_And64 && is_constant(y)) {
        b->kind[to] = kind_of(b, x);
      } else if (b->seen && typeOfIRTemp(b->in->tyenv, to) != Ity_I1) {
        escape(b, x);
        escape(b, y);
      }
      return;
    }
    case Iex_Unop: {
      IRType type = typeOfIRTemp(b->in->tyenv, to);
      if (b->seen && (type == Ity_I64 || type == Ity_V128 || type == Ity_V256)) escape(b, e->Iex.Unop.arg);
      return;
    }
    case Iex_ITE:
      if (is_frame(kind_of(b, e->Iex.ITE.iftrue)) || is_frame(kind_of(b, e->Iex.ITE.iffalse))) b->kind[to] = WITHIN;
      return;
    default:
      return;
  }
}

static void put(struct block* b, Int offset, IRExpr* data) {
  if (base_of(offset) != BASE_NONE) b->registers[base_of(offset)] = place_of(b, data);
  if (!is_frame(kind_of(b, data)) || !b->seen) return;
  if (offset == offsetof(VexGuestAMD64State, guest_RSP)) return;
  if (offset == offsetof(VexGuestAMD64State, guest_RBP) && frame_pointer_at(b->next)) return;
  if (offset >= (Int)offsetof(VexGuestAMD64State, guest_CC_OP) &&
      offset <= (Int)offsetof(VexGuestAMD64State, guest_CC_NDEP))
    return;
  if (offset == offsetof(VexGuestAMD64State, guest_RIP)) return;
  escape(b, data);
}

/* --- statements
 * ----------------------------------------------------------------------------------------------------------------------
 */

static Bool is_conditional_jump(Addr pc, Bool by_flags) {
  const UChar* p = (const UChar*)pc;
  while (*p == 0x2e || *p == 0x3e || *p == 0xf2 || *p == 0x66) p++;
  return (*p & 0xf0) == 0x70 || (*p == 0x0f && (p[1] & 0xf0) == 0x80) || (!by_flags && *p >= 0xe0 && *p <= 0xe3);
}

static Bool writes_flags(const IRStmt* st) {
  return st->tag == Ist_Put && st->Ist.Put.offset >= (Int)offsetof(VexGuestAMD64State, guest_CC_OP) &&
         st->Ist.Put.offset <= (Int)offsetof(VexGuestAMD64State, guest_CC_NDEP);
}

/* A compiler likes to load between a comparison and its jump: what is read there has no part in the jump, which looks
 * at the flags only. Before the first such read the ones before it are counted. */
static void note_flags(struct block* b) {
  if (!b->flags_known || b->flags_noted) return;
  Addr pc = b->pc;
  for (Int i = b->index + 1; i < b->in->stmts_used; i++) {
    const IRStmt* st = b->in->stmts[i];
    if (st->tag == Ist_IMark) pc = st->Ist.IMark.addr;
    if (writes_flags(st) || st->tag == Ist_Dirty) return;
    if (st->tag != Ist_Exit || st->Ist.Exit.jk != Ijk_Boring) continue;
    if (!is_conditional_jump(pc, True)) return;
    b->flags_noted = True;
    if (b->pass == PLAN) stem_plan_action(b, &(struct action){.kind = ACT_FLAGS});
    if (stem_is_fast(b)) return;
    call(b, "stem_help_flags", &stem_help_flags, mkIRExprVec_0(), NULL);
    return;
  }
}

/* What the compiler puts around main. Most of its symbols have no size, and so no name here: in a file that has its
 * symbols, code without a name and without lines. */
static Bool is_startup(struct module* m, Addr pc) {
  static const HChar* const names[] = {"(below main)",
                                       "_start",
                                       "_init",
                                       "_fini",
                                       "__do_global_dtors_aux",
                                       "frame_dummy",
                                       "register_tm_clones",
                                       "deregister_tm_clones",
                                       "__libc_csu_init",
                                       "__libc_csu_fini"};
  const HChar* name;
  UInt line;
  if (!VG_(get_fnname)(VG_(current_DiEpoch)(), pc, &name))
    return m->symbols && !VG_(get_linenum)(VG_(current_DiEpoch)(), pc, &line);
  for (UInt i = 0; i < sizeof names / sizeof *names; i++)
    if (VG_(strcmp)(name, names[i]) == 0) return True;
  return False;
}

static void instruction(struct block* b, Int i) {
  IRStmt* mark = b->in->stmts[i];
  b->pc = mark->Ist.IMark.addr;
  b->next = b->pc + mark->Ist.IMark.len;
  b->module = stem_module_at(b->pc);
  b->seen = b->module && b->module->seen && !b->startup;
  b->cas = NULL;
  b->exchange = False;
  for (Int k = i + 1; k < b->in->stmts_used && b->in->stmts[k]->tag != Ist_IMark; k++)
    if (b->in->stmts[k]->tag == Ist_CAS) b->cas = b->in->stmts[k]->Ist.CAS.details;
}

static UInt cas_size(struct block* b) { return (UInt)sizeofIRType(typeOfIRExpr(b->in->tyenv, b->cas->dataLo)); }

/* The load with which an exchange or an atomic addition begins is part of it: whoever else runs does so before. */
static Bool begins_exchange(struct block* b, IRExpr* addr) {
  if (!b->cas || b->cas->expdHi || !eqIRAtom(b->cas->addr, addr)) return False;
  b->exchange = True;
  peculiar(b);
  call(b, "stem_help_xchg_before", &stem_help_xchg_before,
       mkIRExprVec_2(addr, at(b, cas_size(b), address_flags(b, addr))), NULL);
  return True;
}

static void cas(struct block* b, IRStmt* st) {
  IRCAS* c = st->Ist.CAS.details;
  UInt size = cas_size(b), flags = address_flags(b, c->addr);
  Bool twice = c->dataHi != NULL;
  peculiar(b);
  if (!b->exchange)
    call(b, "stem_help_cas_before", &stem_help_cas_before, mkIRExprVec_2(c->addr, at(b, size, flags)), NULL);
  escape(b, c->dataLo);
  add(b, st);
  IRExpr* old = as_word(b, IRExpr_RdTmp(c->oldLo), 0);
  IRExpr* now = as_word(b, c->dataLo, 0);
  if (b->exchange) {
    call(b, "stem_help_xchg_after", &stem_help_xchg_after, mkIRExprVec_4(c->addr, old, now, at(b, size, flags)), NULL);
    return;
  }
  call(b, "stem_help_cas_after", &stem_help_cas_after,
       mkIRExprVec_5(c->addr, old, as_word(b, c->expdLo, 0), now, at(b, size, flags)), NULL);
  if (!twice) return;
  call(b, "stem_help_cas_after", &stem_help_cas_after,
       mkIRExprVec_5(plus(b, c->addr, size), as_word(b, IRExpr_RdTmp(c->oldHi), 0), as_word(b, c->expdHi, 0),
                     as_word(b, c->dataHi, 0), at(b, size, flags | STEM_AT_MORE)),
       NULL);
}

/* Is there anything that a branch would record or pin? */
static IRExpr* has_news(struct block* b) {
  if (b->pass == SLOW) return NULL;
  IRExpr* runs = word_of(b, (const uint64_t*)&bin.runs);
  IRExpr* where = binop(b, Iop_Add64, runs, number(offsetof(struct bin_thread, since_branch)));
  return binop(b, Iop_CmpNE64, temp(b, IRExpr_Load(Iend_LE, Ity_I64, where)), number(0));
}

static void leave(struct block* b, IRStmt* st) {
  Addr target = st->Ist.Exit.dst->Ico.U64;
  Bool branch = is_conditional_jump(b->pc, False);
  /* An atomic operation that tries again, which it never does here; a repeated instruction. */
  Bool again = target == b->pc;
  if (st->Ist.Exit.jk != Ijk_Boring || again || !branch) peculiar(b);
  if (st->Ist.Exit.jk != Ijk_Boring || again) return;
  if (!branch) {
    call(b, "stem_help_pin", &stem_help_pin, mkIRExprVec_1(at(b, 0, 0)), NULL);
    return;
  }
  UInt flags = b->flags_noted ? STEM_AT_NOTED : 0;
  b->flags_noted = False; /* what comes after it is pinned by the next */
  b->flags_known = False;
  if (b->pass == PLAN) stem_plan_action(b, &(struct action){.kind = ACT_BRANCH, .flags = flags});
  IRExpr* taken = st->Ist.Exit.guard;
  if (target == b->next) taken = temp(b, IRExpr_Unop(Iop_Not1, taken)); /* the translator turned it round */
  if (stem_is_fast(b)) {
    stem_group_branch(b, taken);
    stem_group_due(b); /* before the block is left */
    return;
  }
  if (b->pass != PLAN)
    call(b, "stem_help_branch", &stem_help_branch, mkIRExprVec_2(as_word(b, taken, 0), at(b, 0, flags)), has_news(b));
}

static void statement(struct block* b, IRStmt* st) {
  switch (st->tag) {
    case Ist_WrTmp: {
      IRExpr* e = st->Ist.WrTmp.data;
      if (e->tag == Iex_Load) {
        if (b->seen && !begins_exchange(b, e->Iex.Load.addr)) {
          note_flags(b);
          UInt size = (UInt)sizeofIRType(e->Iex.Load.ty);
          if (access(b, e->Iex.Load.addr, size, NULL, NULL)) {
            add(b, st);
            stem_group_value(b, IRExpr_RdTmp(st->Ist.WrTmp.tmp), size);
            return;
          }
        }
      } else {
        expression(b, st->Ist.WrTmp.tmp, e);
      }
      break;
    }
    case Ist_Store:
      if (b->seen) {
        if (!saves_frame_pointer(b->pc)) escape(b, st->Ist.Store.data);
        access(b, st->Ist.Store.addr, (UInt)sizeofIRType(typeOfIRExpr(b->in->tyenv, st->Ist.Store.data)),
               st->Ist.Store.data, NULL);
      }
      break;
    case Ist_StoreG: {
      IRStoreG* g = st->Ist.StoreG.details;
      if (!b->seen) break;
      escape(b, g->data);
      access(b, g->addr, (UInt)sizeofIRType(typeOfIRExpr(b->in->tyenv, g->data)), g->data, g->guard);
      break;
    }
    case Ist_LoadG: {
      IRLoadG* g = st->Ist.LoadG.details;
      IRType wide, narrow;
      typeOfIRLoadGOp(g->cvt, &wide, &narrow);
      if (b->seen) access(b, g->addr, (UInt)sizeofIRType(narrow), NULL, g->guard);
      break;
    }
    case Ist_CAS:
      if (b->seen) {
        cas(b, st);
        return;
      }
      break;
    case Ist_Put:
      put(b, st->Ist.Put.offset, st->Ist.Put.data);
      break;
    case Ist_Exit:
      if (b->seen) leave(b, st);
      break;
    case Ist_Dirty:
      if (b->seen && st->Ist.Dirty.details->mFx != Ifx_None) {
        peculiar(b);
        call(b, "stem_help_pin", &stem_help_pin, mkIRExprVec_1(at(b, 0, 0)), NULL);
      }
      break;
    case Ist_NoOp:
    case Ist_IMark:
    case Ist_AbiHint:
    case Ist_PutI:
    case Ist_LLSC:
    case Ist_MBE:
      break;
  }
  add(b, st);
}

static void go_through(struct block* b, enum pass pass, Addr entry) {
  IRSB* in = b->in;
  UInt temps = in->tyenv->types_used + 1;
  b->out = deepCopyIRSBExceptStmts(in);
  b->pass = pass;
  b->action = 0;
  b->flags_known = b->flags_noted = False;
  VG_(memset)(b->kind, PLAIN, temps);
  VG_(memset)(b->escaped, False, temps);
  VG_(memset)(b->place, BASE_NONE, temps * sizeof *b->place);
  b->registers[BASE_NONE] = (struct place){BASE_NONE, 0};
  b->registers[BASE_SP] = (struct place){BASE_SP, 0};
  b->registers[BASE_FP] = (struct place){BASE_FP, 0};
  Int i = 0;
  for (; i < in->stmts_used && in->stmts[i]->tag != Ist_IMark; i++) add(b, in->stmts[i]);
  if (pass == FAST && b->fast_end) stem_enter(b, entry);
  for (; i < in->stmts_used; i++) {
    if (in->stmts[i]->tag == Ist_IMark) {
      instruction(b, i);
      if (pass == PLAN) stem_plan_action(b, &(struct action){.kind = ACT_INSTRUCTION});
      stem_is_fast(b);
    }
    b->index = i;
    statement(b, in->stmts[i]);
    stem_group_due(b);
    if (writes_flags(in->stmts[i])) b->flags_known = True, b->flags_noted = False;
  }
  /* An indirect jump or call, or a system call. Returns go where the caller was: nothing that was read decides that. */
  Bool indirect = in->next->tag != Iex_Const && in->jumpkind != Ijk_Ret;
  Bool leaves = in->jumpkind != Ijk_Boring && in->jumpkind != Ijk_Call && in->jumpkind != Ijk_Ret &&
                in->jumpkind != Ijk_ClientReq;
  if (b->seen && (indirect || leaves)) call(b, "stem_help_pin", &stem_help_pin, mkIRExprVec_1(at(b, 0, 0)), NULL);
}

/* The other translation does it all. */
static void go_to(struct block* b, Addr entry) {
  IRSB* in = b->in;
  b->out = deepCopyIRSBExceptStmts(in);
  for (Int i = 0; i < in->stmts_used; i++) {
    add(b, in->stmts[i]);
    if (in->stmts[i]->tag == Ist_IMark) break;
  }
  b->out->next = number(entry | STEM_SLOW);
  b->out->jumpkind = Ijk_Boring;
}

static Bool any_seen(IRSB* in) {
  for (Int i = 0; i < in->stmts_used; i++)
    if (in->stmts[i]->tag == Ist_IMark && stem_is_seen(in->stmts[i]->Ist.IMark.addr)) return True;
  return False;
}

IRSB* stem_instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout, const VexGuestExtents* vge,
                      const VexArchInfo* arch, IRType guest, IRType host) {
  static struct block b;
  VG_(memset)(&b, 0, sizeof b);
  b.in = in;
  UInt temps = in->tyenv->types_used + 1;
  b.kind = VG_(malloc)("stem.kind", temps);
  b.escaped = VG_(malloc)("stem.escaped", temps);
  b.place = VG_(malloc)("stem.place", temps * sizeof *b.place);
  Addr entry = closure->nraddr & ~STEM_SLOW;
  b.startup = stem_is_seen(entry) && is_startup(stem_module_at(entry), entry);
  if (closure->nraddr != entry) stem_note_reads(entry, in);
  if (!stem_groups || closure->nraddr != entry || !any_seen(in)) {
    go_through(&b, SLOW, entry);
  } else if (!stem_has_all_reads(entry, in)) {
    go_to(&b, entry);
  } else {
    go_through(&b, PLAN, entry);
    if (b.escapes) {
      go_to(&b, entry);
    } else {
      stem_plan_groups(&b);
      go_through(&b, FAST, entry);
    }
  }
  VG_(free)(b.kind);
  VG_(free)(b.escaped);
  VG_(free)(b.place);
  return b.out;
}
