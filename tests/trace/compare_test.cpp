#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "random_trace.h"
#include "trace/compare.h"
#include "trace/writer.h"

using namespace stem::trace;
namespace fs = std::filesystem;

namespace {

std::optional<Difference> compared(const Trace& a, const Trace& b, bool visible = false) {
  std::string name = (fs::temp_directory_path() / "stem-compare-XXXXXX").string();
  fs::path dir = mkdtemp(name.data());
  save(a, dir / "a");
  save(b, dir / "b");
  auto result = compare((dir / "a").string(), (dir / "b").string(), {.visible_only = visible});
  fs::remove_all(dir);
  return result;
}

// As the same run in another process: all memory elsewhere.
Trace moved(Trace t, uint64_t by) {
  for (Object& o : t.objects) o.base += by;
  for (Event& e : t.events) {
    if (e.addr) e.addr += by;
    if (e.kind == Kind::Wait) e.value += by;
  }
  return t;
}

}  // namespace

TEST_CASE("a run equals itself, also at other addresses") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Trace t = random_trace(seed, 500);
    CHECK_FALSE(compared(t, t));
    CHECK_FALSE(compared(t, moved(t, 0x7f0000)));
  }
}

TEST_CASE("pointers are compared by what they point to") {
  auto build = [](uint64_t by, uint64_t offset) {
    Builder b;
    auto p = b.global("p", 8), x = b.global("x", 4);
    b.write(0, p, x.addr + by + offset, b.site("a.c", 3, "p"));
    return moved(b.take(), by);
  };
  CHECK_FALSE(compared(build(0, 0), build(0x5000, 0)));
  auto difference = compared(build(0, 0), build(0x5000, 2));
  REQUIRE(difference);
  CHECK(difference->event == 1);
  CHECK(difference->what.find("main a.c:3:1 p: write of p has value") != std::string::npos);
}

TEST_CASE("what memory held before it was used may differ, and copies of it; not what the program does with it") {
  auto build = [](uint64_t garbage, uint64_t branch, uint16_t flags) {
    Builder b;
    auto x = b.global("x", 4), y = b.global("y", 4);
    Event external;
    external.kind = Kind::External;
    external.addr = x.addr, external.size = 4, external.value = garbage, external.object = x.object, external.variable = x.variable;
    external.flags = flags;
    b.trace().events.push_back(external);
    b.read(0, x, garbage);
    b.write(0, y, garbage);
    b.read(0, y, garbage);
    b.write(0, x, branch);
    return b.take();
  };
  CHECK_FALSE(compared(build(7, 1, kFresh), build(9, 1, kFresh)));
  CHECK(compared(build(7, 1, kFresh), build(9, 2, kFresh)));
  CHECK(compared(build(7, 1, 0), build(9, 1, 0)));
}

TEST_CASE("the padding of a struct may differ, where nobody wrote it") {
  // A local of 16 bytes: a long, a char, seven bytes that nobody writes; copied in two pieces.
  auto build = [](uint64_t piece, bool written, bool branch) {
    Builder b;
    const Var p = b.alloc(0, "p", 16, 0, kStack), copy = b.global("to", 8);
    const Var second{p.addr + 8, 8, p.object, p.variable}, kind{p.addr + 8, 1, p.object, p.variable};
    b.write(0, kind, piece & 0xff);
    if (written) b.write(0, second, piece);
    b.read(0, second, piece);
    b.write(0, copy, piece);
    b.read(0, copy, piece);
    if (branch) b.write(0, kind, piece >> 8 & 1);
    return b.take();
  };
  CHECK_FALSE(compared(build(0x1105, false, false), build(0x2205, false, false)));
  CHECK(compared(build(0x1105, true, false), build(0x2205, true, false)));
  CHECK(compared(build(0x1105, false, false), build(0x2206, false, false)));
  CHECK(compared(build(0x1105, false, true), build(0x2205, false, true)));
}

TEST_CASE("the first difference is told in source terms") {
  auto build = [](uint64_t value, bool other_thread, bool longer) {
    Builder b;
    auto x = b.global("x", 4);
    auto t = b.spawn("w");
    b.write(other_thread ? t : 0, x, value, b.site("a.c", 3, "x"));
    if (longer) b.event(0, Kind::Yield, b.site("a.c", 9));
    return b.take();
  };
  auto what = [&](const Trace& a, const Trace& b) { auto d = compared(a, b); return d ? d->what : "the same"; };
  CHECK(what(build(1, false, false), build(2, false, false)) == "main a.c:3:1 x: write of x has value 1 in the first run, 2 in the second");
  CHECK(what(build(1, false, false), build(1, true, false)) ==
        "the first run has main a.c:3:1 x: write of x; the second main/1 a.c:3:1 x: write of x");
  CHECK(what(build(1, false, false), build(1, false, true)).find("the second main a.c:9:1: yield") != std::string::npos);
}

TEST_CASE("only visible events are compared when asked") {
  Builder a, b;
  a.pin(0, a.constant(8, 1), 1);
  Trace with_pin = a.take(), without = b.take();
  CHECK(compared(with_pin, without));
  CHECK_FALSE(compared(with_pin, without, true));
}
