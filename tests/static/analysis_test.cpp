#include <doctest/doctest.h>

#include <cstdio>
#include <map>
#include <set>

#include "static/analysis.h"
#include "util/error.h"

using namespace stem;
using namespace stem::analysis;

namespace {

// A test program as the pass would see it: unoptimised IR with locals in registers.
std::string compile(const std::string& name) {
  std::string source = std::string(STEM_SOURCE_DIR "/tests/static/programs/") + name;
  std::string command = std::string(STEM_CLANG) + " -x " + (name.ends_with(".c") ? "c" : "c++") +
                        " -g -O1 -Xclang -disable-llvm-passes -S -emit-llvm -o - '" + source + "' | " STEM_OPT
                        " -passes=sroa -S -o -";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[65536];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

std::string def_line(const Result& result, uint32_t site) {
  return site == kInitial ? "0" : std::to_string(result.sites[site].line);
}

std::set<std::string> pairs_of(const Result& result, const std::string& variable) {
  std::set<std::string> out;
  for (const PotentialPair& pair : result.pairs)
    if (pair.variable == variable)
      out.insert("W" + def_line(result, pair.def) + "->R" + std::to_string(result.sites[pair.use].line));
  return out;
}

std::string branch_name(const Result& result, const BranchOutcome& branch) {
  if (branch.site == kInitial) return "W0";
  return "b" + std::to_string(result.sites[branch.site].line) + (branch.outcome ? "T" : "F");
}

using Set = std::set<std::string>;

}  // namespace

TEST_CASE("the running example: potential pairs, escort branch pairs, the definition nobody can use") {
  Result result = analyze_modules({compile("s1.c")}, true);
  CHECK(pairs_of(result, "x") == Set{"W0->R2", "W13->R2", "W0->R4", "W13->R4", "W0->R10", "W5->R10"});
  CHECK(pairs_of(result, "z") == Set{"W0->R11", "W2->R11", "W4->R11", "W0->R13", "W2->R13", "W4->R13"});
  CHECK(pairs_of(result, "y") == Set{"W0->R7", "W0->R9"});

  Set paper, ours;
  for (const EscortPair& escort : result.escorts) {
    if (result.sites[escort.use.site].line >= 100) continue;  // main's own loop over the thread handles
    std::string text = branch_name(result, escort.def) + "=>" + branch_name(result, escort.use);
    (escort.def.site == kInitial ? ours : paper).insert(text);
  }
  CHECK(paper == Set{"b1F=>b10T", "b1T=>b10T", "b1T=>b10F", "b10F=>b1T", "b1F=>b10F", "b10F=>b1F"});
  CHECK(ours == Set{"W0=>b1T", "W0=>b1F", "W0=>b6T", "W0=>b6F", "W0=>b10F", "W0=>b10T"});

  Set dead;
  for (uint32_t site : result.dead_definitions) dead.insert(def_line(result, site));
  CHECK(dead.contains("11"));
  CHECK_FALSE(dead.contains("5"));
}

TEST_CASE("fields are told apart, through the heap, function tables and copies") {
  Result result = analyze_modules({compile("pointers.c")}, true);
  std::map<int, Set> defs;  // read line -> lines of its definitions
  for (const PotentialPair& pair : result.pairs) defs[result.sites[pair.use].line].insert(def_line(result, pair.def));
  CHECK(defs[40] == Set{"0", "20", "102"});  // q->head: written by push; q itself by main before any thread
  CHECK(defs[41] == Set{"0"});               // a field that nobody writes
  CHECK(defs[42] == Set{"0", "30", "102"});  // written through the function table
  CHECK(defs[43].contains("22"));            // through a pointer that was copied with its struct
  CHECK(result.threads.size() == 3);
}

TEST_CASE("std::thread: the lambda runs in a thread of its own") {
  Result result = analyze_modules({compile("thread.cpp")}, true);
  Set defs;
  for (const PotentialPair& pair : result.pairs)
    if (pair.variable == "counter" && result.sites[pair.use].line == 12) defs.insert(def_line(result, pair.def));
  CHECK(defs == Set{"0", "8"});
  CHECK(result.threads.size() == 2);
}

TEST_CASE("bitcode that is not bitcode is a user's error") {
  CHECK_THROWS_AS(analyze_modules({"this is no module"}, true), UserError);
}

TEST_CASE("modules that do not link are a user's error, not the end of the process") {
  std::string first = compile("pointers.c"), second = compile("s1.c");  // two mains
  CHECK_THROWS_AS(analyze_modules({first, second}, true), UserError);
}
