// Terms for what events read and write, and which write each byte of a read takes. Internal to encoder/.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "encoder/formula.h"
#include "encoder/terms.h"

namespace stem::encoder {

// Bytes of a read that the same writes cover: they are matched as one.
struct Chunk {
  unsigned first = 0, count = 0;   // bytes of the read
  std::vector<uint32_t> writers;   // events of the scope that write these bytes (all of them) and matter, as recorded
  uint32_t before = kInitial;      // who wrote them last before the scope began
  bool initial_known = false;
};

class Values : public Terms {
 public:
  explicit Values(Formula& f);

  // φsm (semantics.cpp)
  void find_relevant_reads();         // first, once the certain order is closed
  void add_semantics();               // branches, pins, assertions and pinned reads keep their recorded values
  Term read(uint32_t read) override;

  // φim (matching.cpp)
  void add_matching();                // every read whose value can matter takes it from the last write
  std::vector<Chunk> chunks(uint32_t read) const;
  z3::expr takes(uint32_t read, const Chunk& chunk, uint32_t write);  // the chunk's last write is this one; or kInitial: none of the scope

  // φdu (defuse.cpp)
  z3::expr defuse(uint32_t write, uint32_t read);

  // alternate.cpp
  z3::expr negated(uint32_t branch, const Wish& wish);  // the execution ends at the branch, which decides as wished
  uint32_t target_rmw() const;

 private:
  bool fixed(trace::ExprId id) const override { return f_.first > 0 && f_.index.settled(id, f_.first); }
  void add_leaves(trace::ExprId id, std::vector<uint32_t>& reads) const;
  void add_match(uint32_t read);
  void prune(uint32_t read, std::vector<uint32_t>& writers) const;
  void add_taint(uint32_t read);
  Term initial(uint32_t read, const Chunk& chunk);

  Formula& f_;
  std::map<Place, std::vector<uint32_t>> writers_;  // by byte
  std::vector<uint32_t> relevant_;                  // reads that some branch, pin or pinned read depends on
  bool unknowns_ = false;                           // can any value be unknown?
  std::unordered_map<uint32_t, Term> reads_;
};

}  // namespace stem::encoder
