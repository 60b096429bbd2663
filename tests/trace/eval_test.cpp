#include <doctest/doctest.h>

#include "trace/builder.h"
#include "trace/eval.h"

using namespace stem::trace;

namespace {
uint64_t run(Op op, unsigned width, uint64_t a, uint64_t b = 0, uint64_t c = 0) { return apply(op, width, a, b, c, width, width, 0); }
}  // namespace

TEST_CASE("operations of every width") {
  CHECK(run(Op::Add, 8, 250, 10) == 4);
  CHECK(run(Op::Sub, 32, 0, 1) == 0xffffffffu);
  CHECK(run(Op::Mul, 64, 1ull << 63, 2) == 0);
  CHECK(run(Op::SDiv, 8, 0xf8, 2) == 0xfc);      // -8 / 2
  CHECK(run(Op::SDiv, 8, 0x80, 0xff) == 0x80);   // the one that overflows
  CHECK(run(Op::SRem, 8, 0xf9, 4) == 0xfd);      // -7 % 4 = -3
  CHECK(run(Op::UDiv, 8, 7, 0) == 0xff);
  CHECK(run(Op::URem, 8, 7, 0) == 7);
  CHECK(run(Op::Shl, 32, 1, 31) == 0x80000000u);
  CHECK(run(Op::Shl, 32, 1, 32) == 0);
  CHECK(run(Op::LShr, 64, ~0ull, 63) == 1);
  CHECK(run(Op::AShr, 8, 0x80, 100) == 0xff);
  CHECK(run(Op::AShr, 8, 0x40, 2) == 0x10);
  CHECK(apply(Op::Slt, 1, 0xff, 1, 0, 8, 8, 0) == 1);
  CHECK(apply(Op::Ult, 1, 0xff, 1, 0, 8, 8, 0) == 0);
  CHECK(apply(Op::SExt, 32, 0x80, 0, 0, 8, 0, 0) == 0xffffff80u);
  CHECK(apply(Op::Extract, 8, 0xabcd, 0, 0, 16, 0, 8) == 0xab);
  CHECK(apply(Op::Concat, 16, 0xab, 0xcd, 0, 8, 8, 0) == 0xabcd);
  CHECK(run(Op::Ite, 8, 1, 5, 6) == 5);
}

TEST_CASE("an expression under other leaves, with unknowns") {
  Builder b;
  auto x = b.global("x", 4), y = b.global("y", 4);
  auto rx = b.leaf(b.read(0, x, 5));
  auto ry = b.leaf(b.read(0, y, 6));
  auto sum = b.op(Op::Add, 32, rx, ry);
  auto opaque = b.expr(Op::Opaque, 32, rx, 0, 0, 77);
  auto less = b.op(Op::Ult, 1, ry, b.constant(32, 10));
  auto chosen = b.op(Op::Ite, 32, less, sum, opaque);
  Trace trace = b.take();
  auto recorded = recorded_values(trace);
  CHECK(recorded[sum] == 11);
  CHECK(recorded[opaque] == 77);

  uint64_t vx = 5, vy = 6;
  Evaluator eval(trace.exprs, recorded, [&](ExprId id, const Expr&) -> std::optional<uint64_t> {
    if (id == rx) return vx;
    return vy;
  });
  CHECK(eval.value(sum) == 11);
  CHECK(eval.value(opaque) == 77);
  vx = 8;
  eval.reset();
  CHECK(eval.value(sum) == 14);
  CHECK_FALSE(eval.value(opaque));
  CHECK(eval.value(chosen) == 14);  // the unknown operand is not the chosen one
  vy = 20;
  eval.reset();
  CHECK_FALSE(eval.value(chosen));
}

TEST_CASE("malformed expressions are told") {
  std::vector<Expr> nodes(1);
  nodes.push_back({Op::Const, 32, 0, 0, 0, 1});
  nodes.push_back({Op::Const, 8, 0, 0, 0, 1});
  CHECK(malformed({Op::Add, 32, 1, 1, 0, 0}, 3, nodes) == nullptr);
  CHECK(malformed({Op::Add, 32, 1, 2, 0, 0}, 3, nodes) != nullptr);
  CHECK(malformed({Op::Add, 32, 1, 3, 0, 0}, 3, nodes) != nullptr);
  CHECK(malformed({Op::Eq, 32, 1, 1, 0, 0}, 3, nodes) != nullptr);
  CHECK(malformed({Op::Const, 8, 0, 0, 0, 256}, 3, nodes) != nullptr);
  CHECK(malformed({Op::Extract, 8, 1, 0, 0, 25}, 3, nodes) != nullptr);
  CHECK(malformed({Op::Opaque, 8, 1, 0, 0, 25}, 3, nodes) == nullptr);
}
