// What all constraint families share: the scope, one position per event, what is ordered for certain, the meaning.
//
// Positions are integers o_e. Under PREFIX, `cut` is the position of the read r that is asked for, and an event executes if
// o_e < cut: a constraint that binds e only when it executes is "constraint or cut <= o_e", which no Boolean has to say.
// Ties are harmless: everything that must be apart is asked to be strictly apart.
//
// Events without any effect on order or memory (branches, pins, inputs, inner levels of a recursive lock, yields) get no
// position: they execute right before the next event of their thread that has one, their anchor. The last event of a
// thread always has one, because a join waits for it; and so has the branch that is asked about (target).
//
// Events before the scope's `first` have executed: their positions are negative constants, those of the scope are not. Only
// those that still matter are among the events (start.h).
//
// Internal to encoder/: this header and the files that include it are the only ones that know Z3.
#pragma once

#include <z3++.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "encoder/encoder.h"
#include "encoder/start.h"
#include "trace/event.h"

namespace stem::encoder {

using trace::Event;
using trace::Kind;

inline bool reads(const Event& e) { return e.kind == Kind::Read || e.kind == Kind::Rmw; }
inline bool writes(const Event& e) { return e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External; }
inline bool binds(const Event& e) { return e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert; }
inline Place place(const Event& e) { return {e.object, e.addr}; }

class Formula {
 public:
  Formula(const Index& index, const Options& options, const Scope& scope);

  const Index& index;
  const trace::Trace& trace;
  const Options& options;
  const bool prefix;                           // PREFIX, else FULL
  z3::context z3;
  const uint32_t first;                        // what comes before it has executed
  const Start start;                           // and left this
  std::vector<uint32_t> events;                // of the scope, as recorded; in front what start carries over
  std::vector<std::vector<uint32_t>> threads;  // the same, by thread
  const uint32_t target;                       // the branch that is asked about, or kNone
  z3::expr cut;                                // PREFIX: o_r

  const Event& event(uint32_t e) const { return trace.events[e]; }
  bool in_scope(uint32_t e) const { return nodes_.count(e); }
  bool past(uint32_t e) const { return e < first; }
  uint32_t anchor(uint32_t e) const { return nodes_.at(e).anchor; }
  bool has_position(uint32_t e) const { return anchor(e) == e; }
  std::vector<uint32_t> all_of(std::initializer_list<Kind> kinds) const;
  std::map<Place, std::vector<uint32_t>> by_place(std::initializer_list<Kind> kinds) const;

  // --- order. Certain edges first, then close(), then everything else.
  void always_before(uint32_t a, uint32_t b);
  void close();
  bool must_before(uint32_t a, uint32_t b) const;  // follows from certain edges
  z3::expr position(uint32_t e);                   // of e's anchor
  z3::expr before(uint32_t a, uint32_t b);         // o_a < o_b; a constant where that is certain

  // --- constraints
  void require(const z3::expr& constraint) { constraints.push_back(constraint); }
  z3::expr not_executed(uint32_t e);  // PREFIX: it does not come before r
  void require_if_executed(uint32_t e, const z3::expr& constraint);
  // Building a formula can take long, too, and all of the memory: set, it is left as it is, and no question asked.
  std::string given_up;
  bool late();
  z3::expr any(const std::vector<z3::expr>& options);
  z3::expr all(const std::vector<z3::expr>& parts);
  std::vector<z3::expr> constraints;

 private:
  struct Node {
    uint32_t anchor = 0;
    uint32_t ordinal = 0;         // its number in its thread's events of the scope, from 1
    bool closed = false;
    std::vector<uint32_t> edges;  // those always before it
    std::vector<uint32_t> clock;  // by thread: how many of its events are certainly before or at this one
    std::optional<z3::expr> position;
  };
  std::unordered_map<uint32_t, Node> nodes_;  // by event
  std::chrono::steady_clock::time_point deadline_;
};

// --- the families, each in its own file
void add_certain_order(Formula& f);    // order_program.cpp: all edges that always hold
void add_objects(Formula& f);          // order_program.cpp: nothing uses an object after its release
void add_mutexes(Formula& f);          // order_locks.cpp: with atomic sections
void add_rwlocks(Formula& f);          // order_locks.cpp
void add_conditions(Formula& f);       // order_cond.cpp
void add_semaphores(Formula& f);       // order_sync.cpp
void add_barrier_order(Formula& f);    // order_sync.cpp: certain edges
void add_once_order(Formula& f);       // order_sync.cpp: certain edges
void add_init_order(Formula& f);       // order_sync.cpp: certain edges

// --- a mutual exclusion, shared by mutexes and read-write locks
struct Section {
  uint32_t acquire;
  std::optional<uint32_t> release;  // nothing: held to the end of the scope
};
std::map<Place, std::vector<Section>> mutex_sections(const Formula& f);
void exclude(Formula& f, const Section& a, const Section& b);

}  // namespace stem::encoder
