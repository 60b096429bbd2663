// What surrounds the formula: models, scopes, time, and queries written out for the z3 program.
#include <doctest/doctest.h>

#include <ctime>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "encoder/encoder.h"
#include "oracle/harness.h"
#include "trace/builder.h"
#include "util/error.h"

using namespace stem;
using encoder::Answer;
using encoder::Meaning;
using trace::Op;

namespace {

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("stem-smt-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

std::string answer_of_z3_program(const std::filesystem::path& query) {
  const std::string command = "timeout 60 z3 -smt2 " + query.string();
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  char line[64] = "";
  if (!std::fgets(line, sizeof line, pipe)) line[0] = 0;
  ::pclose(pipe);
  std::string answer = line;
  while (!answer.empty() && answer.back() == '\n') answer.pop_back();
  return answer;
}

const char* word(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::Feasible: return "sat";
    case Answer::Kind::Infeasible: return "unsat";
    case Answer::Kind::Unknown: return "unknown";
  }
  return "?";
}

}  // namespace

TEST_CASE("every query is named and can be written out; the z3 program answers alike") {
  size_t sat = 0, unsat = 0;
  for (uint64_t seed : {3, 11, 27}) {
    const trace::Trace trace = oracle::interpret(oracle::generate(seed), seed);
    for (const bool paper : {false, true}) {
      Folder folder;
      encoder::Options options;
      options.meaning = paper ? Meaning::Full : Meaning::Prefix;
      options.paper = paper;
      options.dump = folder.path.string();
      encoder::Encoder encoder(trace, options);
      size_t asked = 0;
      for (const auto& pair : oracle::candidates(trace)) {
        if (++asked > 12) break;
        const Answer answer = encoder.decide(pair.write, pair.read);
        CAPTURE(answer.name);
        CHECK(answer.name.find("_r" + std::to_string(pair.read)) != std::string::npos);
        CHECK(answer_of_z3_program(folder.path / (answer.name + ".smt2")) == word(answer.kind));
        sat += answer.kind == Answer::Kind::Feasible, unsat += answer.kind == Answer::Kind::Infeasible;
      }
    }
  }
  CHECK(sat > 0);
  CHECK(unsat > 0);
}

TEST_CASE("a folder that cannot be written is the user's to put right") {
  trace::Builder b;
  const auto x = b.global("x", 4);
  const auto r = b.read(0, x, 0);
  const auto trace = b.take();
  encoder::Options options;
  options.dump = "/proc/stem-no-such-folder";
  encoder::Encoder encoder(trace, options);
  CHECK_THROWS_AS(encoder.decide(encoder::kInitial, static_cast<uint32_t>(r)), UserError);
}

TEST_CASE("the model gives the input") {
  trace::Builder b;
  const auto x = b.global("x", 4);
  const auto in = b.input("a", 7, 4);
  const auto t = b.spawn("worker");
  const auto w = b.write(t, x, 14, 0, b.op(Op::Mul, 32, b.input_leaf(in, 32), b.constant(32, 2)));
  b.end(t);
  const auto r = b.read(0, x, 0);
  b.pin(0, b.op(Op::Ult, 1, b.leaf(r), b.constant(32, 100)), 1);
  const auto r2 = b.read(0, x, 14);
  b.branch(0, b.op(Op::Eq, 1, b.leaf(r2), b.constant(32, 14)), 1);
  const auto end = b.read(0, x, 14);
  const auto trace = b.take();
  encoder::Options options;
  encoder::Encoder encoder(trace, options);
  const Answer answer = encoder.decide(static_cast<uint32_t>(w), static_cast<uint32_t>(end));
  REQUIRE(answer.kind == Answer::Kind::Feasible);
  REQUIRE(answer.inputs.size() == 1);
  const auto& bytes = answer.inputs[0].bytes;
  const uint32_t a = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
  CHECK(a * 2 == 14);
  CHECK(answer.schedule.back() == end);
}

TEST_CASE("time that runs out is an unknown with its reason, never an infeasible") {
  // The read is reached only if a hash of two free numbers, many rounds of 64-bit multiplications, has a given value.
  trace::Builder b;
  const auto x = b.global("x", 8);
  const auto in = b.input("p", 0, 8), in2 = b.input("q", 0, 8);
  const auto p = b.input_leaf(in, 64), q = b.input_leaf(in2, 64);
  auto hash = p;
  for (int round = 0; round < 24; ++round) {
    hash = b.op(Op::Xor, 64, hash, b.op(Op::LShr, 64, hash, b.constant(64, 29)));
    hash = b.op(Op::Add, 64, b.op(Op::Mul, 64, hash, b.op(Op::Or, 64, q, b.constant(64, 1))), b.op(Op::Mul, 64, hash, hash));
  }
  b.pin(0, b.op(Op::Eq, 1, hash, b.constant(64, 0x9e3779b97f4a7c15ull)), 1);
  const auto r = b.read(0, x, 0);
  const auto trace = b.take();
  encoder::Options options;
  options.timeout_ms = 50;
  for (const bool incremental : {true, false}) {
    options.incremental = incremental;
    encoder::Encoder encoder(trace, options);
    const std::clock_t start = std::clock();  // of the processor: others may have it meanwhile
    const Answer answer = encoder.decide(encoder::kInitial, static_cast<uint32_t>(r));
    CHECK(answer.kind == Answer::Kind::Unknown);
    CHECK_FALSE(answer.reason.empty());
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 5);
  }
}

TEST_CASE("a fresh solver per pair answers as the shared one does") {
  for (uint64_t seed : {5, 8}) {
    const trace::Trace trace = oracle::interpret(oracle::generate(seed), seed);
    encoder::Options options, fresh;
    fresh.incremental = false;
    encoder::Encoder shared(trace, options), one(trace, fresh);
    for (const auto& pair : oracle::candidates(trace))
      CHECK(shared.decide(pair.write, pair.read).kind == one.decide(pair.write, pair.read).kind);
  }
}

TEST_CASE("a scope: what is feasible within it is feasible, and a larger one finds no less") {
  for (uint64_t seed = 40; seed < 52; ++seed) {
    const trace::Trace trace = oracle::interpret(oracle::generate(seed), seed);
    const encoder::Index index(trace);
    encoder::Encoder whole(index, {});
    // A prefix of the recording is closed under every cause.
    encoder::Scope scope;
    for (uint32_t e = 0; e < trace.events.size() * 2 / 3; ++e) scope.events.push_back(e);
    encoder::Encoder part(index, {}, scope);
    for (const auto& pair : oracle::candidates(trace)) {
      if (pair.read >= scope.events.size()) continue;
      if (part.decide(pair.write, pair.read).kind == Answer::Kind::Feasible)
        CHECK(whole.decide(pair.write, pair.read).kind == Answer::Kind::Feasible);
    }
    for (const auto& pair : oracle::observed_pairs(trace))
      if (pair.read < scope.events.size()) CHECK(part.decide(pair.write, pair.read).kind == Answer::Kind::Feasible);
  }
}
