// What orders two accesses of a recorded run. Two vector clocks a thread: one closed under all synchronisation but
// mutexes (what it orders, every execution with the same matching orders), one closed under mutexes too (the order in
// which they were taken was this run's). Both tick at releases only, so most accesses of a thread share an epoch.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "db/rows.h"
#include "trace/event.h"

namespace stem::explorer {

class HappensBefore {
 public:
  // To be called for every event, in order, before the access itself is looked at.
  void event(const trace::Event& event);
  // An atomic read that takes its value from an atomic write is ordered after it.
  void atomic_write(const trace::Event& event);
  void atomic_read(const trace::Event& event);

  struct Access {
    uint32_t thread = 0, epoch = 0, lock_epoch = 0, locks = 0;
    bool atomic = false;
    bool operator==(const Access&) const = default;
  };
  Access access(const trace::Event& event);
  db::Relation relation(const Access& write, const Access& read);

 private:
  using Clock = std::vector<uint32_t>;
  struct Thread {
    Clock must, locked;
    std::vector<uint64_t> held;
    uint32_t locks = 0;  // interned `held`
  };
  struct Pair {
    Clock must, locked;
  };
  Thread& thread(uint32_t index);
  static void join(Clock& into, const Clock& from);
  void release(Pair& into, uint32_t index);
  void acquire(const Pair& from, uint32_t index);
  void take(uint32_t index, uint64_t lock);
  void drop(uint32_t index, uint64_t lock);
  void intern(Thread& thread);
  bool common(uint32_t a, uint32_t b);

  std::vector<Thread> threads_;
  std::unordered_map<uint64_t, Clock> mutexes_;
  std::unordered_map<uint64_t, Pair> objects_;              // semaphores, once, atomics by address
  std::map<std::pair<uint64_t, uint64_t>, Pair> signals_;   // condition, thread that signalled
  std::map<std::pair<uint64_t, uint64_t>, Pair> barriers_;  // barrier, generation
  std::map<std::vector<uint64_t>, uint32_t> lock_sets_{{{}, 0}};
  std::vector<std::vector<uint64_t>> lock_set_list_{{}};
  std::unordered_map<uint64_t, bool> common_;
};

}  // namespace stem::explorer
