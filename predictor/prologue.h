// What of a run's beginning still matters to what follows it: the writes that memory still shows, the allocations of
// what lives, the threads, the locks that are held, the waits under way. A trace that starts with these events instead
// of all that came before is a trace in its own right, as long as they execute as recorded (docs/soundness.md,
// windows): the rest of the beginning can no longer be told from it.
//
// Kept are copies of the recorded events, thinned: without expressions (their values are the recorded ones), a
// read-modify-write as the write that it left, a semaphore's initialisation with the count that it has come to.
//
// Costs memory for what is alive, not for what has happened: about 30 bytes for each byte of shared memory written.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "predictor/lives.h"
#include "trace/reader.h"

namespace stem::predictor {

class Prologue {
 public:
  struct Item {
    uint64_t number;  // of the event in the run
    trace::Event event;
  };

  explicit Prologue(const trace::Reader& reader) : reader_(reader) {}

  void add(uint64_t number, const trace::Event& event);  // the next event of the run
  std::vector<Item> events() const;                      // what of them matters, in order
  // Nobody who was signalled is still on the way out of a wait: who was woken by whom can no longer matter.
  bool calm() const { return signalled_ == 0; }
  // Generations of a barrier that everybody has left: what follows counts from here.
  uint64_t generations(const trace::Event& event) const;

 private:
  using Slot = uint32_t;
  static constexpr Slot kNone = UINT32_MAX;
  using Place = std::pair<uint32_t, uint64_t>;  // object, address
  struct Kept {
    Item item;
    uint32_t refs = 0;  // 0: free
  };
  using Granule = std::array<Slot, 8>;  // who wrote each byte last, or read it first
  struct Memory {
    Slot alloc = kNone;
    std::unordered_map<uint64_t, Granule> granules;  // by address / 8
  };
  struct Waiting {
    uint64_t condition = 0, mutex = 0;  // addresses
    std::vector<Slot> locks;
    Slot wait = kNone, signal = kNone, wake = kNone;
  };
  struct Generation {
    std::vector<Slot> events;
    uint64_t left = 0;
  };
  struct Barrier {
    Slot init = kNone;
    uint64_t need = 0, base = 0;
    std::deque<Generation> generations;  // from base on
  };

  Slot keep(const trace::Event& event, uint32_t refs = 1);
  void drop(Slot slot);
  void drop(std::vector<Slot>& slots);
  void written(const trace::Event& event);
  void read(const trace::Event& event);
  void released(uint32_t object);
  void mutex(const trace::Event& event);
  void condition(const trace::Event& event);
  void finished(trace::ThreadId thread);
  void semaphore(const trace::Event& event);
  void barrier(const trace::Event& event);

  const trace::Reader& reader_;
  uint64_t number_ = 0;
  std::vector<Kept> slots_;
  std::vector<Slot> free_;
  std::unordered_map<uint32_t, Memory> memory_;  // by object
  Lives lives_;
  std::map<std::pair<trace::ThreadId, uint64_t>, std::vector<Slot>>
      mutexes_;  // by thread and address: its locks, innermost last
  std::map<std::pair<trace::ThreadId, Place>, std::vector<Slot>> rwlocks_;
  std::map<trace::ThreadId, std::vector<Slot>> atomics_, handlers_;
  std::map<trace::ThreadId, Waiting> waiting_;
  std::map<Place, Slot> semaphores_;
  std::map<Place, Barrier> barriers_;
  std::map<Place, std::vector<Slot>> onces_;
  unsigned signalled_ = 0;
};

}  // namespace stem::predictor
