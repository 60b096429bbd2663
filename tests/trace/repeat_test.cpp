// The short way of writing an event gives the same file as the long way, byte by byte.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "trace/checker.h"
#include "trace/reader.h"
#include "trace/writer.h"

using namespace stem::trace;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Two threads walk over an array of 8-byte numbers, add to some of them and decide by others; an object is replaced now
// and then.
uint64_t write(const std::string& path, bool short_way) {
  Writer writer(path, Meta{});
  for (int i = 1; i <= 5; ++i) writer.add_site({uint64_t(i), "a.c", uint32_t(i), 1, "f", "a[i]", "[]"});
  writer.add_thread({"main", kNone, "main"});
  writer.add_thread({"main/1", 0, "work"});
  uint32_t variable = writer.add_variable("a[]");
  Object array;
  array.base = 0x10000;
  array.size = 8 * 512;
  array.zeroed = true;
  uint32_t object = writer.add_object(array);
  uint64_t stamp = 1, shorts = 0;
  std::mt19937_64 random(7);
  std::vector<uint64_t> memory(512);
  auto event = [&](ThreadId thread, Kind kind, SiteId site, uint64_t index, uint64_t value, ExprId expr, bool leaf) {
    const bool access = kind == Kind::Read || kind == Kind::Write;
    const uint64_t key = uint64_t(kind) | uint64_t(site) << 16, addr = access ? array.base + 8 * index : 0;
    static const uint64_t never = 0;
    if (short_way && writer.repeat(key, thread, kind, access ? 8 : 0, addr, value, expr, leaf)) {
      ++shorts;
      return;
    }
    Event e;
    e.kind = kind;
    e.thread = thread;
    e.site = site;
    e.size = access ? 8 : 0;
    e.addr = addr;
    e.value = value;
    e.expr = expr;
    e.leaf = leaf ? writer.next_expr() : 0;
    if (access) e.object = object, e.variable = variable;
    writer.add_event(e);
    if (!short_way) return;
    if (access)
      writer.can_repeat(key, array.base, array.base, array.size, &stamp);
    else
      writer.can_repeat(key, 0, 0, 1, &never);
  };
  for (ThreadId thread : {0u, 1u}) {
    if (thread == 1) event(0, Kind::Create, 1, 0, 1, 0, false);
    event(thread, Kind::Start, 0, 0, 0, 0, false);
  }
  for (int turn = 0; turn < 300; ++turn) {
    ThreadId thread = turn & 1;
    if (turn % 50 == 49) {
      object = writer.add_object(array);
      ++stamp;
    }
    for (uint64_t i = 0, at = random() % 256; i < random() % 700; ++i, at = (at + 1 + (random() % 100 == 0)) % 512) {
      ExprId leaf = writer.next_expr();
      event(thread, Kind::Read, 2, at, memory[at], 0, true);
      ExprId one = writer.add_expr({Op::Const, 64, 0, 0, 0, 1});
      ExprId sum = writer.add_expr({Op::Add, 64, leaf, one, 0, 0});
      event(thread, Kind::Write, 3, at, ++memory[at], sum, false);
      ExprId less = writer.add_expr({Op::Ult, 1, sum, leaf, 0, 0});
      event(thread, Kind::Branch, 4, 0, 0, less, false);
      if (random() % 5 == 0)
        event(thread, Kind::Write, 5, at, memory[at] = random() % 3 ? memory[at] * 2 : random(), 0, false);
    }
  }
  writer.finish(Outcome::Truncated, 0);
  return shorts;
}

// Loops that hash what was read, of many lengths and shapes, as a whole or expression by expression; each branches on
// its result.
void hash(const std::string& path, bool whole) {
  Writer writer(path, Meta{});
  writer.add_site({1, "a.c", 1, 1, "f", "a", ""});
  writer.add_thread({"main", kNone, "main"});
  const Round shapes[] = {
      Round({{Op::LShr, 64, 1, 0, 7}, {Op::Xor, 64, 1, 2, 0}, {Op::Mul, 64, 3, 0, 5}}, 2),
      Round({{Op::Mul, 64, 1, 0, 0x9e3779b97f4a7c15}}, 0),
      Round({{Op::Sub, 64, 0, 1, 9}, {Op::Add, 64, 2, 1, 0}, {Op::AShr, 64, 1, 0, 3}, {Op::Or, 64, 3, 4, 0}}, 1),
      Round({{Op::UDiv, 32, 1, 0, 3}, {Op::SRem, 32, 0, 1, 77}, {Op::Shl, 32, 3, 2, 0}, {Op::And, 32, 4, 1, 0}}, 3),
  };
  if (whole)
    for (const Round& shape : shapes) writer.add_round(shape);
  std::mt19937_64 random(3);
  Event start;
  start.kind = Kind::Start;
  start.thread = 0;
  writer.add_event(start);
  for (int loop = 0; loop < 400; ++loop) {
    const uint32_t number = random() % 4, rounds = 1 + random() % 300;
    const Round& round = shapes[number];
    Event read;
    read.kind = Kind::Read;
    read.thread = 0;
    read.site = 1;
    read.size = number == 3 ? 4 : 8;
    read.addr = 0x1000 + 64 * static_cast<uint64_t>(loop);
    read.value = read.size == 8 ? random() : random() & 0xffffffff;
    const ExprId input = read.leaf = writer.next_expr();
    writer.add_event(read);
    const ExprId first = writer.next_expr();
    if (whole) {
      CHECK(writer.add_rounds(number, input, rounds) == round.exprs(rounds));
    } else {
      for (uint32_t i = 0; i < round.exprs(rounds); ++i) writer.add_expr(round.expr(i, first, input));
    }
    Event branch;
    branch.kind = Kind::Branch;
    branch.thread = 0;
    branch.site = 1;
    const ExprId odd = writer.add_expr({Op::Const, static_cast<uint8_t>(8 * read.size), 0, 0, 0, 12345});
    branch.expr = writer.add_expr({Op::Ult, 1, first + round.result_of(rounds), odd, 0, 0});
    branch.value = round.value(read.value, rounds) < 12345;
    writer.add_event(branch);
  }
  writer.finish(Outcome::Truncated, 0);
}

}  // namespace

TEST_CASE("events that repeat, written the short way") {
  auto folder = std::filesystem::temp_directory_path();
  std::string a = folder / ("stem-repeat-a" + std::to_string(::getpid())),
              b = folder / ("stem-repeat-b" + std::to_string(::getpid()));
  CHECK(write(a, false) == 0);
  CHECK(write(b, true) > 20000);
  CHECK(bytes_of(a) == bytes_of(b));
  Reader reader(b);
  CheckResult result = check(reader);
  CHECK(reader.recovery().events > 25000);
  for (const Problem& problem : result.problems) MESSAGE(to_string(problem));
  CHECK(result.ok());
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

TEST_CASE("expressions of loops, written as a whole") {
  auto folder = std::filesystem::temp_directory_path();
  std::string a = folder / ("stem-rounds-a" + std::to_string(::getpid())),
              b = folder / ("stem-rounds-b" + std::to_string(::getpid()));
  hash(a, false);
  hash(b, true);
  CHECK(std::filesystem::file_size(b) < std::filesystem::file_size(a));
  Reader one(a), other(b);
  for (uint64_t exprs = 0;;) {
    const Reader::Item item = one.next();
    REQUIRE(item == other.next());
    if (item == Reader::Item::End) {
      CHECK(exprs > 100000);
      break;
    }
    if (item == Reader::Item::Expr) {
      ++exprs;
      REQUIRE(one.expr_id() == other.expr_id());
      REQUIRE(one.expr() == other.expr());
    } else {
      REQUIRE(one.event() == other.event());
    }
  }
  CHECK(one.recovery().complete);
  CHECK(other.recovery().complete);
  Reader reader(b);
  CheckResult result = check(reader);  // evaluates every expression by itself
  for (const Problem& problem : result.problems) MESSAGE(to_string(problem));
  CHECK(result.ok());
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

TEST_CASE("values of several loops at once are those of each") {
  std::mt19937_64 random(5);
  const Round wide({{Op::LShr, 64, 1, 0, 7}, {Op::Xor, 64, 1, 2, 0}, {Op::Mul, 64, 3, 0, 5}}, 1),
      narrow({{Op::Add, 17, 1, 0, 3}, {Op::Mul, 17, 2, 1, 0}}, 1);
  for (const Round* round : {&wide, &narrow}) {
    std::vector<uint64_t> inputs(19), results(19);
    for (uint64_t& input : inputs) input = random() & 0x1ffff;
    round->values(inputs.data(), 40, results.data(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) CHECK(results[i] == round->value(inputs[i], 40));
  }
  uint64_t h = 99;
  for (int i = 0; i < 3; ++i) h = h ^ h >> 7;
  CHECK(wide.value(99, 3) == h);
}

TEST_CASE("rounds that make no sense are none") {
  CHECK_FALSE(Round({}, 0).valid());
  CHECK_FALSE(Round({{Op::Add, 64, 1, 0, 1}}, 1).valid());
  CHECK_FALSE(Round({{Op::Add, 64, 0, 0, 1}}, 0).valid());
  CHECK_FALSE(Round({{Op::Add, 64, 1, 2, 0}}, 0).valid());
  CHECK_FALSE(Round({{Op::Add, 65, 1, 0, 1}}, 0).valid());
  CHECK_FALSE(Round({{Op::Eq, 64, 1, 0, 1}}, 0).valid());
  CHECK_FALSE(Round(std::vector<Round::Node>(Round::kMostNodes + 1, {Op::Add, 64, 1, 0, 1}), 0).valid());
}
