// The static pairs of a trace of any length, found by reading it once: how many instances each has, how many of them
// the recording shows, and where some are that are close together. Memory grows with the memory that the program shares
// at one time and with its static pairs, not with the length of the run: memory that is used anew is added up and
// forgotten.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "predictor/lives.h"
#include "trace/event.h"

namespace stem::predictor {

// Sites and variables by their numbers in the trace; a definition of kNone is the initial value.
struct PairName {
  trace::SiteId def = 0, use = 0;
  uint32_t variable = trace::kNone;
  auto operator<=>(const PairName&) const = default;
  struct Hash {
    size_t operator()(const PairName& n) const {
      return ((uint64_t{n.def} << 32 | n.use) ^ (uint64_t{n.variable} * 0x9e3779b97f4a7c15ull)) *
                 0xff51afd7ed558ccdull >>
             7;
    }
  };
};

struct SurveyedPair {
  uint64_t instances = 0, observed = 0;
  bool tainted = false;                             // unseen code writes there
  trace::ThreadId def_thread = 0, use_thread = 0;   // of one instance
  std::vector<std::pair<uint64_t, uint64_t>> kept;  // write and read (the write of an initial value: the read)
};

class Survey {
 public:
  explicit Survey(uint32_t keep) : keep_(keep) {}

  void event(uint64_t number, const trace::Event& event);
  void finish();

  std::unordered_map<PairName, SurveyedPair, PairName::Hash> pairs;  // complete after finish()
  uint64_t accesses = 0, pieces = 0;                                 // of memory

 private:
  static constexpr size_t kRecent = 4;
  struct Def {
    trace::SiteId site;
    trace::ThreadId thread;
    uint64_t count;
  };
  struct Use {
    trace::SiteId site;
    uint32_t variable;
    trace::ThreadId thread;
    uint64_t count;
    uint64_t own;  // as read-modify-writes: they do not take their own value
  };
  struct Recent {
    uint64_t number = 0;
    trace::SiteId site = 0;
    uint32_t variable = 0;
    trace::ThreadId thread = 0;
  };
  struct Cell {  // what accesses of one address and size did
    std::vector<Def> defs;
    std::vector<Use> uses;
    std::array<Recent, kRecent> writes, reads;
    uint32_t written = 0, read = 0;
    bool tainted = false;
  };
  using Sites = std::array<trace::SiteId, 8>;
  struct Memory {
    std::map<std::pair<uint64_t, uint8_t>, Cell> cells;  // by address and size
    std::unordered_map<uint64_t, Sites> last;  // by address / 8: 1 + site of the last write of each byte; 0: none
  };

  void read(uint64_t number, const trace::Event& event, Memory& memory, Cell& cell);
  void write(uint64_t number, const trace::Event& event, Memory& memory, Cell& cell);
  void offer(const PairName& name, uint64_t write, uint64_t read);
  void add_up(const Memory& memory);
  void meet(const Cell& writes, const Cell& reads, bool same);

  const uint32_t keep_;
  std::unordered_map<uint32_t, Memory> memory_;  // by object
  Lives lives_;
};

}  // namespace stem::predictor
