// What a trace costs: bytes for each event on disk, memory while it is written, read and checked.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "trace/checker.h"
#include "trace/reader.h"
#include "trace/writer.h"

using namespace stem::trace;
namespace fs = std::filesystem;

namespace {

size_t resident_mb() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) >> 20;
}

// Two threads under a serialising scheduler that switches now and then.
class Run {
 public:
  explicit Run(const std::string& path) : writer_(path, {}) {
    for (uint32_t line = 1; line <= 16; ++line) {
      Site s;
      s.key = line, s.file = "bench.c", s.line = line;
      writer_.add_site(s);
    }
    writer_.add_thread({"main", kNone, "main"});
    writer_.add_thread({"main/1", 0, "worker"});
    put(Kind::Start, 0);
    put(Kind::Create, 1, 0, 0, 1);
    thread_ = 1;
    put(Kind::Start, 0);
    Object o;
    o.kind = ObjectKind::Global, o.name = o.identity = "m", o.base = kMutex, o.size = 40;
    writer_.add_object(o);
    o.name = o.identity = "data", o.base = kData, o.size = 1 << 22, o.zeroed = true;
    writer_.add_object(o);
    writer_.add_variable("m");
    writer_.add_variable("data[]");
  }
  static constexpr uint64_t kMutex = 0x1000, kData = 0x100000;

  uint64_t put(Kind kind, SiteId site, uint64_t addr = 0, uint8_t size = 0, uint64_t value = 0, ExprId expr = 0, bool leaf = false) {
    Event e;
    e.kind = kind, e.site = site, e.thread = thread_, e.addr = addr, e.size = size, e.value = value, e.expr = expr;
    if (addr) e.object = e.variable = addr >= kData ? 1 : 0;
    if (leaf) e.leaf = writer_.next_expr();
    return writer_.add_event(e);
  }
  void maybe_switch(unsigned one_in) {
    if (rng() % one_in == 0) thread_ ^= 1;
  }
  ExprId expr(const Expr& e) { return writer_.add_expr(e); }
  ExprId next_expr() const { return writer_.next_expr(); }
  uint64_t events() const { return writer_.next_event(); }
  void finish() { writer_.finish(Outcome::Truncated, 0); }
  std::mt19937_64 rng{1};

 private:
  Writer writer_;
  ThreadId thread_ = 0;
};

// Locked increments, with expressions and a branch on what was read.
void counter(Run& run, uint64_t events) {
  ExprId one = run.expr({Op::Const, 32, 0, 0, 0, 1}), limit = run.expr({Op::Const, 32, 0, 0, 0, 1u << 30});
  for (uint32_t value = 0; run.events() < events; ++value) {
    run.maybe_switch(50);
    run.put(Kind::Lock, 2, Run::kMutex, 0, 1);
    ExprId leaf = run.next_expr();
    run.put(Kind::Read, 3, Run::kData, 4, value, 0, true);
    run.put(Kind::Branch, 4, 0, 0, 1, run.expr({Op::Ult, 1, leaf, limit, 0, 0}));
    run.put(Kind::Write, 5, Run::kData, 4, value + 1, run.expr({Op::Add, 32, leaf, one, 0, 0}));
    run.put(Kind::Unlock, 6, Run::kMutex, 0, 0);
  }
}

// Blocks of a matrix: c -= b * a, in floating point.
void blocks(Run& run, uint64_t events) {
  std::vector<double> m(1 << 19);
  constexpr int n = 16;
  auto access = [&](Kind kind, SiteId site, size_t i) {
    uint64_t bits;
    std::memcpy(&bits, &m[i], 8);
    run.put(kind, site, Run::kData + i * 8, 8, bits);
  };
  for (double& x : m) x = 0;
  for (size_t i = 0; i < 4096; ++i) m[i] = static_cast<double>(run.rng() % 1000000) / 7e9, access(Kind::Write, 7, i);
  while (run.events() < events) {
    size_t a = run.rng() % 16 * 256, b = run.rng() % 16 * 256, c = run.rng() % 16 * 256;
    for (int k = 0; k < n; ++k) {
      for (int j = 0; j < n; ++j) {
        access(Kind::Read, 8, b + j * n + k);
        double factor = m[b + j * n + k];
        for (int i = 0; i < n; ++i) {
          run.maybe_switch(1000);
          access(Kind::Read, 9, a + k * n + i);
          access(Kind::Read, 10, c + j * n + i);
          double product = factor * m[a + k * n + i];
          m[c + j * n + i] -= product;
          access(Kind::Write, 11, c + j * n + i);
        }
      }
    }
  }
}

// Accesses all over, values without pattern: the worst there is.
void scattered(Run& run, uint64_t events) {
  while (run.events() < events) {
    run.maybe_switch(10);
    uint64_t at = Run::kData + run.rng() % (1 << 16) * 8;
    run.put(Kind::Write, 12, at, 8, run.rng() % 1000);
    run.put(Kind::Read, 13, at, 8, 0);
  }
}

}  // namespace

TEST_CASE("bytes for each event, and memory, stay within bounds") {
  std::string name = (fs::temp_directory_path() / "stem-size-XXXXXX").string();
  fs::path dir = mkdtemp(name.data());
  constexpr uint64_t n = 1000000;
  struct Shape {
    const char* name;
    void (*generate)(Run&, uint64_t);
    double most_bytes;
  };
  for (Shape shape : {Shape{"locked counter", counter, 0.1}, Shape{"matrix blocks", blocks, 0.5}, Shape{"scattered", scattered, 5.0}}) {
    std::string path = dir / "t";
    size_t before = resident_mb();
    uint64_t events;
    {
      Run run(path);
      shape.generate(run, n);
      events = run.events();
      run.finish();
    }
    double bytes = static_cast<double>(fs::file_size(path)) / static_cast<double>(events);
    Reader reader(path, {.keep_nondets = false});
    CheckResult result = check(reader);
    size_t memory = resident_mb() - std::min(before, resident_mb());
    MESSAGE(std::string(shape.name) << ": " << bytes << " bytes an event, " << memory << " MB");
    CHECK(reader.recovery().complete);
    CHECK(result.events == events);
    if (shape.generate != scattered) CHECK(result.ok());
    CHECK(bytes < shape.most_bytes);
    CHECK(memory < 200);
  }
  fs::remove_all(dir);
}
