// What the writer and the reader of a trace file both know: a model of the program that predicts the next item of the
// trace. The writer stores only where the prediction was wrong; the reader makes the same predictions. A loop that has
// gone round once costs next to nothing.
//
// An item is an event, an expression or a switch of thread. What is static about it (site, kind, size, flags; operation
// and width) is its *shape*, a number given at first sight. Predicted are
//   shape      what followed the thread's last three shapes the last time
//   object, offset, value, value2, variable   from the last item of that shape in that thread, with strides
//   value of a read             what memory holds (Shadow)
//   value written or decided    what its expression evaluates to, if its operands are recent; floating-point numbers
//   have no
//                               expressions here: for them a formula over the thread's last reads, found by trying
//   operands                    what they were the last time in this context, relative or absolute
#pragma once

#include <unordered_map>
#include <vector>

#include "trace/eval.h"
#include "trace/event.h"
#include "trace/shadow.h"

namespace stem::trace {

// What is fixed about an item, packed.
struct Shape {
  uint64_t key = 0;

  enum Type : uint64_t { kEvent, kExpr, kSwitch };
  enum Leaf : uint64_t { kNoLeaf, kOwnLeaf, kOtherLeaf };  // kOwnLeaf: the event defines the next expression

  static Shape of(const Event& e, Leaf leaf) {
    return {e.site | static_cast<uint64_t>(e.flags) << 32 | static_cast<uint64_t>(e.kind) << 48 |
            static_cast<uint64_t>(e.size) << 56 | leaf << 60 | kEvent << 62};
  }
  static Shape of(Op op, unsigned width) {
    return {static_cast<uint64_t>(op) | static_cast<uint64_t>(width) << 8 | kExpr << 62};
  }
  static Shape of_switch(ThreadId thread) { return {thread | kSwitch << 62}; }

  Type type() const { return static_cast<Type>(key >> 62); }
  Leaf leaf() const { return static_cast<Leaf>(key >> 60 & 3); }
  SiteId site() const { return static_cast<SiteId>(key); }
  ThreadId thread() const { return static_cast<ThreadId>(key); }
  uint16_t flags() const { return static_cast<uint16_t>(key >> 32); }
  unsigned kind() const { return key >> 48 & 0xff; }
  uint8_t size() const { return key >> 56 & 0xf; }
  unsigned op() const { return key & 0xff; }
  uint8_t width() const { return key >> 8 & 0xff; }
};

// Bits of an item's control byte: 1 where the prediction was right.
enum Hit : uint8_t {
  kHitShape = 1 << 0,
  kHitObject = 1 << 1,
  kHitOffset = 1 << 2,
  kHitValue = 1 << 3,
  kHitValue2 = 1 << 4,
  kHitExpr = 1 << 5,
  kHitLeaf = 1 << 6,
  kHitVariable = 1 << 7,
  kHitA = kHitObject,  // expressions
  kHitB = kHitOffset,
  kHitC = kHitValue2,
};

class Model {
 public:
  static constexpr unsigned kStates = 1 << 14, kContexts = 1 << 14, kRecent = 1 << 12, kReads = 8;

  // The last item of a shape in a thread.
  struct State {
    uint64_t offset = 0, stride = 0;
    uint64_t value = 0, value_stride = 0;
    uint64_t value2 = 0;  // minus value
    uint32_t object = 0;  // 1 + id; 0 none
    uint32_t expr = 0;    // next id minus expr; 0 none
    uint32_t leaf = 0;
    uint32_t variable = 0;    // 1 + id; 0 none
    uint8_t formula = 0;      // Write: how its value came from what was read, see model.cpp; 0: not known
    uint8_t failures = 0;     // of the formula, or of the search for one, in a row
    bool listed = false;      // is among its thread's last reads
    uint16_t source[3] = {};  // states of the reads it takes
  };
  struct Operand {
    uint32_t relative = 0, absolute = 0;  // relative: 0 none, else next id minus operand
    bool by_absolute = false;
    ExprId guess(ExprId next) const {
      return by_absolute ? absolute : relative && relative <= next ? next - relative : 0;
    }
    void confirm(ExprId next, ExprId actual) {
      absolute = actual;
      relative = actual ? next - actual : 0;
    }
    void learn(ExprId next, ExprId actual) {
      if (guess(next) != actual) by_absolute = actual != 0 && actual == absolute;
      absolute = actual;
      relative = actual ? next - actual : 0;
    }
  };
  struct Template {
    Operand operand[3];
    uint64_t value = 0;
  };
  struct Context {  // of one thread: its last shapes
    uint32_t last[3] = {};
    uint16_t reads[kReads] = {};  // states of its last reads, all different; the one that came first goes first
    uint32_t read_count = 0;
    uint32_t hash = 0;
    void push(uint32_t shape) {
      last[2] = last[1], last[1] = last[0], last[0] = shape;
      hash = (last[0] * 0x9e3779b1u ^ (last[1] * 0x85ebca6bu + last[2]) * 0xc2b2ae35u) >> 18;
      static_assert(kContexts == 1 << 14);
    }
    bool same_shapes(const Context& other) const {
      return last[0] == other.last[0] && last[1] == other.last[1] && last[2] == other.last[2];
    }
  };

  Model() : states_(kStates), successors_(kContexts), templates_(kContexts), recent_(kRecent), contexts_(1) {}

  // --- shapes
  uint32_t shape_count() const { return static_cast<uint32_t>(shapes_.size()); }
  Shape shape(uint32_t code) const { return shapes_[code]; }
  uint32_t find_shape(Shape shape) const {
    auto found = codes_.find(shape.key);
    return found == codes_.end() ? shape_count() : found->second;
  }
  uint32_t add_shape(Shape shape) {
    codes_.emplace(shape.key, shape_count());
    shapes_.push_back(shape);
    return shape_count() - 1;
  }
  // May be shape_count(): no prediction.
  uint32_t predicted_shape() const {
    uint32_t code = successors_[context_->hash];
    return code ? code - 1 : shape_count();
  }
  Template& current_template(uint32_t code) {
    return templates_[(context_->hash ^ code * 0x9e3779b1u) & (kContexts - 1)];
  }
  const Context& context() const { return *context_; }
  // Is what comes next predicted to be these shapes, over and over?
  bool predicts_round(const uint32_t* codes, size_t period) const {
    Context at = *context_;
    for (size_t i = 0; i < period + 3; ++i) {  // from the fourth on the context holds nothing older
      if (successors_[at.hash] != codes[i % period] + 1) return false;
      at.push(codes[i % period]);
    }
    return true;
  }
  // The same where the hashes are known, and where a few are not, `misses` of them: predicted is what follows once they have been met (and followed_by() was called).
  // Gives their numbers, counted from what comes next.
  static constexpr size_t kMostMisses = 4;
  bool predicts_round(const uint32_t* codes, const uint32_t* hashes, size_t period, size_t* at, size_t& misses) const {
    Context now = *context_;
    uint32_t met[kMostMisses];
    misses = 0;
    for (size_t number = 0, i = 0, left = period + 3; left; --left, ++number) {
      const uint32_t code = codes[i] + 1, hash = number < 3 ? now.hash : hashes[i];
      if (number < 3) now.push(codes[i]);
      if (++i == period) i = 0;
      uint32_t predicted = successors_[hash];
      for (size_t k = 0; k < misses; ++k)
        if (met[k] == hash) predicted = codes[at[k] % period] + 1;
      if (predicted == code) [[likely]] continue;
      if (misses == kMostMisses) return false;
      for (size_t k = 0; k < misses; ++k)
        if (met[k] == hash) return false;
      met[misses] = hash;
      at[misses++] = number;
      left = period + 4;  // from here on once more
    }
    return true;
  }
  // The hashes of the contexts in which shapes come that come over and over.
  static void round_hashes(const uint32_t* codes, size_t period, uint32_t* hashes) {
    Context now;
    for (size_t i = 0; i < period + 3; ++i) {
      if (i >= 3) hashes[i % period] = now.hash;
      now.push(codes[i % period]);
    }
  }
  void learn_successors(const uint32_t* codes, const uint32_t* hashes, size_t period, const size_t* at, size_t misses) {
    Context now = *context_;
    for (size_t i = 0, k = 0; k < misses && i < 3; ++i) {
      if (at[k] == i) successors_[now.hash] = codes[i % period] + 1, ++k;
      now.push(codes[i % period]);
    }
    for (size_t k = 0; k < misses; ++k)
      if (at[k] >= 3) successors_[hashes[at[k] % period]] = codes[at[k] % period] + 1;
  }
  void followed_by(uint32_t code) {
    successors_[context_->hash] = code + 1;
    context_->push(code);
  }
  void followed_as_predicted(uint32_t code) { context_->push(code); }

  // --- threads
  ThreadId thread() const { return thread_; }
  void switch_to(ThreadId thread) {
    if (thread >= contexts_.size()) contexts_.resize(thread + 1);
    thread_ = thread;
    context_ = &contexts_[thread];
  }

  void note_read(uint32_t index) {
    if (states_[index].listed) return;
    uint16_t& place = context_->reads[context_->read_count++ % kReads];
    states_[place].listed = false;
    states_[index].listed = true;
    place = static_cast<uint16_t>(index);
  }
  // After a write that was predicted wrongly and has no expression: looks for a formula.
  void learn_formula(State& state, unsigned size, uint64_t value);

  uint32_t state_index(uint32_t code) const {
    return (code * 0x9e3779b1u + thread_ * 0x85ebca6bu) >> 18 & (kStates - 1);
  }
  State& state_at(uint32_t index) { return states_[index]; }
  State& state(uint32_t code) { return states_[state_index(code)]; }

  // --- expressions: the values of the last kRecent ones, where known
  ExprId next_expr() const { return next_expr_; }
  void add_expr(Op op, unsigned width, ExprId a, ExprId b, ExprId c, uint64_t given) {
    const Recent& x = recent_[a & (kRecent - 1)];
    const Recent& y = recent_[b & (kRecent - 1)];
    const bool known = (a == 0 || (x.known && next_expr_ - a <= kRecent)) && (b == 0 || (y.known && next_expr_ - b <= kRecent));
    if (c == 0 && op >= Op::Add && op != Op::Opaque) [[likely]] {
      push_recent(width, known ? apply(op, width, a ? x.value : 0, b ? y.value : 0, 0, a ? x.width : 0, b ? y.width : 0, given) : 0, known);
    } else if (op == Op::Const) {
      push_recent(width, given & width_mask(width), true);
    } else {
      add_rare_expr(op, width, a, b, c, given);
    }
  }
  void add_value(unsigned width, uint64_t value, bool known) { push_recent(width, value, known); }  // of whatever expression
  // So many leaves, one after the other in turn from each of `kinds` columns of values.
  template <typename Load>
  void add_leaves(size_t rows, size_t kinds, const unsigned* widths, Load load) {
    for (size_t row = 0; row < rows; ++row)
      for (size_t k = 0; k < kinds; ++k) push_recent(widths[k], load(row, k), true);
  }
  void add_leaf(unsigned width, uint64_t value) { push_recent(width, value, true); }
  // Gives the value of an expression if it is recent and known.
  bool recent(ExprId id, uint64_t& value) const {
    if (id == 0 || next_expr_ - id > kRecent || id >= next_expr_) return false;
    const Recent& r = recent_[id & (kRecent - 1)];
    value = r.value;
    return r.known;
  }

  // --- values
  uint64_t predict_value(const State& state, Kind kind, unsigned size, uint64_t addr, ExprId expr) {
    uint64_t value;
    if ((kind == Kind::Read || kind == Kind::Rmw) && size) return shadow_.get(addr, size).value;
    if (expr && kind != Kind::Rmw && recent(expr, value)) return value;
    if (state.formula && kind == Kind::Write && by_formula(state, size, value)) return value;
    return state.value + state.value_stride;
  }
  // What a formula (State::formula) makes of three numbers; false: nothing that can be predicted.
  static bool calculate(unsigned formula, unsigned size, const uint64_t* from, uint64_t& value);
  // The same over many rows: numbers stand so far apart. Gives how many rows, from the first on, have the wanted value.
  struct Numbers {
    const char* at;
    size_t apart;
  };
  static size_t calculate_rows(unsigned formula, unsigned size, const Numbers* from, Numbers wanted, size_t rows);
  // After an event: what memory holds now.
  void remember(const Event& e) {
    if ((e.kind == Kind::Write || e.kind == Kind::Read || e.kind == Kind::External) && e.size) {
      shadow_.set(e.addr, e.size, e.value);
    } else if (e.kind == Kind::Rmw && e.size) {
      shadow_.set(e.addr, e.size, e.value2);
    } else if (e.kind == Kind::Alloc) {
      shadow_.forget(e.addr, e.value, e.flags & kZeroed);
    }
  }
  Shadow& shadow() { return shadow_; }
  const std::vector<Input>* inputs = nullptr;  // for the values of Op::Input

 private:
  struct Recent {
    uint64_t value = 0;
    uint8_t width = 0;
    bool known = false;
  };
  void add_rare_expr(Op op, unsigned width, ExprId a, ExprId b, ExprId c, uint64_t given);
  bool by_formula(const State& state, unsigned size, uint64_t& value) const;

  void push_recent(unsigned width, uint64_t value, bool known) {
    recent_[next_expr_ & (kRecent - 1)] = {value, static_cast<uint8_t>(width), known};
    ++next_expr_;
  }

  std::vector<Shape> shapes_;
  std::unordered_map<uint64_t, uint32_t> codes_;
  std::vector<State> states_;
  std::vector<uint32_t> successors_;  // 1 + shape
  std::vector<Template> templates_;
  std::vector<Recent> recent_;
  std::vector<Context> contexts_;
  Context* context_ = contexts_.data();
  ThreadId thread_ = 0;
  ExprId next_expr_ = 1;
  Shadow shadow_{16384};
};

}  // namespace stem::trace
