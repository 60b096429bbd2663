// Writes a trace file as a run goes on: tables, expressions and events in the order of the run, in memory that does not
// grow with its length. Every full block is on its way to the disk; whatever happens then, the file is a readable
// prefix.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "trace/column.h"
#include "trace/event.h"
#include "trace/format.h"
#include "trace/group.h"
#include "trace/model.h"
#include "trace/object_store.h"
#include "trace/raw.h"

namespace stem::trace {

// The file could not be written; it was cut back to its last whole block.
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  // Creates or replaces the file. Throws UserError if that is not possible.
  // Without compression a file is larger and can be taken apart by hand, or by a fuzzer.
  Writer(const std::string& path, const Meta& meta, bool compress = true);
  ~Writer();
  Writer(const Writer&) = delete;

  // Tables: each returns the index it got. What an event or expression refers to must have been added before.
  SiteId add_site(const Site& site);
  ThreadId add_thread(const Thread& thread);
  uint32_t add_object(const Object& object);
  uint32_t add_variable(const std::string& name);
  uint32_t add_input(const Input& input);
  uint32_t add_nondet(const Nondet& nondet);
  void add_message(const std::string& message);
  void set_meta(const Meta& meta);    // instead of what was known at the start
  void drop_object(uint32_t object);  // no later event refers to it: a reader may forget it

  ExprId add_expr(const Expr& expr);
  ExprId add_expr(Op op, unsigned width, ExprId a, ExprId b, ExprId c, uint64_t value);  // inline: half of all items are these
  ExprId next_expr() const { return model_.next_expr(); }
  // The expressions of so many rounds of a loop, each of which makes the same nodes out of the result of the one before, the first
  // out of `input`. Gives the last round's result, and the same file as adding them one by one; faster once a round is predicted.
  struct RoundNode {
    Op op;
    uint8_t width;
    uint32_t a, b;  // 0: the constant; 1: what the round began with; 2 + k: the round's node k
    ExprId constant;
  };
  static constexpr size_t kMostRoundNodes = 32;
  ExprId add_rounds(std::span<const RoundNode> nodes, uint32_t result, ExprId input, uint32_t rounds);
  // If event.leaf is next_expr(), the event defines that expression: the Op::Read node of itself. Otherwise leaf is 0
  // or an Op::Read node added before.
  uint64_t add_event(const Event& event);
  uint64_t next_event() const { return events_; }

  // The short way, for an event that is like the last one of its shape in its thread. Whoever adds it the long way may
  // say by what it can be told again without looking anything up: the recorder's own key of its kind, size, flags and
  // site (never 0), and for which addresses object and variable stay the same, as long as *stamp has not changed. Gives
  // the same file as the long way, byte by byte.
  void can_repeat(uint64_t key, uint64_t base, uint64_t first, uint64_t length, const uint64_t* stamp);
  // False: nothing was added, take the long way. Memory: reads and writes of `size` bytes; others have size 0.
  bool repeat(uint64_t key, ThreadId thread, Kind kind, unsigned size, uint64_t addr, uint64_t value, ExprId expr,
              bool leaf);

  // The same for a loop of plain reads and writes (no leaf, no expression), given as a recorder's records: those from `first` on
  // that repeat the `period` records before it, which have all been added by repeat(). Stops where that is no longer so; gives how
  // many were added. Nothing is looked up but memory.
  static constexpr size_t kMostPeriod = 8;
  size_t repeat_loop(const stem_rec* first, size_t available, size_t period);

  // The same for groups of records (trace/raw.h): those from `first` on that are of one number and follow one another, `size` records
  // each, in `available` records. Gives how many were added, how many steps of the one after them, and how many ids all that took.
  struct Groups {
    size_t rows = 0, steps = 0;
    uint32_t ids = 0;
  };
  static constexpr size_t kMostGroupSteps = 64;
  Groups repeat_groups(std::span<const GroupStep> steps, ThreadId thread, const stem_rec* first, size_t available, size_t size);

  void flush();  // ends the block: what was added so far can be read after a kill
  void finish(Outcome outcome, int exit_code);

  uint64_t bytes() const { return bytes_; }
  uint64_t written_events() const { return written_events_; }  // that are in the file
  Shadow& shadow() { return model_.shadow(); }                 // what memory holds, by the events so far
  const ObjectStore& objects() const { return objects_; }

 private:
  struct Encoder;
  struct GroupLane;  // writer_groups.cpp
  struct GroupColumn;
  enum class Overlap;
  static Overlap overlap_of(const GroupColumn& a, const GroupColumn& b, size_t rows);
  size_t group_row(std::span<const GroupStep> steps, GroupLane* lanes, const stem_rec* r, uint32_t& ids);
  bool begin_columns(std::span<const GroupStep> steps, const GroupLane* lanes, GroupColumn* columns);
  static size_t group_addresses(const GroupStep& step, const GroupLane& lane, GroupColumn& c, const stem_rec* first, size_t apart, size_t rows);
  size_t group_reads(std::span<const GroupStep> steps, const GroupColumn* columns, size_t i, GroupLane& lane, const stem_rec* first, size_t apart,
                     size_t rows);
  static size_t group_writes(const GroupColumn* columns, size_t i, const Model::State& s, const stem_rec* first, size_t apart, size_t rows);
  size_t group_columns(std::span<const GroupStep> steps, GroupLane* lanes, const uint32_t* codes, const uint32_t* hashes, const stem_rec* first, size_t size, size_t rows,
                       uint32_t& ids);
  const uint32_t* round_hashes(std::span<const GroupStep> steps, const uint32_t* codes);
  void put_shape(uint32_t predicted, Shape shape, uint8_t& control, uint32_t& code);
  void switch_to(ThreadId thread);
  uint32_t string(const std::string& text);
  void put_control(uint8_t control) {
    if (control == 0xff)
      ++hits_;
    else
      put_miss(control);
  }
  [[noreturn]] static void refuse_expr();
  void put_operand(Model::Operand& operand, ExprId next, ExprId actual, uint8_t hit, uint8_t& control);
  void put_miss(uint8_t control);
  void put(int column, uint64_t value);
  void item_done() {
    if (++items_ >= kBlockItems - 1) flush();
  }
  void write_block(uint32_t type);
  void write_all(const void* data, size_t size);

  std::string path_;
  bool compress_;
  int fd_ = -1;
  uint64_t bytes_ = 0, events_ = 0, block_first_event_ = 0;
  uint64_t written_events_ = 0;
  uint32_t items_ = 0, hits_ = 0;  // hits_: since the last control byte
  uint32_t last_code_ = 0;
  uint32_t sites_ = 1, threads_ = 0, variables_ = 0, nondets_ = 0;
  uint64_t last_base_ = 0;
  uint32_t last_born_ = 0;
  std::vector<Input> inputs_;
  std::vector<uint32_t> drops_;
  std::unordered_map<std::string, uint32_t> strings_;
  std::unordered_map<uint32_t, uint64_t> ordinals_;  // of identities with the same beginning
  ObjectStore objects_;
  Model model_;
  // What repeat() needs to know of the last event of a shape, found by the recorder's key: what comes next is then known without
  // waiting for the model's prediction, which need only be compared. A state of the model knows its last event alone.
  struct Lane {
    uint64_t raw = 0;
    uint64_t first = 0, length = 0, base = 0;
    const uint64_t* stamp_at = nullptr;
    uint64_t stamp = 0;
    uint32_t code = 0, state = 0;
    ThreadId thread = 0;
  };
  static constexpr unsigned kLaneBits = 12;
  static uint32_t lane_index(uint64_t key, ThreadId thread) {
    return static_cast<uint32_t>((key + thread) * 0x9e3779b97f4a7c15ull >> (64 - kLaneBits));
  }
  std::vector<Lane> lanes_ = std::vector<Lane>(1 << kLaneBits);
  std::vector<uint16_t> lane_of_ = std::vector<uint16_t>(Model::kStates);  // of each state, if it has one
  uint32_t op_codes_[64][65] = {};                                          // 1 + shape of an operation and its width
  struct RoundHashes {
    std::vector<uint32_t> codes, hashes;
  };
  std::vector<RoundHashes> round_hashes_ = std::vector<RoundHashes>(64);
  std::unique_ptr<Encoder> encoder_;
};

inline void Writer::can_repeat(uint64_t key, uint64_t base, uint64_t first, uint64_t length, const uint64_t* stamp) {
  const uint32_t index = lane_index(key, model_.thread()), state = model_.state_index(last_code_);
  lane_of_[state] = static_cast<uint16_t>(index);
  lanes_[index] = {key, first, length, base, stamp, *stamp, last_code_, state, model_.thread()};
}

inline bool Writer::repeat(uint64_t key, ThreadId thread, Kind kind, unsigned size, uint64_t addr, uint64_t value,
                           ExprId expr, bool leaf) {
  const Lane& lane = lanes_[lane_index(key, thread)];
  if (lane.raw != key || lane.thread != thread || thread != model_.thread() || addr - lane.first >= lane.length ||
      *lane.stamp_at != lane.stamp)
    return false;
  const uint32_t code = lane.code, index = lane.state;
  Model::State& s = model_.state_at(index);
  uint8_t control = 0xff;
  if (kind == Kind::Read) {
    Shadow::Seen seen = model_.shadow().get(addr, size);
    if (seen.value != value || seen.known != (1u << size) - 1) return false;
    s.failures = 0;
  } else {
    uint64_t predicted = model_.predict_value(s, kind, size, addr, expr);
    if (value != predicted) {
      control &= static_cast<uint8_t>(~kHitValue);
      put(kValue, zigzag(value - predicted));
      if (kind == Kind::Write && expr == 0) model_.learn_formula(s, size, value);
    } else {
      s.failures = 0;
    }
    if (kind == Kind::Write) model_.shadow().set(addr, size, value);
  }
  const bool predicted_shape = model_.predicted_shape() == code;
  if (!predicted_shape) {
    control &= static_cast<uint8_t>(~kHitShape);
    put(kShape, code);
  }
  const uint64_t offset = addr - lane.base, moved = offset - s.offset;
  if (moved != s.stride) {
    control &= static_cast<uint8_t>(~kHitOffset);
    put(kOffset, zigzag(moved));
    s.stride = moved;
  }
  s.offset = offset;
  const uint32_t distance = expr ? model_.next_expr() - expr : 0;
  if (distance != s.expr) {
    control &= static_cast<uint8_t>(~kHitExpr);
    put(kExprs, distance);
    s.expr = distance;
  }
  s.value_stride = value - s.value;
  s.value = value;
  put_control(control);
  if (kind == Kind::Read) model_.note_read(index);
  if (leaf) model_.add_leaf(8u * size, value);
  if (predicted_shape) model_.followed_as_predicted(code);
  else model_.followed_by(code);
  ++events_;
  item_done();
  return true;
}

inline void Writer::put_operand(Model::Operand& operand, ExprId next, ExprId actual, uint8_t hit, uint8_t& control) {
  if (operand.guess(next) != actual) {
    control &= static_cast<uint8_t>(~hit);
    put(kExprs, actual ? next - actual : 0);
    operand.learn(next, actual);
  } else {
    operand.confirm(next, actual);
  }
}

inline ExprId Writer::add_expr(Op op, unsigned width, ExprId a, ExprId b, ExprId c, uint64_t given) {
  const ExprId next = model_.next_expr();
  if (width - 1 >= 64 || a >= next || b >= next || c >= next || next == UINT32_MAX) refuse_expr();
  if (op == Op::Input && (given >> 32) >= inputs_.size()) refuse_expr();
  uint8_t control = 0xff;
  uint32_t& known = op_codes_[static_cast<unsigned>(op) & 63][width];
  uint32_t code = known - 1;
  const uint32_t guess = model_.predicted_shape();
  const bool predicted = guess == code;
  if (!predicted) {
    put_shape(guess, Shape::of(op, width), control, code);
    known = code + 1;
  }
  Model::Template& t = model_.current_template(code);
  put_operand(t.operand[0], next, a, kHitA, control);
  put_operand(t.operand[1], next, b, kHitB, control);
  put_operand(t.operand[2], next, c, kHitC, control);
  const uint64_t value = op == Op::Read ? given - events_ : given;
  if (t.value != value) {
    control &= static_cast<uint8_t>(~kHitValue);
    put(kConstant, zigzag(value - t.value));
    t.value = value;
  }
  put_control(control);
  model_.add_expr(op, width, a, b, c, given);
  if (predicted) model_.followed_as_predicted(code);
  else model_.followed_by(code);
  item_done();
  return next;
}

// A whole trace; written beside `path` and renamed, so that a failure leaves what was there. Throws UserError if the
// trace refers to what is not in its tables.
void save(const Trace& trace, const std::string& path, bool compress = true);

}  // namespace stem::trace
