// Records that come round again are written along paths, many rounds at once. The file must be the one that the
// ordinary way gives, which writes record by record: random loops of everything that a path can hold, with everything
// that can end one.
#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "producer.h"
#include "trace/checker.h"
#include "trace/reader.h"
#include "tracer/launch/collect/translate.h"

using namespace stem;
using namespace stem::collect;
namespace fs = std::filesystem;

namespace {

std::string file_of(const Stream& stream, size_t each) {
  const std::string path = fs::temp_directory_path() / ("stem-paths-" + std::to_string(getpid()));
  {
    trace::Writer writer(path, {});
    Translator translator(writer);
    for (size_t at = 0; at < stream.records.size(); at += each)
      translator.records(&stream.records[at], stream.records.data() + std::min(at + each, stream.records.size()));
    translator.finish();
    CHECK_FALSE(translator.broken());
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  trace::Reader reader(path);
  const trace::CheckResult result = trace::check(reader);
  CHECK(reader.recovery().complete);
  for (const trace::Problem& problem : result.problems) MESSAGE(to_string(problem));
  CHECK(result.ok());
  fs::remove(path);
  return out.str();
}

// One thread's program: loops over steps, each of which knows how to write its records.
class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    stream.begin();
    stream.raw(STEM_RAW_Module, 0, 0x10000000, 0x10001000, 0x100000);
    stream.blob(STEM_BLOB_MODULE_PATH, fs::read_symlink("/proc/self/exe"));
    // h = (h ^ h >> 7) * odd, and one of other shape and width.
    define({{STEM_OP_LShr, 64, 1, 0, 7}, {STEM_OP_Xor, 64, 1, 2, 0}, {STEM_OP_Mul, 64, 3, 0, 0x9e3779b97f4a7c15}}, 2);
    define({{STEM_OP_Sub, 32, 0, 1, 77},
            {STEM_OP_Add, 32, 2, 2, 0},
            {STEM_OP_Or, 32, 3, 1, 0},
            {STEM_OP_And, 32, 4, 0, 0xffffff}},
           2);
    for (uint64_t i = 0; i < kWords; ++i)
      store(0x500, kBase + 8 * i, 8, std::bit_cast<uint64_t>(double(random_() % 1000) / 8), 0);
  }

  void loop() {
    std::vector<std::function<void(uint64_t)>> steps;
    const size_t n = 1 + random_() % 6;
    for (size_t i = 0; i < n; ++i) steps.push_back(step());
    const uint64_t rounds = random_() % 200;
    for (uint64_t round = 0; round < rounds; ++round) {
      for (auto& step : steps)
        if (random_() % 400) step(round);                          // now and then one is left out
      if (random_() % 300 == 0) memory_[random_() % kWords] ^= 1;  // somebody unseen wrote
    }
  }

  Stream stream;

 private:
  static constexpr uint64_t kBase = 0x700000, kWords = 3000;
  struct Node {
    unsigned op, width;
    uint32_t a, b;
    uint64_t constant;
  };

  void define(const std::vector<Node>& nodes, uint32_t result) {
    const uint32_t head[] = {0, 0, static_cast<uint32_t>(nodes.size()), result};
    std::string bytes(reinterpret_cast<const char*>(head), sizeof head);
    for (const Node& node : nodes) {
      const stem_rec r{stem_head(STEM_RAW_Expr, node.op, node.width), node.constant, node.a, node.b};
      bytes.append(reinterpret_cast<const char*>(&r), sizeof r);
    }
    stream.blob(STEM_BLOB_ROUND, bytes);
  }
  uint32_t site() { return 0x10002000 + 16 * ++sites_; }
  uint64_t& word(uint64_t addr) { return memory_[(addr - kBase) / 8]; }
  void store(uint32_t at, uint64_t addr, unsigned size, uint64_t value, uint32_t expr) {
    stream.raw(STEM_KIND_Write, size, addr, value, expr, at >= 0x10000000 ? at : 0x10001000 + at);
    word(addr) = value;
  }
  uint64_t load(uint32_t at, uint64_t addr, unsigned aux) {
    stream.raw(STEM_KIND_Read, 8 | aux, addr, word(addr), 0, at);
    if (aux & STEM_AUX_LEAF) ++ids_;
    return word(addr);
  }
  uint64_t place() { return kBase + 8 * (random_() % (kWords / 2)); }
  uint64_t stride() { return random_() % 4 ? 8 : 8 * (random_() % 5); }
  uint64_t at(uint64_t place, uint64_t stride, uint64_t round) { return place + (round * stride) % (8 * (kWords / 2)); }

  std::function<void(uint64_t)> step() {
    const uint32_t a = site(), b = site(), c = site();
    const uint64_t p = place(), q = place(), s = stride(), t = stride();
    switch (random_() % 7) {
      case 0:  // x = y
        return [=, this](uint64_t round) { store(b, at(p, s, round), 8, load(a, at(q, t, round), 0), 0); };
      case 1: {  // c[i] -= factor * d[i]
        const double factor = double(random_() % 100) / 16;
        return [=, this](uint64_t round) {
          const uint64_t to = at(p, 8, round);
          const double x = std::bit_cast<double>(load(a, to, STEM_AUX_PINNED)),
                       y = std::bit_cast<double>(load(b, at(q, 8, round), STEM_AUX_PINNED));
          const double z = x - factor * y;
          store(c, to, 8, std::bit_cast<uint64_t>(z == z ? z : 0.0), 0);
        };
      }
      case 2:  // lock; ++count; unlock
        return [=, this](uint64_t) {
          stream.raw(STEM_KIND_Lock, 0, 0x900000, 1, 0, a);
          const uint64_t value = load(b, p, STEM_AUX_LEAF);
          stream.raw(STEM_RAW_Expr, STEM_OP_Add, 64 | 64 << 8, 1, ids_, 0);
          store(c, p, 8, value + 1, ++ids_);
          stream.raw(STEM_KIND_Unlock, 0, 0x900000, 0, 0, a + 1);
        };
      case 3:  // if (i < n)
        return [=, this](uint64_t round) {
          const uint64_t value = load(a, q, STEM_AUX_LEAF);
          stream.raw(STEM_RAW_Expr, STEM_OP_Slt, 1 | 64 << 8, round, 0, ids_);
          stream.raw(STEM_KIND_Branch, 0, 0, static_cast<int64_t>(round) < static_cast<int64_t>(value), ++ids_, b);
        };
      case 4: {  // sum += hash(x)
        const uint32_t count = 1 + random_() % 50;
        return [=, this](uint64_t round) {
          uint64_t h = load(a, at(q, t, round), STEM_AUX_LEAF);
          const uint32_t rounds = random_() % 200 ? count : 3;
          stream.raw(STEM_RAW_Rounds, 0, 0, rounds, ids_, 1);
          for (uint32_t i = 0; i < rounds; ++i) h = (h ^ h >> 7) * 0x9e3779b97f4a7c15;
          ids_ += 3 * rounds;
          const uint32_t hash = ids_;
          const uint64_t sum = load(b, p, STEM_AUX_LEAF);
          stream.raw(STEM_RAW_Expr, STEM_OP_Xor, 64 | 64 << 8, 0, ids_, hash);
          store(c, p, 8, sum ^ h, ++ids_);
        };
      }
      case 5: {  // the same on 32 bits, of what the step before read
        const uint32_t count = 1 + random_() % 9;
        return [=, this](uint64_t) {
          const uint64_t value = load(a, q, STEM_AUX_LEAF);
          stream.raw(STEM_RAW_Expr, STEM_OP_Trunc, 32 | 64 << 8, 0, ids_, 0);
          stream.raw(STEM_RAW_Rounds, 0, 0, count, ++ids_, 2);
          auto h = static_cast<uint32_t>(value);
          for (uint32_t i = 0; i < count; ++i) h = 2 * (77 - h) | h;
          ids_ += 4 * count;
          stream.raw(STEM_KIND_Pin, 0, 0, h, ids_ - 1, b);
        };
      }
      default:  // what was read in the round before
        return [=, this](uint64_t round) {
          const uint32_t before = last_;
          const uint64_t old = last_value_;
          last_value_ = load(a, at(q, s, round), STEM_AUX_LEAF);
          last_ = ids_;
          if (before == 0) return;
          stream.raw(STEM_RAW_Expr, STEM_OP_Add, 64 | 64 << 8, 0, ids_, before);
          store(b, p, 8, last_value_ + old, ++ids_);
        };
    }
  }

  std::mt19937_64 random_;
  std::vector<uint64_t> memory_ = std::vector<uint64_t>(kWords);
  uint32_t sites_ = 0, ids_ = 0, last_ = 0;
  uint64_t last_value_ = 0;
};

}  // namespace

TEST_CASE("records along paths give the file that they give one by one") {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Program program(seed);
    for (int i = 0; i < 25; ++i) program.loop();
    program.stream.exit(0);
    const std::string one_by_one = file_of(program.stream, 1);
    CHECK(one_by_one == file_of(program.stream, program.stream.records.size()));
    CHECK(one_by_one == file_of(program.stream, 100));
  }
}
