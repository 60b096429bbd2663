// The order-graph engine: decides event pairs within a window without a solver.
//
// A query (w, r) is a set of facts: these events execute (*required*, per thread a prefix), this read takes that write (a
// *flow*), this event comes before that one (order.h). Saturation (saturate.cpp, flows.cpp) adds what follows from them in
// every execution, until nothing does or a contradiction refutes the query. Linearisation (linearise.cpp) then executes the
// required events greedily in recorded order under the facts; if it arrives, that is a witness. If it gets stuck, the
// choice that blocked it becomes a decision of the search (search.cpp), which jumps back over decisions that a
// contradiction does not rest on.
//
// Only reads whose value matters are bound to a write: those that a required branch or pin depends on (*live*), directly
// or through the writes they take their values from. All other reads may take anything, as in the real program.
//
// Exact in what it says: Feasible comes with an execution, Infeasible with a contradiction that rests on no heuristic. Where
// it cannot be exact (inputs that would have to change, counts of semaphores at a failed attempt) it says Undecided.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "encoder/encoder.h"
#include "predictor/machine.h"
#include "predictor/model.h"
#include "predictor/order.h"
#include "util/lazy_array.h"

namespace stem::predictor {

class Engine {
 public:
  enum class Result : uint8_t { Feasible, Infeasible, Undecided };

  Engine(const Model& model, encoder::Meaning meaning, uint32_t decisions = 2000);

  // Takes up the events [first, last); what came before has executed as recorded.
  void open(uint32_t first, uint32_t last);
  const Window& window() const { return *window_; }

  enum class Reach : uint8_t { Yes, No, Maybe };
  // Everything from here to `leave` is about read r. No: it cannot be reached in any execution.
  Reach aim(uint32_t r);
  void leave();
  // Adds that w executes (before r). No: it cannot, nor can any later event of its thread. Undone by `retreat`.
  Reach reach(uint32_t w);
  void retreat();
  // Can r take the atom from w (kFromStart: what was there when the window began)? After aim; reach(w) helps.
  Result decide(uint32_t w, uint32_t atom);

  // The search gives up (Undecided) after so many decisions, or at that time.
  void set_decisions(uint32_t limit) { limit_ = limit; }
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  // After aim (and reach): how many events of each thread must execute, from the thread's first.
  std::vector<uint32_t> cone() const;

  // After Feasible: the witness' events, from the program's start.
  std::vector<uint32_t> schedule() const;
  // How it was decided last: 0 saturation alone, otherwise the number of decisions.
  uint32_t decisions() const { return used_; }
  Machine& machine() { return machine_; }

 private:
  static constexpr uint32_t kUnbound = trace::kNone - 1;
  static constexpr Reasons kAll = ~Reasons{0};

  struct Flow {  // a read that takes an atom from a write
    uint32_t writer, read, atom;
    Reasons why;
  };
  struct Support {  // what an expression depends on
    std::vector<uint32_t> reads;  // in the window
    bool inputs = false;
  };
  struct Wakeup {
    uint32_t signal, wake;
  };
  struct Mark {
    size_t order, flags, slots, flows, live, constraints, sections, choices, waits, releases, wakeups, required;
    bool assumed;
  };
  struct Alternative {
    enum class Kind : uint8_t { Bind, Edge, Choice } kind;
    uint32_t a = 0, b = 0;  // Bind: read, writer; Edge: from, to; Choice: index of the choice, what is chosen
    unsigned k = 0;         // Bind: which atom of the read
  };
  struct Known {
    uint64_t bits = 0;
    bool known = false;
    bool inputs = false;  // it depends on them
  };
  struct Determined {  // a write's value, while one constraint is checked
    uint64_t check = 0;
    Reasons why = 0;
    std::optional<Known> value;
  };
  struct ValueKey {
    uint32_t constraint;
    uint64_t value;
    bool operator==(const ValueKey&) const = default;
  };
  struct ValueKeyHash {
    size_t operator()(const ValueKey& k) const { return (k.value + k.constraint) * 0x9e3779b97f4a7c15ull; }
  };

  // --- facts, with undo
  void push();
  void pop();
  bool fail(Reasons why) {
    conflict_ = why;
    return false;
  }
  bool add_edge(uint32_t a, uint32_t b, Reasons why) { return order_->add(a, b, why) || fail(order_->conflict()); }
  void set_flag(uint8_t& flag, uint8_t value) {
    flags_trail_.emplace_back(&flag, flag);
    flag = value;
  }
  bool require(uint32_t thread, int32_t count, Reasons why);
  bool require_event(uint32_t event, Reasons why) { return require(window_->thread(event), window_->at(event) + 1, why); }
  bool is_required(uint32_t event) const { return window_->at(event) < required_[window_->thread(event)]; }
  Reasons why_required(uint32_t event) const;
  bool activate(uint32_t event);
  bool bind(uint32_t read, unsigned k, uint32_t writer, Reasons why);
  void make_live(uint32_t read);

  // --- saturation (saturate.cpp, flows.cpp)
  bool saturate();
  bool close_required();
  bool saturate_flow(const Flow& flow);
  bool saturate_section(uint32_t section);
  bool saturate_semaphore(uint32_t wait);
  bool saturate_release(uint32_t release);
  bool saturate_choice(size_t index);
  bool saturate_read(uint32_t read);
  bool check_constraint(size_t index);
  uint64_t version() const { return order_->version() + changes_; }

  // --- reads and values (flows.cpp)
  Reasons candidates(uint32_t read, unsigned k, size_t enough, std::vector<uint32_t>& writers);
  bool value_allowed(uint32_t read, unsigned k, uint32_t writer, Reasons& why);
  const Support& support(trace::ExprId id);
  uint32_t slot(uint32_t read, unsigned k) const { return model_.sources_at[read] + k - first_slot_; }
  uint32_t recorded_source(uint32_t read, unsigned k) const;
  std::optional<Known> value_of_read(uint32_t read, Reasons& why);   // nothing: not determined yet
  std::optional<Known> value_of_atom(uint32_t writer, uint32_t atom, Reasons& why);
  std::optional<Known> value_of(trace::ExprId id, Reasons& why);
  Known evaluate(trace::ExprId id);                                  // over the leaf values in leaf_
  uint32_t unbound_below(trace::ExprId id);                          // an unbound read that the expression rests on; kNoEvent

  // --- choices of synchronisation: who woke it, who held it (choices.cpp)
  void alternatives(size_t choice, std::vector<uint32_t>& out);
  bool choose(size_t choice, uint32_t what, Reasons why);
  bool settled(size_t choice);

  // --- linearisation and search
  bool linearise();
  bool ready(uint32_t event) const;
  bool blocked_by_flow(uint32_t write) const;
  void started(uint32_t event);
  bool pick(std::vector<Alternative>& out, Reasons& why);
  bool pick_binding(uint32_t constraint, std::vector<Alternative>& out, Reasons& why);
  bool pick_section(uint32_t acquire, std::vector<Alternative>& out, Reasons& why);
  bool pick_write(uint32_t write, std::vector<Alternative>& out, Reasons& why);
  bool apply(const Alternative& alternative, Reasons why);
  Result search(unsigned level);
  Reach extend(uint32_t event);

  const Model& model_;
  const encoder::Meaning meaning_;
  uint32_t limit_;
  Machine machine_;
  std::unique_ptr<Window> window_;
  std::unique_ptr<Order> order_;

  uint32_t target_ = kNoEvent;          // PREFIX: the read that ends the execution
  uint32_t aimed_ = kNoEvent;           // the read that is asked about
  bool possible_ = true;                // FULL: the window can execute at all
  bool assumed_ = false;                // a fact was added that need not hold in every execution
  uint32_t first_slot_ = 0;
  Reasons conflict_ = 0;
  bool inexact_ = false;                // some branch of the search was given up for a reason that proves nothing
  uint32_t used_ = 0;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  uint64_t changes_ = 0;

  std::vector<int32_t> required_, activated_;                     // by thread: how many in the window
  std::vector<std::vector<std::pair<int32_t, Reasons>>> why_required_;
  struct RequiredChange {
    uint32_t thread;
    int32_t required, activated;
  };
  std::vector<RequiredChange> required_trail_;
  std::vector<std::pair<uint8_t*, uint8_t>> flags_trail_;
  std::vector<uint32_t> bound_;                                   // slot -> writer or kUnbound
  std::vector<Reasons> bound_why_;
  std::vector<uint32_t> slots_trail_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> live_reads_, constraints_, sections_, choices_, waits_, releases_;
  std::vector<uint8_t> live_, verified_, chosen_;                 // by event of the window
  std::vector<Wakeup> wakeups_;
  std::vector<Mark> marks_;

  // Window tables.
  std::unordered_map<trace::ExprId, Support> supports_;
  std::vector<std::vector<uint32_t>> unary_;                      // read of the window -> constraints on it alone
  std::unordered_map<ValueKey, uint8_t, ValueKeyHash> allowed_;                 // (constraint, value) -> holds
  std::vector<uint32_t> release_index_;                           // Free event of the window -> its release

  // Scratch of evaluation.
  LazyArray<uint32_t> memo_stamp_;                                // by expression
  LazyArray<Known> memo_;
  std::vector<uint32_t> leaf_stamp_;
  std::vector<Known> leaf_;
  std::vector<Determined> determined_;                            // by write of the window
  uint64_t check_ = 0;
  std::vector<trace::ExprId> stack_;
  uint32_t stamp_ = 0;
  std::vector<uint32_t> scratch_;

  // Scratch of linearisation.
  std::vector<uint32_t> open_stamp_, open_count_;                 // by atom
  std::vector<int32_t> flow_head_, flow_next_;                    // writer's flows
  uint32_t run_ = 0;
  uint32_t violated_ = kNoEvent;                                  // the constraint (or read) a thread cannot pass
  std::vector<uint32_t> stuck_;                                   // next events of the threads that could not go on
};

}  // namespace stem::predictor
