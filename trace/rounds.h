// A loop that only computes: each round makes the same expressions out of the result of the round before. A recorder
// tells such a loop in one record and the file holds it as one item (Shape::kRounds): its expressions are made when
// they are read.
//
// They are a Const for each constant, then the nodes of each round. Of their values the model knows only that of the
// result: the others are hardly ever used, and finding them all would take longer than everything else about the loop.
#pragma once

#include <vector>

#include "trace/event.h"

namespace stem::trace {

class Round {
 public:
  static constexpr uint32_t kMostNodes = 32, kMostRounds = 1 << 16;

  struct Node {  // an operation from Add to Xor
    Op op;
    uint8_t width;
    uint32_t a, b;      // 0: the constant, not both; 1: what the round begins with; 2 + k: node k, of those before it
    uint64_t constant;  // of its width
  };

  Round() = default;
  // False: it is not as said above, and the round has no nodes.
  Round(std::vector<Node> nodes, uint32_t result);
  bool valid() const { return !nodes_.empty(); }

  const std::vector<Node>& nodes() const { return nodes_; }
  uint32_t result() const { return result_; }
  unsigned width() const { return nodes_[result_].width; }
  uint32_t constants() const { return constants_; }
  uint32_t count() const { return static_cast<uint32_t>(nodes_.size()); }
  // How many expressions so many rounds are, and which of them is the result.
  uint32_t exprs(uint32_t rounds) const { return constants_ + rounds * count(); }
  uint32_t result_of(uint32_t rounds) const { return exprs(rounds) - count() + result_; }
  // The expression number `index` of them, the first of which has the id `first`.
  Expr expr(uint32_t index, ExprId first, ExprId input) const;
  uint64_t value(uint64_t input, uint32_t rounds) const;  // of the result
  // The same for n loops; faster, since none waits for the others.
  void values(const uint64_t* inputs, uint32_t rounds, uint64_t* results, size_t n) const;

 private:
  struct Code {
    uint32_t way;  // operation and where its operands come from
    uint8_t width;
    uint8_t a, b;
    uint64_t constant;
  };
  template <unsigned same_width, unsigned lanes>
  void run(const uint64_t* inputs, uint32_t rounds, uint64_t* results) const;

  std::vector<Node> nodes_;
  std::vector<Code> code_;
  std::vector<uint32_t> constant_of_;  // of a node: which of the constants
  uint32_t result_ = 0, constants_ = 0;
  bool wide_ = true;  // all have 64 bits
};

}  // namespace stem::trace
