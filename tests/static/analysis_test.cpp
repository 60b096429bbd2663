#include "static/analysis.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <map>
#include <set>

#include "static/library.h"
#include "static/number_set.h"
#include "util/error.h"

using namespace stem;
using namespace stem::analysis;

namespace {

// A test program as the pass would see it: unoptimised IR with locals in registers.
std::string compile(const std::string& name) {
  std::string source = std::string(STEM_SOURCE_DIR "/tests/static/programs/") + name;
  std::string command = std::string(STEM_CLANG) + " -x " + (name.ends_with(".c") ? "c" : "c++") +
                        " -g -O1 -Xclang -disable-llvm-passes -S -emit-llvm -o - '" + source +
                        "' | " STEM_OPT " -passes=sroa -S -o -";
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

TEST_CASE("callbacks, handlers, destructors, constructors, results of threads, and code that nobody runs") {
  Result result = analyze_modules({compile("threads.c")}, true);
  std::map<int, Set> defs;
  for (const PotentialPair& pair : result.pairs) defs[result.sites[pair.use].line].insert(def_line(result, pair.def));
  CHECK_FALSE(defs[80].contains("60"));  // before the thread exists
  CHECK(defs[100].contains("60"));
  CHECK(defs[100].contains("20"));  // the signal handler's
  CHECK(defs[100].contains("30"));  // by way of a library that no table knows
  CHECK(defs[100].contains("50"));  // the key's destructor, through what the thread set
  CHECK(defs[100].contains("70"));  // before main
  CHECK(defs[100].contains("90"));  // through what the thread returned
  CHECK(defs[40].contains("40"));   // qsort calls it as often as it likes
  Set entries;
  for (const ThreadInfo& thread : result.threads) entries.insert(thread.entry);
  CHECK(entries == Set{"main", "entry", "(code that STEM does not see)"});
}

TEST_CASE("who has been joined reads nothing that is written then") {
  Result result = analyze_modules({compile("joins.c")}, true);
  std::map<int, Set> defs;
  for (const PotentialPair& pair : result.pairs) defs[result.sites[pair.use].line].insert(def_line(result, pair.def));
  CHECK(defs[10].contains("100"));
  CHECK_FALSE(defs[10].contains("101"));  // after the join
  CHECK_FALSE(defs[10].contains("20"));   // of a thread that is created after the join
  CHECK(defs[30].contains("110"));        // one of the two is left
  CHECK_FALSE(defs[30].contains("112"));
  CHECK(defs[31].contains("111"));
  CHECK_FALSE(defs[31].contains("90"));   // in a function that is called then
  CHECK(defs[40].contains("120"));
  CHECK(defs[40].contains("121"));        // while the loop joins
  CHECK_FALSE(defs[40].contains("122"));  // all that a loop created, a loop has joined
  CHECK(defs[50].contains("130"));        // all but one
  CHECK(defs[60].contains("140"));        // the handle was written again
  CHECK(defs[70].contains("150"));        // not on every way
}

TEST_CASE("pairs beyond the budget are counted, not listed, and nothing is said to be dead then") {
  const std::string module = compile("s1.c");
  Result all = analyze_modules({module}, true), few = analyze_modules({module}, true, {.pairs = 8, .escorts = 2});
  CHECK(all.unlisted.empty());
  CHECK_FALSE(all.escorts_cut);
  CHECK(few.pairs.size() <= 8);
  CHECK_FALSE(few.unlisted.empty());
  CHECK(few.escorts.size() <= 2);
  CHECK(few.dead_definitions.empty());
}

TEST_CASE("facts survive their file; a damaged one is no facts") {
  Facts facts;
  facts.objects = {{Facts::Memory::Global, false, 0, "x"}, {Facts::Memory::Heap, true, 77, ""}};
  facts.sets = {{false, {{0, 0, 4}}}, {true, {}}, {false, {{0, 4, 8}}}};
  facts.sites = {{5, false, false, {0}, {0}, {}}, {3, false, false, {0}, {}, {1, 0}}, {9, true, true, {0, 1}, {}, {2}}};
  facts.threads = {{"main", "main", false}, {"", "", true}};
  facts.refuted = {{9, 9}};
  facts.overwritten = {{5, 0}};
  facts.dead = {42};
  facts.finish();
  const std::string bytes = facts.to_bytes();
  auto again = Facts::from_bytes(bytes);
  REQUIRE(again);
  CHECK(again->to_bytes() == bytes);
  REQUIRE(again->site(3));
  REQUIRE(again->site(5));
  CHECK(again->may_flow(*again->site(3), *again->site(5), 0));
  CHECK(again->may_write(*again->site(3), 1));  // any external object
  CHECK_FALSE(again->may_read(*again->site(5), 1));
  CHECK_FALSE(again->may_flow(*again->site(9), *again->site(9), 0));
  CHECK_FALSE(again->initial_may_reach(*again->site(5), 0));
  CHECK(again->is_dead(42));
  CHECK(again->allocated_at(77) == std::vector<uint32_t>{1});
  CHECK(again->globals("x") == std::vector<uint32_t>{0});
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK_FALSE(Facts::from_bytes(damaged));
    CHECK_FALSE(Facts::from_bytes(bytes.substr(0, at)));
  }
}

TEST_CASE("what the runtime takes over, static analysis knows") {
#define STEM_INTERCEPT(name, how) CHECK_MESSAGE(is_library_function(#name), #name " is not in static/externals.def");
#include "tracer/runtime/intercepts.def"
}

TEST_CASE("bitcode that is not bitcode is a user's error") {
  CHECK_THROWS_AS(analyze_modules({"this is no module"}, true), UserError);
}

TEST_CASE("modules that do not link are a user's error, not the end of the process") {
  std::string first = compile("pointers.c"), second = compile("s1.c");  // two mains
  CHECK_THROWS_AS(analyze_modules({first, second}, true), UserError);
}

TEST_CASE("sets of numbers do what std::set does") {
  uint64_t state = 88172645463325252ull;
  auto below = [&](uint32_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<uint32_t>((state >> 16) % n);
  };
  for (int round = 0; round < 2000; ++round) {
    const uint32_t range = 1 + below(round % 2 ? 100 : 5000);
    NumberSet sets[2];
    std::set<uint32_t> plain[2];
    for (int i = 0; i < 2; ++i)
      for (uint32_t n = below(60); n > 0; --n) {
        const uint32_t member = below(range);
        CHECK(sets[i].test_and_set(member) == plain[i].insert(member).second);
      }
    const uint32_t probe = below(range);
    CHECK(sets[0].test(probe) == plain[0].contains(probe));
    const size_t before = plain[0].size();
    switch (below(4)) {
      case 0:
        plain[0].insert(plain[1].begin(), plain[1].end());
        CHECK((sets[0] |= sets[1]) == (plain[0].size() > before));
        break;
      case 1:
        sets[0] &= sets[1];
        std::erase_if(plain[0], [&](uint32_t n) { return !plain[1].contains(n); });
        break;
      case 2:
        sets[0].subtract(sets[1]);
        std::erase_if(plain[0], [&](uint32_t n) { return plain[1].contains(n); });
        break;
      default:
        sets[0].reset(probe);
        plain[0].erase(probe);
    }
    std::vector<uint32_t> members;
    for (uint32_t member : sets[0]) members.push_back(member);
    CHECK(members == std::vector<uint32_t>(plain[0].begin(), plain[0].end()));
    CHECK(sets[0].count() == plain[0].size());
    CHECK(sets[0].empty() == plain[0].empty());
    CHECK(sets[0] == NumberSet::of({plain[0].begin(), plain[0].end()}));
  }
}
