#include "trace/rounds.h"

#include <algorithm>

#include "trace/eval.h"

namespace stem::trace {

namespace {

// Each node waits for the one before it, which must not go through memory for that: a case for each operation and each
// way to get its operands, with what the round began with and what the node before gave in registers.
enum From : uint32_t { kConstant, kInput, kLast, kEarlier };
constexpr uint32_t way_of(Op op, From first, From second) {
  return static_cast<uint32_t>(op) << 4 | first << 2 | second;
}

From from(uint32_t reference, size_t node) {
  return reference == 0 ? kConstant : reference == 1 ? kInput : reference == 1 + node ? kLast : kEarlier;
}

}  // namespace

Round::Round(std::vector<Node> nodes, uint32_t result) {
  if (nodes.empty() || nodes.size() > kMostNodes || result >= nodes.size()) return;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    if (node.op < Op::Add || node.op > Op::Xor || node.width < 1 || node.width > 64 || node.a > 1 + i ||
        node.b > 1 + i || (node.a | node.b) == 0)
      return;
    node.constant &= width_mask(node.width);
    constant_of_.push_back(constants_);
    if (node.a == 0 || node.b == 0)
      ++constants_;
    else
      node.constant = 0;
    auto place = [](uint32_t reference) { return static_cast<uint8_t>(reference < 2 ? 0 : reference - 2); };
    code_.push_back(
        {way_of(node.op, from(node.a, i), from(node.b, i)), node.width, place(node.a), place(node.b), node.constant});
    wide_ &= node.width == 64;
  }
  nodes_ = std::move(nodes);
  result_ = result;
}

Expr Round::expr(uint32_t index, ExprId first, ExprId input) const {
  if (index < constants_) {
    for (size_t i = 0;; ++i)
      if ((nodes_[i].a == 0 || nodes_[i].b == 0) && constant_of_[i] == index)
        return {Op::Const, nodes_[i].width, 0, 0, 0, nodes_[i].constant};
  }
  const uint32_t round = (index - constants_) / count(), i = (index - constants_) % count();
  const ExprId begin = first + constants_ + round * count(), before = round ? begin - count() + result_ : input;
  const Node& node = nodes_[i];
  auto operand = [&](uint32_t reference) {
    return reference == 0 ? first + constant_of_[i] : reference == 1 ? before : begin + reference - 2;
  };
  return {node.op, node.width, operand(node.a), operand(node.b), 0, 0};
}

// same_width: that of all nodes, or 0. lanes: so many loops at once.
template <unsigned same_width, unsigned lanes>
void Round::run(const uint64_t* inputs, uint32_t rounds, uint64_t* results) const {
  uint64_t values[kMostNodes][lanes], input[lanes], last[lanes] = {};
  std::copy_n(inputs, lanes, input);
  const Code* const begin = code_.data();
  const Code* const end = begin + code_.size();
  for (; rounds; --rounds) {
    uint64_t(*at)[lanes] = values;
    for (const Code* node = begin; node != end; ++node, ++at) {
      const unsigned width = same_width ? same_width : node->width;
      switch (node->way) {
#define STEM_WAY(op, first, second, x, y)                                                          \
  case way_of(Op::op, first, second):                                                              \
    for (unsigned i = 0; i < lanes; ++i) last[i] = apply(Op::op, width, x, y, 0, width, width, 0); \
    break;
#define STEM_WAYS(op)                                                   \
  STEM_WAY(op, kConstant, kInput, node->constant, input[i])             \
  STEM_WAY(op, kConstant, kLast, node->constant, last[i])               \
  STEM_WAY(op, kConstant, kEarlier, node->constant, values[node->b][i]) \
  STEM_WAY(op, kInput, kConstant, input[i], node->constant)             \
  STEM_WAY(op, kInput, kInput, input[i], input[i])                      \
  STEM_WAY(op, kInput, kLast, input[i], last[i])                        \
  STEM_WAY(op, kInput, kEarlier, input[i], values[node->b][i])          \
  STEM_WAY(op, kLast, kConstant, last[i], node->constant)               \
  STEM_WAY(op, kLast, kInput, last[i], input[i])                        \
  STEM_WAY(op, kLast, kLast, last[i], last[i])                          \
  STEM_WAY(op, kLast, kEarlier, last[i], values[node->b][i])            \
  STEM_WAY(op, kEarlier, kConstant, values[node->a][i], node->constant) \
  STEM_WAY(op, kEarlier, kInput, values[node->a][i], input[i])          \
  STEM_WAY(op, kEarlier, kLast, values[node->a][i], last[i])            \
  STEM_WAY(op, kEarlier, kEarlier, values[node->a][i], values[node->b][i])
        STEM_WAYS(Add)
        STEM_WAYS(Sub)
        STEM_WAYS(Mul)
        STEM_WAYS(UDiv)
        STEM_WAYS(SDiv)
        STEM_WAYS(URem)
        STEM_WAYS(SRem)
        STEM_WAYS(Shl)
        STEM_WAYS(LShr)
        STEM_WAYS(AShr)
        STEM_WAYS(And)
        STEM_WAYS(Or)
        STEM_WAYS(Xor)
#undef STEM_WAYS
#undef STEM_WAY
        default:  // a number, not an enumeration; the constructor makes no others
          __builtin_unreachable();
      }
      std::copy_n(last, lanes, *at);
    }
    std::copy_n(values[result_], lanes, input);
  }
  std::copy_n(input, lanes, results);
}

uint64_t Round::value(uint64_t input, uint32_t rounds) const {
  uint64_t result;
  if (wide_)
    run<64, 1>(&input, rounds, &result);
  else
    run<0, 1>(&input, rounds, &result);
  return result;
}

void Round::values(const uint64_t* inputs, uint32_t rounds, uint64_t* results, size_t n) const {
  constexpr unsigned kLanes = 8;
  size_t i = 0;
  for (; wide_ && i + kLanes <= n; i += kLanes) run<64, kLanes>(inputs + i, rounds, results + i);
  for (; i < n; ++i) results[i] = value(inputs[i], rounds);
}

}  // namespace stem::trace
