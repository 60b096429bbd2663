// Every execution of a window that can differ in its flows, one after the other, as long as there are not too many.
//
// Where threads are free to interleave there are too many, and the order graph (engine.h) reasons about them without looking
// at any. But where values decide the path - a queue whose counters every branch asks, a state machine - few orders survive
// the branches, the order graph has little to hold on to, and looking at them all is cheap: a depth-first walk over states
// that are remembered by what can matter of them (how far each thread is, who last wrote what is still to be read, the values
// that a branch can still ask for). Events that are alone (independence.h) are executed without asking what else could
// come first. One walk decides all pairs of a window at once: what it does not show cannot be within the window.
//
// PREFIX asks what each state could read next. FULL asks what is read on the way to the end of the trace: a state remembers
// whether, and by which step, it leads there, and a step's flows count once that is known.
//
// Costs a few microseconds a state. Where the end is not in sight it is given up early.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "encoder/encoder.h"
#include "predictor/independence.h"
#include "predictor/machine.h"
#include "predictor/model.h"

namespace stem::predictor {

class Enumerate {
 public:
  enum class Outcome : uint8_t {
    Complete,  // what was not seen cannot be
    TooMany,   // more states than allowed, or asked to stop
    Inexact,   // another input might have gone further
  };
  struct Listener {
    virtual ~Listener() = default;
    // What distinguishes this write from others for whom it concerns; 0: nothing does.
    virtual uint32_t label(uint32_t write) = 0;
    // The read takes an atom from that write; schedule() is the witness.
    virtual void flow(uint32_t write, uint32_t read) = 0;
    virtual bool stop() = 0;
  };

  Enumerate(const Model& model, const Independence& independence, encoder::Meaning meaning = encoder::Meaning::Prefix);

  // FULL: the whole trace only.
  Outcome run(uint32_t first, uint32_t last, uint64_t limit, Listener& listener);
  uint64_t states() const { return visited_.size(); }
  std::vector<uint32_t> schedule(uint32_t read);

 private:
  struct Key {
    uint64_t a = 0, b = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const { return k.a; }
  };
  struct Alternative {
    uint32_t event;
    uint32_t wake;  // whom a signal wakes; kNoEvent: nobody in particular
  };
  // FULL: how a state leads to the end. Its own step and the state that it led to then; another state of the same key goes the
  // same way, but may have other keys on it, because keys tell apart more than need be.
  struct WayOn {
    Alternative step{kNoEvent, kNoEvent};  // kNoEvent: none known
    Key to;
  };
  static constexpr uint32_t kEnd = kNoEvent - 1;  // as the step of a state: it is the end
  struct Frame {
    Machine::Mark mark;
    size_t first, next;  // in alternatives_
    Key key;
    size_t flows;        // when it was entered; FULL
  };
  static constexpr uint32_t kSeveral = UINT32_MAX, kNobody = UINT32_MAX - 1;
  struct LiveAtom {
    uint32_t atom;
    uint32_t thread;        // that writes it, or kSeveral
    uint32_t first, count;  // in last_reads_
  };

  void open(uint32_t first, uint32_t last);
  uint32_t next_event(uint32_t thread) const;
  void observe(uint32_t read);
  void advance();
  bool step(uint32_t event);
  Key key();
  bool enter();
  bool at_end() const;
  void leads_to_end(const Key& here);
  std::vector<uint32_t> complete_schedule();
  bool hopeless(uint64_t limit);

  const Model& model_;
  const Independence& independence_;
  const bool full_;
  Machine machine_;
  Listener* listener_ = nullptr;
  uint32_t first_ = 0;
  bool inexact_ = false;
  std::vector<uint32_t> end_;                                 // by thread: positions beyond the window
  std::vector<LiveAtom> atoms_;                               // that the window reads and writes
  std::vector<std::pair<uint32_t, uint32_t>> last_reads_;     // thread, position
  std::unordered_map<Key, WayOn, KeyHash> visited_;
  Key here_;                                                  // FULL: the state whose flows are told
  std::vector<std::pair<uint32_t, uint32_t>> flows_;          // FULL: write and read, of the steps that led here
  std::vector<Frame> frames_;
  size_t deepest_ = 0, shallowest_ = 0;                       // depth it has reached, depth it has come back to
  uint64_t patience_ = 0;                                     // states at which to ask whether there is hope
  std::vector<Alternative> alternatives_;
  std::vector<uint32_t> waiters_;
  std::vector<uint8_t> deviates_;                             // by thread: it has read something else than recorded
};

}  // namespace stem::predictor
