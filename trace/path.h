// A stretch of one thread's records that comes round again and again, as a loop makes them.
//
// Writing an item asks several tables: which shape is predicted here, what the last such event was, which operands such
// an expression had. In a loop the answers are the same in every round, so a path keeps them: while records come as
// they came in the round before, each is compared with its step, and only what it says anew (address, value, operands)
// is looked at. The file is the same as without, byte by byte; an item costs a third.
//
// Where many rounds lie ahead they are taken at once, step by step instead of round by round (writer_columns.cpp).
//
// Whatever is not as before ends the run: the record is written the ordinary way. Any event written that way, and any
// change of a prediction, may change the answers: they are then looked up again when the path is next entered.
#pragma once

#include <vector>

#include "trace/model.h"
#include "trace/raw.h"

namespace stem::trace {

struct Path {
  static constexpr size_t kMostSteps = 64;
  static constexpr uint16_t kNoStep = 0xffff;

  struct Step {
    enum What : uint8_t { kRead, kWrite, kOther, kExpr, kRounds };
    What what = kOther;
    // What was learned: how the record looks.
    uint8_t size = 0;
    uint64_t mask = 0;  // of so many bytes
    bool leaf = false;
    bool fixed = false;  // kOther: the record's `expr` is part of its kind
    uint64_t key = 0;    // of an event: what can_repeat() was told
    uint64_t head = 0;   // of an event kind and aux, of an expression all of it
    uint32_t site = 0, expr = 0;
    // An expression: its constant operand (0 none, 1 the first, 2 the second), and whether that is a new one in every
    // round.
    uint8_t constant = 0, constant_width = 0;
    bool fresh = false;
    uint64_t constant_value = 0;
    bool binary = false;
    Op op{};
    uint8_t width = 0;
    // kRounds: which of the writer's, and how many.
    uint32_t round = 0, rounds = 0;
    // Its shape; that of the new constant before it.
    uint32_t code = 0, constant_code = 0;
    // What was looked up. The context that predicts it is that of the three items before it in the path.
    uint32_t hash = 0, constant_hash = 0;
    bool predicted = false, constant_predicted = false;
    uint32_t state = 0;
    uint64_t first = 0, length = 0, base = 0;
    Model::Template *operands = nullptr, *constant_operands = nullptr;
    // Where it stands in a round: its item, its expression among the recorder's and among the file's (from 0). kRounds:
    // the first of its expressions; `result`: the one that others use, and how wide that is.
    uint32_t item = 0, local = 0, global = 0, result = 0;
    uint8_t result_width = 0;
  };

  ThreadId thread = kNone;
  uint64_t key = 0;  // of its first record
  std::vector<Step> steps;
  size_t at = 0;                           // the step that comes next
  uint64_t events_added = 0, changes = 0;  // how many there had been when the answers were looked up
  uint64_t contexts = 0;                   // which contexts predict its items: a bit for each hash modulo 64
  unsigned failures = 0;
  // Of one round. by_local: the step that makes the recorder's expression, if others can use that.
  uint32_t items = 0, events = 0, locals = 0, globals = 0;
  std::vector<uint16_t> by_local, fresh;  // fresh: the steps that are
  std::vector<std::pair<uint32_t, uint32_t>>
      runs;                                 // of consecutive expressions that the recorder counts: from where, how many
  bool columns = false;                     // whole rounds can be taken at once (writer_columns.cpp),
  bool events_lead = false;                 // from its first record on
  unsigned refusals = 0, columns_wait = 0;  // of the last tries; rounds until the next
};

}  // namespace stem::trace
