#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <fstream>

#include "producer.h"
#include "trace/eval.h"
#include "trace/reader.h"
#include "trace/text.h"
#include "tracer/launch/collect/translate.h"

using namespace stem;
using namespace stem::collect;
using trace::Kind;
namespace fs = std::filesystem;

namespace {

struct TempDir {
  fs::path path;
  TempDir() {
    std::string name = (fs::temp_directory_path() / "stem-collect-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TempDir() { fs::remove_all(path); }
};

trace::Trace translate(const Stream& stream, trace::Recovery* recovery = nullptr) {
  TempDir dir;
  std::string path = dir.path / "t";
  trace::Writer writer(path, {});
  Translator translator(writer);
  translator.records(stream.records.data(), stream.records.data() + stream.records.size());
  translator.finish();
  return trace::load(path, recovery);
}

std::vector<const trace::Event*> of_kind(const trace::Trace& t, Kind kind) {
  std::vector<const trace::Event*> out;
  for (const auto& e : t.events) {
    if (e.kind == kind) out.push_back(&e);
  }
  return out;
}

// Starts the real program on the memory; `life` is the read end of the pipe.
pid_t start_collector(Memory& memory, int life, const std::string& output, rlim_t most_bytes = RLIM_INFINITY) {
  pid_t pid = fork();
  if (pid == 0) {
    if (most_bytes != RLIM_INFINITY) {
      rlimit limit{most_bytes, most_bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
      int null = open("/dev/null", O_WRONLY);
      dup2(null, 2);
    }
    std::string fd = std::to_string(memory.fd), pipe = std::to_string(life);
    execl(STEM_BUILD_DIR "/lib/stem/stem-collect", "stem-collect", "--fd", fd.c_str(), "--life", pipe.c_str(), "--output", output.c_str(), nullptr);
    _exit(127);
  }
  return pid;
}

int exit_code(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Stream counting(int n) {
  Stream s;
  s.begin();
  for (int i = 0; i < n; ++i) {
    s.raw(STEM_KIND_Read, 4, 0x5000, static_cast<uint64_t>(i));
    s.raw(STEM_KIND_Write, 4, 0x5000, static_cast<uint64_t>(i + 1));
  }
  return s;
}

}  // namespace

TEST_CASE("records become events, threads, inputs and meta data") {
  Stream s;
  s.begin();
  s.thread(1, 0, "main/1", "worker");
  s.raw(STEM_KIND_Create, 0, 0, 1);
  s.raw(STEM_KIND_Input, 0, 0, 0);
  s.blob(STEM_BLOB_INPUT_NAME, "a");
  s.blob(STEM_BLOB_INPUT_BYTES, std::string("\x05\0\0\0", 4));
  s.raw(STEM_RAW_Switch, 0, 0, 1);
  s.raw(STEM_KIND_Start, 0, 0, 0);
  s.raw(STEM_KIND_Lock, 1 << 1, 0x7000, 1, 1 << 10);
  s.raw(STEM_KIND_Unlock, 0, 0x7000, 0);
  s.raw(STEM_KIND_End, 0, 0, 0);
  s.raw(STEM_RAW_Switch, 0, 0, 0);
  s.raw(STEM_KIND_Join, 0, 0, 1);
  s.blob(STEM_BLOB_MESSAGE, "{\"kind\":\"note\"}");
  s.exit(3);
  trace::Recovery recovery;
  trace::Trace t = translate(s, &recovery);
  CHECK(recovery.complete);
  CHECK(t.meta.seed == 7);
  CHECK(t.meta.argv == std::vector<std::string>{"test"});
  REQUIRE(t.threads.size() == 2);
  CHECK(t.threads[1] == trace::Thread{"main/1", 0, "worker"});
  CHECK(t.inputs == std::vector<trace::Input>{{"a", {5, 0, 0, 0}}});
  CHECK(of_kind(t, Kind::Lock)[0]->flags == (trace::kTry | trace::kSpin));
  CHECK(of_kind(t, Kind::Lock)[0]->thread == 1);
  CHECK(t.messages.size() == 1);
  CHECK(t.outcome == trace::Outcome::Exited);
  CHECK(t.exit_code == 3);
}

TEST_CASE("expressions are renumbered over threads, constants become nodes") {
  Stream s;
  s.begin();
  s.thread(1, 0, "main/1", "worker");
  s.raw(STEM_KIND_Create, 0, 0, 1);
  s.raw(STEM_KIND_Read, 4 | STEM_AUX_LEAF, 0x5000, 5);                       // main's 1
  s.raw(STEM_RAW_Switch, 0, 0, 1);
  s.raw(STEM_KIND_Start, 0, 0, 0);
  s.raw(STEM_KIND_Read, 4 | STEM_AUX_LEAF, 0x5000, 5);                       // worker's 1
  s.records.push_back({stem_expr_head(STEM_OP_Add, 32, 32, 0), 10, 1, 0});     // 2 = 1 + 10
  s.records.push_back({stem_expr_head(STEM_OP_Ult, 1, 32, 0), 100, 0, 2});     // 3 = 100 < 2
  s.raw(STEM_KIND_Branch, 0, 0, 0, 3);
  s.raw(STEM_RAW_Switch, 0, 0, 0);
  s.records.push_back({stem_expr_head(STEM_OP_Eq, 1, 32, 0), 5, 1, 0});        // main's 2
  s.raw(STEM_RAW_Expr2, 0, 0, 9, 0);
  s.records.push_back({stem_expr_head(STEM_OP_Ite, 32, 0, 0), 0, 2, 1});       // main's 3 = 2 ? 1 : 9
  s.raw(STEM_KIND_Write, 4, 0x5004, 5, 3);
  s.raw(STEM_KIND_Rmw, 4 | STEM_AUX_LEAF | STEM_AUX_ATOMIC, 0x5000, 5);        // main's 4
  s.records.push_back({stem_expr_head(STEM_OP_Add, 32, 32, 0), 1, 4, 0});      // main's 5
  s.raw(STEM_RAW_Value2, 0, 0, 6, 5);
  s.exit(0);
  trace::Trace t = translate(s);
  auto values = trace::recorded_values(t);
  const auto* branch = of_kind(t, Kind::Branch)[0];
  CHECK(values[branch->expr] == 0);
  CHECK(t.exprs[t.exprs[branch->expr].b].op == trace::Op::Add);
  const auto* write = of_kind(t, Kind::Write)[0];
  CHECK(t.exprs[write->expr].op == trace::Op::Ite);
  CHECK(values[write->expr] == 5);
  CHECK(t.exprs[t.exprs[write->expr].c].value == 9);
  const auto* rmw = of_kind(t, Kind::Rmw)[0];
  CHECK(rmw->value == 5);
  CHECK(rmw->value2 == 6);
  CHECK(values[rmw->expr] == 6);
  CHECK(&t.events[t.exprs[rmw->leaf].value] == rmw);
  for (trace::ExprId i = 1; i < t.exprs.size(); ++i) CHECK(trace::malformed(t.exprs[i], i, t.exprs) == nullptr);
}

TEST_CASE("a loop that only computed is the expressions of its rounds") {
  Stream whole, single;
  for (Stream* s : {&whole, &single}) {
    s->begin();
    s->raw(STEM_KIND_Read, 8 | STEM_AUX_LEAF, 0x1000, 7);
  }
  const stem_rec nodes[] = {{stem_expr_head(STEM_OP_LShr, 64, 64, 0), 7, 1, 0}, {stem_expr_head(STEM_OP_Xor, 64, 64, 0), 0, 1, 2}, {stem_expr_head(STEM_OP_Mul, 64, 64, 0), 5, 3, 0}};
  const uint32_t head[] = {0, 0, 3, 2};
  whole.blob(STEM_BLOB_ROUND, std::string(reinterpret_cast<const char*>(head), sizeof head) + std::string(reinterpret_cast<const char*>(nodes), sizeof nodes));
  whole.raw(STEM_RAW_Rounds, 0, 0, 2000, 1, 1);
  for (uint32_t i = 0, id = 1; i < 2000; ++i, id = 1 + 3 * i) {
    single.raw(STEM_RAW_Expr, STEM_OP_LShr, nodes[0].head & 0xffff, 7, id, 0);
    single.raw(STEM_RAW_Expr, STEM_OP_Xor, nodes[1].head & 0xffff, 0, id, 2 + 3 * i);
    single.raw(STEM_RAW_Expr, STEM_OP_Mul, nodes[2].head & 0xffff, 5, 3 + 3 * i, 0);
  }
  uint64_t expected = 7;
  for (int i = 0; i < 2000; ++i) expected = (expected ^ expected >> 7) * 5;
  for (Stream* s : {&whole, &single}) {
    s->raw(STEM_KIND_Write, 8, 0x1008, expected, 1 + 3 * 2000);
    s->exit(0);
    trace::Trace t = translate(*s);
    auto writes = of_kind(t, Kind::Write);
    REQUIRE(writes.size() == 1);
    CHECK(trace::recorded_values(t)[writes[0]->expr] == expected);
    CHECK(t.exprs[writes[0]->expr].op == trace::Op::Mul);
    CHECK(t.exprs.size() > 6000);
  }
  // Rounds that nobody told, or that make no sense, end the trace.
  for (unsigned wrong = 0; wrong < 3; ++wrong) {
    Stream s;
    s.begin();
    s.raw(STEM_KIND_Read, 8 | STEM_AUX_LEAF, 0x1000, 7);
    if (wrong == 1) s.blob(STEM_BLOB_ROUND, std::string(reinterpret_cast<const char*>(head), sizeof head));
    if (wrong == 2) s.blob(STEM_BLOB_ROUND, std::string(reinterpret_cast<const char*>(head), sizeof head) + std::string(3 * sizeof(stem_rec), '\xff'));
    s.raw(STEM_RAW_Rounds, 0, 0, 5, 1, 1);
    s.exit(0);
    CHECK(translate(s).outcome == trace::Outcome::Truncated);
  }
}

TEST_CASE("a read that no write explains is preceded by an external write, and its object tainted") {
  Stream s;
  s.begin();
  s.raw(STEM_KIND_Alloc, 0, 0x9000, 16);
  s.raw(STEM_KIND_Write, 8, 0x9000, 0x1122334455667788);
  s.raw(STEM_KIND_Read, 4, 0x9000, 0x55667788);            // explained
  s.raw(STEM_KIND_Read, 4, 0x9008, 77);                    // the first of these bytes: the initial value
  s.raw(STEM_KIND_Read, 4, 0x9008, 77);
  s.raw(STEM_KIND_Read, 2, 0x9004, 0xffff);                // half of the write, changed by nobody we know
  s.raw(STEM_KIND_Read, 8, 0x9000, 0x1122ffff55667788);    // explained again
  s.raw(STEM_KIND_Free, 0, 0x9000, 0);
  s.raw(STEM_KIND_Alloc, trace::kZeroed, 0x9000, 16);
  s.raw(STEM_KIND_Read, 8, 0x9000, 0);
  s.raw(STEM_KIND_Read, 4, 0x9008, 1);                     // calloc said 0
  s.exit(0);
  trace::Trace t = translate(s);
  auto external = of_kind(t, Kind::External);
  REQUIRE(external.size() == 2);
  CHECK(external[0]->value == 0xffff);
  CHECK(external[0][1].kind == Kind::Read);
  CHECK(external[0][1].flags == trace::kTainted);
  CHECK(external[1]->value == 1);
  CHECK(external[0]->object != external[1]->object);
  auto reads = of_kind(t, Kind::Read);
  CHECK(reads[2]->flags == 0);
  CHECK(reads[4]->flags == trace::kTainted);
  CHECK(reads[5]->flags == 0);  // a new object at the same address
  CHECK(t.objects[reads[5]->object].identity == "heap()@main#1");
}

TEST_CASE("records that make no sense end the trace, and crash nothing") {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 300; ++round) {
    Stream s = counting(20);
    for (int i = 0; i < 20; ++i) {
      stem_rec r{rng(), rng(), static_cast<uint32_t>(rng()), static_cast<uint32_t>(rng())};
      if (rng() % 2) r.head = stem_head(rng() % 60 + (rng() % 2 ? 0 : 0xc0), rng(), rng());
      if (rng() % 2) r.value %= 64, r.expr %= 8, r.site %= 8;
      s.records.push_back(r);
    }
    trace::Recovery recovery;
    trace::Trace t = translate(s, &recovery);
    CHECK(recovery.complete);
    CHECK(t.events.size() >= 41);
  }
}

TEST_CASE("stem-collect writes the whole run and says so") {
  TempDir dir;
  Memory memory;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t pid = start_collector(memory, ends[0], dir.path / "t");
  Stream s = counting(100000);
  s.exit(4);
  memory.fill(0, s.records, true);
  __atomic_store_n(&memory.control->closing, 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&memory.control->wake_collector, 1, __ATOMIC_RELEASE);
  CHECK(exit_code(pid) == 0);
  CHECK(memory.control->closing == 2);
  trace::Recovery recovery;
  trace::Trace t = trace::load(dir.path / "t", &recovery);
  CHECK(recovery.complete);
  CHECK(t.events.size() == 200002);
  CHECK(t.outcome == trace::Outcome::Exited);
  CHECK(t.exit_code == 4);
  close(ends[0]), close(ends[1]);
}

TEST_CASE("a program that is killed leaves everything up to its last record") {
  TempDir dir;
  Memory memory;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  int life = fcntl(ends[0], F_DUPFD, 50);
  pid_t pid = start_collector(memory, life, dir.path / "t");
  Stream s = counting(50000);
  memory.fill(0, s.records, false);
  close(ends[1]);  // as the kernel does
  CHECK(exit_code(pid) == 0);
  trace::Recovery recovery;
  trace::Trace t = trace::load(dir.path / "t", &recovery);
  CHECK(recovery.complete);
  CHECK(t.events.size() == 100001);
  CHECK(t.outcome == trace::Outcome::Truncated);
  close(ends[0]), close(life);
}

TEST_CASE("a full disk: the program goes on, the prefix is readable, the exit code tells") {
  TempDir dir;
  Memory memory;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  int life = fcntl(ends[0], F_DUPFD, 50);
  pid_t pid = start_collector(memory, life, dir.path / "t", 100000);
  Stream s;
  s.begin();
  std::mt19937_64 rng(5);
  for (int i = 0; i < 500000; ++i) s.raw(STEM_KIND_Write, 8, 0x5000 + rng() % 4096 * 8, rng());
  memory.fill(0, s.records, true);
  close(ends[1]);
  CHECK(exit_code(pid) == 1);
  CHECK(memory.control->failed == 1);
  trace::Recovery recovery;
  trace::Trace t = trace::load(dir.path / "t", &recovery);
  CHECK_FALSE(recovery.complete);
  CHECK(recovery.why == "the recording was cut off");
  CHECK(fs::file_size(dir.path / "t") <= 100000);
  close(ends[0]), close(life);
}

TEST_CASE("a collector that is killed leaves a readable prefix") {
  TempDir dir;
  Memory memory;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  int life = fcntl(ends[0], F_DUPFD, 50);
  pid_t pid = start_collector(memory, life, dir.path / "t");
  Stream s = counting(2000000);
  memory.fill(0, s.records, false);
  kill(pid, SIGKILL);
  CHECK(exit_code(pid) == -1);
  trace::Recovery recovery;
  trace::Trace t = trace::load(dir.path / "t", &recovery);
  CHECK_FALSE(recovery.complete);
  CHECK(t.events.size() > 100000);
  for (size_t i = 1; i + 1 < t.events.size(); i += 2) REQUIRE(t.events[i + 1].value == t.events[i].value + 1);
  close(ends[0]), close(ends[1]), close(life);
}

TEST_CASE("parallel streams are merged by ticket") {
  TempDir dir;
  Memory memory(true);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  int life = fcntl(ends[0], F_DUPFD, 50);
  pid_t pid = start_collector(memory, life, dir.path / "t");
  constexpr int kThreads = 3;
  Stream streams[kThreads];
  uint64_t ticket = 0;
  auto timed = [&](int t) -> Stream& {
    streams[t].raw(STEM_RAW_Ticket, 0, 0, ticket++);
    return streams[t];
  };
  streams[0].blob(STEM_BLOB_META, "{\"mode\":\"parallel\"}");
  streams[0].thread(0, UINT32_MAX, "main", "main");
  timed(0).raw(STEM_KIND_Start, 0, 0, 0);
  for (uint32_t t = 1; t < kThreads; ++t) {
    streams[0].thread(t, 0, "main/" + std::to_string(t), "worker");
    timed(0).raw(STEM_KIND_Create, 0, 0, t);
    timed(static_cast<int>(t)).raw(STEM_KIND_Start, 0, 0, 0);
  }
  std::mt19937_64 rng(2);
  uint64_t counter = 0;
  for (int i = 0; i < 60000; ++i) {
    int t = static_cast<int>(rng() % kThreads);
    if (rng() % 4 == 0) {
      timed(t).raw(STEM_KIND_Rmw, 8 | STEM_AUX_ATOMIC | STEM_AUX_LEAF, 0x5000, counter);
      streams[t].raw(STEM_RAW_Value2, 0, 0, counter + 1);
      ++counter;
      if (rng() % 50 == 0) ++ticket;  // drawn, never used
    } else {
      timed(t).raw(STEM_KIND_Read, 8, 0x5000, counter);
    }
  }
  timed(0).exit(0);
  for (int t = 0; t < kThreads; ++t) memory.fill(static_cast<uint32_t>(t), streams[t].records, t == 1, 5000);
  close(ends[1]);
  CHECK(exit_code(pid) == 0);
  trace::Trace t = trace::load(dir.path / "t");
  CHECK(t.meta.mode == "parallel");
  CHECK(of_kind(t, Kind::External).empty());
  CHECK(t.events.size() == 60000 + 2 * kThreads);
  CHECK(of_kind(t, Kind::Rmw).size() == counter);
  CHECK(t.events.back().kind == Kind::Exit);
  close(ends[0]), close(life);
}
