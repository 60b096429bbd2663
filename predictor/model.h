// A trace prepared for the order-graph engine: everything that is the same for every query, computed once, linear in the
// trace.
//
// Memory is cut into *atoms*: the largest runs of bytes of one object that every access takes whole or not at all. Almost
// every variable is one atom; where sizes differ an access covers several. Flows are decided atom by atom, which is the
// same as byte by byte and many times cheaper.
//
// What docs/soundness.md asks of synchronisation is split by what the engine can do with it: *edges* (b needs a before
// it), *exclusions* (sections of one lock), *ordered if both happen* (uses and the release of an object), and counts.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "trace/event.h"

namespace stem::predictor {

constexpr uint32_t kNoEvent = trace::kNone;
constexpr uint32_t kFromStart = trace::kNone;  // as a writer: the initial value

struct Atom {
  uint32_t object = 0;
  uint8_t size = 0;
  bool known = false;    // what it held at the start is known:
  bool tainted = false;
  uint64_t addr = 0;
  uint64_t initial = 0;
};

// A stretch during which a thread holds a lock.
struct Section {
  uint32_t lock = 0;              // dense id
  trace::ThreadId thread = 0;
  uint32_t acquire = kNoEvent;
  uint32_t release = kNoEvent;    // kNoEvent: held to the end
  bool shared = false;            // a read lock
};

// Positions of one thread's events of one kind on one thing, ascending.
struct Chain {
  trace::ThreadId thread;
  std::vector<uint32_t> positions;
};

struct Semaphore {
  int32_t initial = 0;            // at the program's start
  std::vector<Chain> posts, waits;
  std::vector<uint32_t> uses;     // events, in recorded order
};

// The release of an object: what used it before, if it executes at all, executes before.
struct Release {
  uint32_t event = 0;
  std::vector<Chain> uses;
};

class Model {
 public:
  explicit Model(const trace::Trace& trace);

  const trace::Trace& trace;
  uint32_t threads = 0;
  std::vector<uint32_t> position;                  // event -> position in its thread
  std::vector<std::vector<uint32_t>> events_of;    // thread, position -> event

  // Memory.
  std::vector<Atom> atoms;
  std::vector<uint32_t> first_atom;                // event -> its first atom
  std::vector<uint8_t> atom_count;                 // event -> how many (0: no access)
  std::vector<uint32_t> sources_at;                // read event -> where its recorded sources start in `sources`
  std::vector<uint32_t> sources;                   // per atom of a read: the recorded writer, or kFromStart

  std::span<const uint32_t> writes_of(uint32_t atom) const {  // events, in recorded order
    return {writes_.data() + writes_at_[atom], writes_at_[atom + 1] - writes_at_[atom]};
  }
  const std::vector<Chain>& write_chains(uint32_t atom) const { return chains_[atom]; }
  uint32_t last_write_before(uint32_t atom, uint32_t event) const;  // kFromStart: none

  // The bytes of an atom as event e (a write or read that covers it) has them in `value`.
  uint64_t slice(uint32_t event, uint32_t atom, uint64_t value) const {
    const Atom& a = atoms[atom];
    const uint64_t shifted = value >> (8 * (a.addr - trace.events[event].addr));
    return a.size == 8 ? shifted : shifted & ((uint64_t{1} << (8 * a.size)) - 1);
  }
  bool is_read(uint32_t event) const {
    const auto kind = trace.events[event].kind;
    return kind == trace::Kind::Read || kind == trace::Kind::Rmw;
  }
  bool is_write(uint32_t event) const {
    const auto kind = trace.events[event].kind;
    return kind == trace::Kind::Write || kind == trace::Kind::Rmw || kind == trace::Kind::External;
  }
  uint64_t written(uint32_t event) const {
    const auto& e = trace.events[event];
    return e.kind == trace::Kind::Rmw ? e.value2 : e.value;
  }
  // Events that bind the path: a branch, pin or assertion with an expression, a pinned read.
  bool is_constraint(uint32_t event) const;

  // Synchronisation.
  std::vector<std::pair<uint32_t, uint32_t>> edges;       // (a, b): b needs a before it; sorted by b
  std::span<const std::pair<uint32_t, uint32_t>> needs(uint32_t event) const {
    return {edges.data() + needs_at_[event], needs_at_[event + 1] - needs_at_[event]};
  }
  std::vector<Release> releases;
  std::vector<uint32_t> release_of;                       // object -> its Free event; kNoEvent
  std::vector<uint32_t> sync;                             // event -> dense id of its lock, semaphore, condition; kNone
  std::vector<Section> sections;
  std::vector<uint32_t> section_of;                       // acquisition or release (outermost) -> section; kNone
  struct LockUse {
    trace::ThreadId thread;
    std::vector<uint32_t> sections;                       // in order
  };
  std::vector<std::vector<LockUse>> lock_uses;            // by lock
  uint32_t sync_objects = 0;
  std::vector<Semaphore> semaphores;                      // by sync id (empty where it is none)
  std::vector<int32_t> raise;                             // SemInit event -> by how much it changes the count (else 0)
  std::vector<std::vector<uint32_t>> signals;             // by sync id: Signal and Broadcast events, in order
  std::vector<uint32_t> wait_of;                          // Wake event -> its Wait; kNone elsewhere
  uint32_t exit_event = kNoEvent;

  std::vector<uint64_t> recorded;                         // value of every expression in the recording
  // Whether a failed attempt says that the lock was held or the semaphore empty.
  bool was_busy(uint32_t event) const;

 private:
  void index_threads();
  void cut_atoms();
  void find_sources();
  void find_sections();
  void find_edges();
  void find_object_edges();
  void find_barrier_edges();
  void find_semaphores();

  std::vector<uint32_t> writes_at_, writes_, needs_at_;
  std::vector<std::vector<Chain>> chains_;
};

}  // namespace stem::predictor
