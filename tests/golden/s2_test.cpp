// Golden case S2: exhaustive enumeration of its inputs and interleavings finds 144 static pairs.
//
// x = 1; each assignment reads x once (int l = x; x = l * l;), 32-bit wrap-around.
// T0: if(a>1) x=x+2 else x=x+3; if(x>8) x=x*2 else x=x*3.   T1: if(b>1) x=x*2 else x=x*3; if(x>8) x=x*x else x=x*x*x.
// T2: if(c>1) x=x*x else x=x*x*x; if(x>8) x=x+2 else x=x+3.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>

namespace {

uint32_t twice(uint32_t v) { return v * 2; }
uint32_t thrice(uint32_t v) { return v * 3; }
uint32_t square(uint32_t v) { return v * v; }
uint32_t cube(uint32_t v) { return v * v * v; }
uint32_t plus2(uint32_t v) { return v + 2; }
uint32_t plus3(uint32_t v) { return v + 3; }

using Operation = uint32_t (*)(uint32_t);
// By thread: first if's branches, second if's branches.
constexpr Operation kPrograms[3][4] = {{plus2, plus3, twice, thrice}, {twice, thrice, square, cube}, {square, cube, plus2, plus3}};

// A thread's steps: 0 read for the first assignment, 1 write, 2 read for the second test, 3 read for the second
// assignment, 4 write, 5 done. Sites number reads and writes of each thread apart.
struct Thread {
  int step = 0;
  int branch = 0;  // 0 or 1: first assignment; 2 or 3: second
  uint32_t local = 0;
  auto operator<=>(const Thread&) const = default;
};
struct State {
  std::array<Thread, 3> threads;
  uint32_t x = 1;
  int writer = 0;  // 0: initial; else 1 + 4 * thread + branch
  auto operator<=>(const State&) const = default;
};

struct Search {
  std::set<State> seen;
  std::set<std::pair<int, int>> pairs;  // writer, reader

  void visit(const State& s) {
    if (!seen.insert(s).second) return;
    for (int t = 0; t < 3; ++t) {
      State next = s;
      Thread& thread = next.threads[static_cast<std::size_t>(t)];
      const auto read = [&](int site) {
        thread.local = s.x;
        pairs.insert({s.writer, 5 * t + site});
      };
      switch (thread.step) {
        case 0:
        case 3: read(thread.branch); break;
        case 1:
        case 4:
          next.x = kPrograms[t][thread.branch](thread.local);
          next.writer = 1 + 4 * t + thread.branch;
          thread.local = 0;
          break;
        case 2:
          read(4);
          thread.branch = static_cast<int32_t>(thread.local) > 8 ? 2 : 3;
          thread.local = 0;
          break;
        default: continue;
      }
      ++thread.step;
      visit(next);
    }
  }
};

}  // namespace

TEST_CASE("S2: all inputs and interleavings show 144 pairs") {
  Search search;
  for (int inputs = 0; inputs < 8; ++inputs) {
    State start;
    for (int t = 0; t < 3; ++t) start.threads[static_cast<std::size_t>(t)].branch = inputs >> t & 1;
    search.visit(start);
  }
  std::set<int> readers, writers;
  for (const auto& [writer, reader] : search.pairs) writers.insert(writer), readers.insert(reader);
  CHECK(readers.size() == 15);
  CHECK(writers.size() == 13);
  CHECK(search.pairs.size() == 144);
}
