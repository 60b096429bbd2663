// The short way of writing an event gives the same file as the long way, byte by byte.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
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

// Loops that hash what was read, of many lengths, told round by round or as a whole.
void hash(const std::string& path, bool whole) {
  Writer writer(path, Meta{});
  writer.add_site({1, "a.c", 1, 1, "f", "a", ""});
  writer.add_thread({"main", kNone, "main"});
  std::mt19937_64 random(3);
  for (int loop = 0; loop < 400; ++loop) {
    Event read;
    read.kind = Kind::Read;
    read.thread = 0;
    read.site = 1;
    read.size = 8;
    read.addr = 0x1000;
    read.value = random();
    read.leaf = writer.next_expr();
    ExprId input = read.leaf;
    writer.add_event(read);
    const ExprId seven = writer.add_expr({Op::Const, 64, 0, 0, 0, 7}), odd = writer.add_expr({Op::Const, 64, 0, 0, 0, 5 + random() % 2});
    std::vector<Writer::RoundNode> nodes = {{Op::LShr, 64, 1, 0, seven}, {Op::Xor, 64, 1, 2, 0}, {Op::Mul, 64, 3, 0, odd}};
    if (loop % 3 == 1) nodes = {{Op::Mul, 64, 1, 0, odd}};
    if (loop % 3 == 2) nodes = {{Op::Sub, 64, 0, 1, odd}, {Op::Add, 64, 2, 1, 0}, {Op::Add, 64, 1, 1, 0}, {Op::Or, 64, 3, 4, 0}};
    const uint32_t result = loop % 5 ? static_cast<uint32_t>(nodes.size()) - 1 : 0, rounds = 1 + random() % 300;
    ExprId last = input;
    if (whole) {
      last = writer.add_rounds(nodes, result, input, rounds);
    } else {
      for (uint32_t i = 0; i < rounds; ++i) {
        const ExprId first = writer.next_expr();
        auto operand = [&](uint32_t r, ExprId constant) { return r == 0 ? constant : r == 1 ? last : first + r - 2; };
        for (const auto& node : nodes) writer.add_expr(node.op, node.width, operand(node.a, node.constant), operand(node.b, node.constant), 0, 0);
        last = first + result;
      }
    }
    Event branch;
    branch.kind = Kind::Branch;
    branch.thread = 0;
    branch.site = 1;
    branch.expr = writer.add_expr({Op::Ult, 1, last, odd, 0, 0});
    writer.add_event(branch);
  }
  writer.finish(Outcome::Truncated, 0);
}

// c[j] -= f * b[j] in rows, with rounds that are cut short, strides that change and numbers that follow no formula; as events or
// as a recorder's records.
size_t rows(const std::string& path, bool as_records) {
  Writer writer(path, Meta{});
  for (int i = 1; i <= 5; ++i) writer.add_site({uint64_t(i), "a.c", uint32_t(i), 1, "f", "a[i]", "[]"});
  writer.add_thread({"main", kNone, "main"});
  const uint32_t variable = writer.add_variable("a[]");
  Object array;
  array.base = 0x20000;
  array.size = 8 * 4096;
  array.zeroed = true;
  const uint32_t object = writer.add_object(array);
  Event start;
  start.kind = Kind::Start;
  start.thread = 0;
  writer.add_event(start);
  const uint64_t stamp = 1;
  std::vector<double> memory(4096);
  std::vector<stem_rec> records;
  std::mt19937_64 random(11);
  auto add = [&](Kind kind, uint32_t site, uint64_t index) {
    uint64_t bits;
    std::memcpy(&bits, &memory[index], 8);
    records.push_back({stem_head(static_cast<unsigned>(kind), 8, array.base + 8 * index), bits, 0, site});
  };
  for (uint64_t i = 0; i < 4096; ++i) memory[i] = double(random() % 1000) / 8, add(Kind::Write, 1, i);
  for (int row = 0; row < 600; ++row) {
    const uint64_t c = random() % 2000, b = 2000 + random() % 2000, stride = 1 + random() % 2, n = random() % 40;
    add(Kind::Read, 2, b);
    const double factor = memory[b];
    for (uint64_t j = 0; j < n; ++j) {
      add(Kind::Read, 3, c + j * stride);
      add(Kind::Read, 4, b + j);
      memory[c + j * stride] -= factor * memory[b + j];
      if (random() % 50 == 0) memory[c + j * stride] = double(random());
      if (!std::isfinite(memory[c + j * stride])) memory[c + j * stride] = 1;
      add(Kind::Write, 5, c + j * stride);
    }
  }
  size_t looped = 0;
  for (size_t at = 0; at < records.size();) {
    const stem_rec& r = records[at];
    const uint64_t key = r.head >> 48 | static_cast<uint64_t>(r.site) << 16, addr = r.head & 0xffffffffffffull;
    const auto kind = static_cast<Kind>(r.head >> 48 & 0xff);
    if (as_records && at >= 3 && records[at].site == 3 && records[at - 3].site == 3) {
      if (const size_t used = writer.repeat_loop(&records[at], records.size() - at, 3)) {
        looped += used;
        at += used;
        continue;
      }
    }
    ++at;
    if (as_records && writer.repeat(key, 0, kind, 8, addr, r.value, 0, false)) continue;
    Event e;
    e.kind = kind;
    e.thread = 0;
    e.site = r.site;
    e.size = 8;
    e.addr = addr;
    e.value = r.value;
    e.object = object;
    e.variable = variable;
    writer.add_event(e);
    if (as_records) writer.can_repeat(key, array.base, array.base, array.size, &stamp);
  }
  writer.finish(Outcome::Truncated, 0);
  return looped;
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
  CHECK(bytes_of(a) == bytes_of(b));
  Reader reader(b);
  while (reader.next() != Reader::Item::End) {
  }
  CHECK(reader.recovery().complete);
  CHECK(reader.expr_count() > 100000);
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

TEST_CASE("loops of reads and writes, written as a whole") {
  auto folder = std::filesystem::temp_directory_path();
  std::string a = folder / ("stem-loops-a" + std::to_string(::getpid())),
              b = folder / ("stem-loops-b" + std::to_string(::getpid()));
  CHECK(rows(a, false) == 0);
  CHECK(rows(b, true) > 20000);
  CHECK(bytes_of(a) == bytes_of(b));
  Reader reader(b);
  CHECK(check(reader).ok());
  CHECK(reader.recovery().complete);
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}
