/* A block under translation: what instrument.c and groups.c share. */
#ifndef STEM_TRACER_VALGRIND_BLOCK_H
#define STEM_TRACER_VALGRIND_BLOCK_H

#include "tracer/valgrind/tool.h"

/* A block is gone through twice: to see what it does (PLAN), then to translate it. SLOW: every access calls a helper.
 */
enum pass { PLAN, FAST, SLOW };

enum action_kind {
  ACT_INSTRUCTION,
  ACT_FRAME,  /* an access of the frame: private, as long as nothing of the frame is known to others */
  ACT_ACCESS, /* any other */
  ACT_FLAGS,
  ACT_BRANCH,
  ACT_OTHER, /* something that is not part of a group */
};

enum { BASE_NONE, BASE_SP, BASE_FP, BASES };

struct place { /* relative to what the stack or the frame pointer was when the block was entered */
  UChar base;
  Long offset;
};

struct action {
  enum action_kind kind;
  Addr pc;
  UInt size, flags;
  Bool write, known; /* known: its place, for a frame; its type, for an access */
  Bool constant;
  ULong address; /* if constant */
  struct place place;
};

#define MAX_ACTIONS 256
#define MAX_SEGMENTS 8

/* The actions that one group records: those before `end`, after the segment before it. */
struct segment {
  const struct bin_group* group; /* NULL: there is nothing to record */
  Int end;
  UInt start; /* where its record begins, after the block's first */
};

struct block {
  IRSB *in, *out;
  UChar* kind; /* of each temporary */
  UChar* escaped;
  struct place* place;
  struct place registers[BASES];
  Addr pc, next; /* the present instruction and the one after it */
  struct module* module;
  Bool seen, startup;
  IRCAS* cas;                    /* of the present instruction */
  Bool exchange;                 /* and it works with whatever was there */
  Int index;                     /* of the present statement */
  Bool flags_known, flags_noted; /* the flags were written in this block; stem_help_flags was called since */

  enum pass pass;
  Bool escapes; /* an address of the stack gets out */
  struct action actions[MAX_ACTIONS];
  Int action_count, action; /* action: the next one */

  /* groups.c */
  Int fast_end; /* actions before this one call no helper */
  struct segment segments[MAX_SEGMENTS];
  Int segment_count, segment;
  UInt member; /* of the segment's group: the next access */
  Bool open;   /* the segment's record has been begun */
  UInt visible, visible_done;
  IRExpr *base, *cursor, *countdown, *writers[BASES];
};

/* --- instrument.c: making statements --- */
void stem_add(struct block* b, IRStmt* st);
IRExpr* stem_temp(struct block* b, IRExpr* e);
IRExpr* stem_binop(struct block* b, IROp op, IRExpr* x, IRExpr* y);
IRExpr* stem_number(ULong n);

/* --- groups.c --- */
void stem_note_reads(Addr entry, const IRSB* in); /* of the slow translation */
Bool stem_has_all_reads(Addr entry, const IRSB* in);
void stem_plan_action(struct block* b, const struct action* a);
void stem_plan_groups(struct block* b); /* after PLAN */
Bool stem_is_fast(struct block* b);     /* the next action, which this counts */
void stem_enter(struct block* b, Addr slow);
void stem_frame_access(struct block* b, struct place place, UInt size, Bool write);
void stem_group_address(struct block* b, IRExpr* addr);           /* before the access */
void stem_group_value(struct block* b, IRExpr* value, UInt size); /* after it, or before a write */
void stem_group_branch(struct block* b, IRExpr* taken);
void stem_group_due(struct block* b); /* after each statement */

#endif
