/* Blocks that are recorded without calls: a test where the block is entered, then stores.
 *
 * What a block does up to its first peculiar statement is looked through beforehand and made into groups
 * (tracer/binary/group.c), one for each conditional branch. Where the block is entered one test decides about the whole
 * of it: there is room for the records, no switch of threads is due within it, the thread has no unpinned reads, and
 * the part of the frame that it accesses is private. Then each access stores its address, unless that is constant, and
 * its value behind the cursor; accesses of the frame cost nothing, but for a note of who wrote. If any of that is not
 * so the block is left at once for its other translation, in which every access calls a helper (instrument.c).
 *
 * Two translations of one block. Valgrind finds translations by address, so the other one has an address that no code
 * has, and is looked up as if that were redirected to the real one. */
#include "tracer/valgrind/block.h"

extern VexControl vex_control; /* VEX's own copy */

struct bin* stem_base = &bin; /* loaded by translated code, so that what lies in it is a short distance away */
Bool stem_groups;

/* --- two translations of a block
 * ----------------------------------------------------------------------------------------------------------
 *
 * Where an address of the stack gets out the stack pointer must be the present one (tracer/binary/stack.c): the slow
 * translations keep all registers, which takes twice the time. It also keeps reads whose result nobody uses, which are
 * events all the same. So the slow translation is made first, and a block has a fast one only if that reads as often.
 */

static struct reads {
  Addr entry;
  ULong count;
}* reads_of; /* found by hashing; never more than half full */
static UInt reads_known;
#define READS_ROOM (1u << 19)

static struct reads* find_reads(Addr entry) {
  if (!reads_of) reads_of = stem_host_pages(READS_ROOM * sizeof *reads_of);
  UInt i = (UInt)((entry * 0x9e3779b97f4a7c15ull) >> 45);
  while (reads_of[i].entry && reads_of[i].entry != entry) i = (i + 1) % READS_ROOM;
  return &reads_of[i];
}

static ULong count_reads(const IRSB* in) {
  ULong count = 0;
  for (Int i = 0; i < in->stmts_used; i++) {
    const IRStmt* st = in->stmts[i];
    count += st->tag == Ist_LoadG || (st->tag == Ist_WrTmp && st->Ist.WrTmp.data->tag == Iex_Load);
  }
  return count;
}

void stem_note_reads(Addr entry, const IRSB* in) {
  struct reads* r = find_reads(entry);
  if (!r->entry && reads_known == READS_ROOM / 2) return;
  if (!r->entry) reads_known++;
  *r = (struct reads){entry, count_reads(in)};
}

Bool stem_has_all_reads(Addr entry, const IRSB* in) {
  const struct reads* r = find_reads(entry);
  return r->entry && r->count == count_reads(in);
}

/* Called when a translation begins, before anything else is done for it. */
Addr __real_vgPlain_redir_do_lookup(Addr orig, Bool* is_wrap);
Addr __wrap_vgPlain_redir_do_lookup(Addr orig, Bool* is_wrap);
Addr __wrap_vgPlain_redir_do_lookup(Addr orig, Bool* is_wrap) {
  Bool slow = (orig & STEM_SLOW) != 0;
  Addr to = slow ? orig & ~STEM_SLOW : __real_vgPlain_redir_do_lookup(orig, is_wrap);
  if (!is_wrap || !stem_groups) return to; /* not a translation */
  if (slow) {
    *is_wrap = False;
  } else if (to == orig && stem_is_seen(orig) && !VG_(search_transtab)(NULL, NULL, NULL, orig | STEM_SLOW, False)) {
    VG_(translate)(VG_(get_running_tid)(), orig | STEM_SLOW, False, 0, 0, True);
  }
  vex_control.iropt_register_updates_default = slow ? VexRegUpdAllregsAtEachInsn : VexRegUpdUnwindregsAtMemAccess;
  return to;
}

/* --- which groups a block has
 * ---------------------------------------------------------------------------------------------------------- */

void stem_plan_action(struct block* b, const struct action* a) {
  if (b->action_count == MAX_ACTIONS) return;
  b->actions[b->action_count] = *a;
  b->actions[b->action_count++].pc = b->pc;
}

static Bool plan_access(struct bin_group* g, const struct action* a) {
  for (UInt part = 0; part * 8 < a->size; part++) {
    struct bin_group_access access = {
        .told = {a->constant ? a->address + part * 8 : part * 8, 0, 0, a->size < 8 ? a->size : 8, a->write},
        .site = (UInt)a->pc,
        .is_free = (a->flags & STEM_AT_FREE) != 0,
        .has_address = !a->constant && part == 0,
        .is_piece = !a->constant && part > 0};
    if (!bin_group_access(g, &access)) return False;
  }
  return True;
}

static Bool close_segment(struct block* b, struct bin_group* g, const struct bin_group_place* p, Int end) {
  struct segment* s = &b->segments[b->segment_count];
  if (b->segment_count == MAX_SEGMENTS) return False;
  s->group = p->records ? bin_group_end(g, p) : NULL;
  if (p->records && !s->group) return False;
  UInt start = 0;
  for (Int i = 0; i < b->segment_count; i++)
    if (b->segments[i].group) start += b->segments[i].group->size;
  s->start = start * sizeof(struct stem_rec);
  s->end = end;
  b->visible += s->group ? s->group->access_count : 0;
  b->segment_count++;
  return True;
}

void stem_plan_groups(struct block* b) {
  static struct bin_group g;
  struct bin_group_place place = {0, 0, 0, 0};
  Int clean = -1; /* the last action after which the open segment could end */
  Bool accessed = False, go_on = True;
  bin_group_begin(&g);
  b->fast_end = b->segment_count = 0;
  b->visible = 0;
  for (Int i = 0; go_on && i < b->action_count; i++) {
    const struct action* a = &b->actions[i];
    switch (a->kind) {
      case ACT_INSTRUCTION:
        bin_group_mark(&g, a->pc);
        break;
      case ACT_FRAME:
        go_on = a->known;
        break;
      case ACT_ACCESS:
        go_on = a->known && plan_access(&g, a);
        accessed = True;
        if (!go_on || !bin_group_clean()) break;
        bin_group_note(&g, &place);
        clean = i + 1;
        break;
      case ACT_FLAGS:
        bin_group_flags();
        break;
      case ACT_BRANCH: /* one that nothing comes before is recorded or not: nobody knows yet */
        go_on = accessed && bin_group_branch(&g, a->pc, (a->flags & STEM_AT_NOTED) != 0) && bin_group_clean();
        if (!go_on) break;
        bin_group_note(&g, &place);
        go_on = close_segment(b, &g, &place, i + 1);
        if (!go_on) break;
        b->fast_end = i + 1;
        clean = -1;
        bin_group_begin(&g);
        break;
      case ACT_OTHER:
        go_on = False;
        break;
    }
  }
  if (clean >= 0 && close_segment(b, &g, &place, clean)) b->fast_end = clean;
  while (b->fast_end < b->action_count &&
         (b->actions[b->fast_end].kind == ACT_INSTRUCTION ||
          (b->actions[b->fast_end].kind == ACT_FRAME && b->actions[b->fast_end].known)))
    b->fast_end++;
}

Bool stem_is_fast(struct block* b) { return b->action++ < b->fast_end && b->pass == FAST; }

/* --- entering a block
 * --------------------------------------------------------------------------------------------------------------------
 */

static IRExpr* distance(struct block* b, IRExpr* base, ULong offset) {
  return stem_binop(b, Iop_Add64, base, stem_number(offset));
}

static IRExpr* load(struct block* b, IRType type, IRExpr* base, ULong offset) {
  return stem_temp(b, IRExpr_Load(Iend_LE, type, distance(b, base, offset)));
}

static void store(struct block* b, IRExpr* base, ULong offset, IRExpr* data) {
  stem_add(b, IRStmt_Store(Iend_LE, distance(b, base, offset), data));
}

static IRExpr* of_bin(struct block* b, ULong offset) { return load(b, Ity_I64, b->base, offset); }

/* All of these must not be negative. */
static void require(struct block* b, IRExpr** all, IRExpr* e) { *all = *all ? stem_binop(b, Iop_Or64, *all, e) : e; }

static void require_frame(struct block* b, IRExpr** all, UInt base) {
  Long low = 0, high = 0;
  Bool any = False, writes = False;
  for (Int i = 0; i < b->fast_end; i++) {
    const struct action* a = &b->actions[i];
    if (a->kind != ACT_FRAME || a->place.base != base) continue;
    Long last = a->place.offset + (a->size > 8 ? a->size - 8 : 0);
    if (!any || a->place.offset < low) low = a->place.offset;
    if (!any || last > high) high = last;
    any = True;
    writes |= a->write;
  }
  if (!any) return;
  Int offset = base == BASE_SP ? offsetof(VexGuestAMD64State, guest_RSP) : offsetof(VexGuestAMD64State, guest_RBP);
  IRExpr* pointer = stem_temp(b, IRExpr_Get(offset, Ity_I64));
  require(b, all, distance(b, stem_binop(b, Iop_Sub64, pointer, of_bin(b, offsetof(struct bin, private_low))), low));
  require(b, all, stem_binop(b, Iop_Sub64, of_bin(b, offsetof(struct bin, private_last)), distance(b, pointer, high)));
  if (!writes) return;
  require(b, all, stem_binop(b, Iop_Sub64, stem_number(0), stem_binop(b, Iop_And64, pointer, stem_number(7))));
  b->writers[base] = stem_binop(b, Iop_Sub64, of_bin(b, offsetof(struct bin, private_writers)), pointer);
}

void stem_enter(struct block* b, Addr slow) {
  UInt size = 0;
  IRExpr* all = NULL;
  for (Int i = 0; i < b->segment_count; i++)
    if (b->segments[i].group) size += b->segments[i].group->size;
  b->base = stem_temp(b, IRExpr_Load(Iend_LE, Ity_I64, stem_number((Addr)&stem_base)));
  if (size) {
    b->cursor = of_bin(b, offsetof(struct bin, cursor));
    b->countdown = of_bin(b, offsetof(struct bin, countdown));
    /* One record more: its head is cleared. */
    require(b, &all,
            stem_binop(b, Iop_Sub64, of_bin(b, offsetof(struct bin, limit)),
                       distance(b, b->cursor, (size + 1) * sizeof(struct stem_rec))));
    require(b, &all, stem_binop(b, Iop_Sub64, b->countdown, stem_number(b->visible)));
    IRExpr* runs = of_bin(b, offsetof(struct bin, runs));
    IRExpr* unpinned = load(b, Ity_I32, runs, offsetof(struct bin_thread, unpinned_count));
    require(b, &all, stem_binop(b, Iop_Sub64, stem_number(0), stem_temp(b, IRExpr_Unop(Iop_32Uto64, unpinned))));
  }
  require_frame(b, &all, BASE_SP);
  require_frame(b, &all, BASE_FP);
  if (!all) return;
  IRExpr* bad = stem_binop(b, Iop_CmpLT64S, all, stem_number(0));
  stem_add(b, IRStmt_Exit(bad, Ijk_Boring, IRConst_U64(slow | STEM_SLOW), b->in->offsIP));
}

/* --- what an access costs
 * ---------------------------------------------------------------------------------------------------------------- */

/* As unless_private() in instrument.c notes it. */
void stem_frame_access(struct block* b, struct place place, UInt size, Bool write) {
  ULong site = (UInt)b->pc;
  for (UInt part = 0; write && part * 8 < size; part++) {
    Long at = place.offset + part * 8;
    if (size >= 8)
      store(b, b->writers[place.base], -(ULong)(at + 4), stem_number(site << 32 | site));
    else
      store(b, b->writers[place.base], -(ULong)(at & ~3ll), IRExpr_Const(IRConst_U32((UInt)site)));
  }
}

static struct segment* open_segment(struct block* b) {
  struct segment* s = &b->segments[b->segment];
  if (b->open) return s;
  b->open = True;
  b->member = 0;
  store(b, b->cursor, s->start, stem_number(stem_group_head(s->group->number, s->group->size)));
  return s;
}

/* One that ended with an action before the present one. */
void stem_group_due(struct block* b) {
  if (b->pass != FAST || !b->base) return;
  while (b->segment < b->segment_count && b->segments[b->segment].end <= b->action) {
    const struct segment* s = &b->segments[b->segment++];
    if (!s->group) continue;
    UInt end = s->start + s->group->size * sizeof(struct stem_rec);
    IRExpr* runs = of_bin(b, offsetof(struct bin, runs));
    store(b, b->cursor, end, stem_number(0));
    b->visible_done += s->group->access_count;
    store(b, b->base, offsetof(struct bin, countdown),
          stem_binop(b, Iop_Sub64, b->countdown, stem_number(b->visible_done)));
    if (s->group->ids) {
      IRExpr* next = load(b, Ity_I32, runs, offsetof(struct bin_thread, next_id));
      store(b, runs, offsetof(struct bin_thread, next_id),
            stem_binop(b, Iop_Add32, next, IRExpr_Const(IRConst_U32(s->group->ids))));
    }
    store(b, runs, offsetof(struct bin_thread, since_branch), IRExpr_Const(IRConst_U32(!s->group->has_branch)));
    IRExpr* cursor = distance(b, b->cursor, end);
    store(b, b->base, offsetof(struct bin, cursor), cursor);
    stem_add(b, IRStmt_Store(Iend_LE, stem_number((Addr)&bin_hot->cursor), cursor));
    b->open = False;
  }
}

void stem_group_address(struct block* b, IRExpr* addr) {
  const struct segment* s = open_segment(b);
  const struct bin_group_access* a = &s->group->access[b->member];
  if (a->has_address) store(b, b->cursor, s->start + a->told.at_addr, addr);
}

void stem_group_value(struct block* b, IRExpr* value, UInt size) {
  const struct segment* s = open_segment(b);
  store(b, b->cursor, s->start + s->group->access[b->member].told.at_value, value);
  b->member += (size + 7) / 8;
}

void stem_group_branch(struct block* b, IRExpr* taken) {
  const struct segment* s = &b->segments[b->segment];
  if (!s->group) return;
  store(b, b->cursor, s->start + 4, stem_temp(b, IRExpr_Unop(Iop_1Uto8, taken)));
}
