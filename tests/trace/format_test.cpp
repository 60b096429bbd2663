#include "trace/format.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "random_trace.h"
#include "trace/reader.h"
#include "trace/text.h"
#include "trace/writer.h"
#include "util/error.h"

using namespace stem::trace;
namespace fs = std::filesystem;

namespace {

struct TempDir {
  fs::path path;
  TempDir() {
    std::string name = (fs::temp_directory_path() / "stem-format-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TempDir() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

std::vector<uint8_t> slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void check_same(const Trace& a, const Trace& b) {
  REQUIRE(a.events.size() == b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) {
    if (a.events[i] != b.events[i]) {
      CHECK(print_event(i, a.events[i], "") == print_event(i, b.events[i], ""));
      return;
    }
  }
  CHECK(a.exprs == b.exprs);
  CHECK(a.objects == b.objects);
  CHECK(a == b);
}

// The prefix of `whole` that `part` should be.
void check_prefix(const Trace& part, const Trace& whole) {
  REQUIRE(part.events.size() <= whole.events.size());
  CHECK(std::equal(part.events.begin(), part.events.end(), whole.events.begin()));
  REQUIRE(part.exprs.size() <= whole.exprs.size());
  CHECK(std::equal(part.exprs.begin(), part.exprs.end(), whole.exprs.begin()));
}

}  // namespace

TEST_CASE("random traces come back exactly, from the file and from text") {
  TempDir dir;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Trace trace = random_trace(seed, 20 + seed * 40);
    save(trace, dir / "t");
    Recovery recovery;
    Trace back = load(dir / "t", &recovery);
    check_same(trace, back);
    CHECK(recovery.complete);
    CHECK(recovery.events == trace.events.size());
    check_same(trace, parse(print(trace)));
  }
}

TEST_CASE("a trace of several blocks comes back") {
  TempDir dir;
  Trace trace = random_trace(7, 200000);
  save(trace, dir / "t");
  check_same(trace, load(dir / "t"));

  Reader tables(dir / "t", {.items = false});
  CHECK(tables.next() == Reader::Item::End);
  CHECK(tables.recovery().complete);
  CHECK(tables.recovery().events == trace.events.size());
  CHECK(tables.outcome() == trace.outcome);
  CHECK(tables.threads() == trace.threads);
  CHECK(tables.sites() == trace.sites);
  CHECK(tables.variables() == trace.variables);
}

TEST_CASE("extreme values come back") {
  TempDir dir;
  Builder b;
  b.trace().meta.cwd = std::string("\xff\xfe\n\0x", 5);
  Var far{~0ull - 3, 8, kNone, kNone};
  b.trace().messages = {"", "two"};
  b.write(0, far, ~0ull);
  b.read(0, far, ~0ull);
  b.write(0, {0, 1, kNone, kNone}, 255);
  b.rmw(0, {1ull << 63, 8, kNone, kNone}, 0, ~0ull);
  Object odd;
  odd.identity = "x007", odd.name = "x", odd.base = ~0ull, odd.size = ~0ull;
  b.trace().objects.push_back(odd);
  odd.identity = "99999999999999999999999999", odd.initial = {0, 255};
  b.trace().objects.push_back(odd);
  odd.identity = "x0", odd.born = 3;
  b.trace().objects.push_back(odd);
  b.trace().threads.push_back({"", kNone, ""});
  Trace trace = b.take(Outcome::Signalled, -11);
  save(trace, dir / "t");
  check_same(trace, load(dir / "t"));
}

TEST_CASE("a file cut at any byte gives a prefix and says so") {
  TempDir dir;
  Trace trace = random_trace(3, 300);
  std::string path = dir / "t";
  {
    // Several small blocks.
    Writer w(path, trace.meta);
    for (size_t i = 1; i < trace.sites.size(); ++i) w.add_site(trace.sites[i]);
    for (auto& t : trace.threads) w.add_thread(t);
    for (auto& o : trace.objects) w.add_object(o);
    for (auto& v : trace.variables) w.add_variable(v);
    for (auto& i : trace.inputs) w.add_input(i);
    ExprId done = 1;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      for (; done <= std::max(trace.events[i].expr, trace.events[i].leaf); ++done) w.add_expr(trace.exprs[done]);
      w.add_event(trace.events[i]);
      if (i % 50 == 49) w.flush();
    }
    for (; done < trace.exprs.size(); ++done) w.add_expr(trace.exprs[done]);
    w.finish(trace.outcome, trace.exit_code);
  }
  auto bytes = slurp(path);
  size_t most = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + size);
    if (size < sizeof(FileHeader)) {
      CHECK_THROWS_AS(Reader("cut", cut, {}), stem::UserError);
      continue;
    }
    Reader reader("cut", cut, {});
    Trace part = load(reader);
    CHECK_FALSE(reader.recovery().complete);
    CHECK_FALSE(reader.recovery().why.empty());
    CHECK(part.outcome == Outcome::Truncated);
    CHECK(part.events.size() >= most);
    most = part.events.size();
    check_prefix(part, trace);
    Reader tables("cut", cut, {.items = false});
    CHECK(tables.next() == Reader::Item::End);
    CHECK_FALSE(tables.recovery().complete);
    CHECK(tables.recovery().events <= part.events.size());
  }
  CHECK(most == trace.events.size());
}

TEST_CASE("a flipped bit is found, and what is before it kept") {
  TempDir dir;
  Trace trace = random_trace(4, 400);
  save(trace, dir / "t");
  auto bytes = slurp(dir / "t");
  for (size_t i = sizeof(FileHeader); i < bytes.size(); ++i) {
    auto bad = bytes;
    bad[i] ^= static_cast<uint8_t>(1u << (i % 8));
    Reader reader("bad", bad, {});
    Trace part = load(reader);
    CHECK_FALSE(reader.recovery().complete);
    check_prefix(part, trace);
  }
}

TEST_CASE("what is not a trace, or another version's, is refused with a clear message") {
  TempDir dir;
  auto message = [](const std::string& path) -> std::string {
    try {
      load(path);
    } catch (const stem::UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message(dir / "none").find("cannot open the trace") != std::string::npos);
  CHECK(message(dir.path.string()).find("is a directory") != std::string::npos);
  std::ofstream(dir / "text") << "#!/bin/sh\necho hello, this is not a trace\n";
  CHECK(message(dir / "text").find("not a STEM trace") != std::string::npos);
  save(random_trace(1, 50), dir / "t");
  auto bytes = slurp(dir / "t");
  bytes[8] = 99;
  std::ofstream(dir / "v", std::ios::binary)
      .write(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  CHECK(message(dir / "v").find("format version 99, this STEM reads version 3") != std::string::npos);
  CHECK_THROWS_AS(save(random_trace(1, 50), dir / "no/such/dir/t"), stem::UserError);
}

TEST_CASE("a full disk leaves a readable prefix") {
  // /dev/full takes the header's place only: a limit on the file size is the portable stand-in for a full disk.
  Trace trace = random_trace(5, 50);
  CHECK_THROWS_AS([&] { Writer w("/dev/full", trace.meta); }(), WriteError);
}
