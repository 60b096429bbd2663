// The models of libc's memory and string functions against the functions themselves.
//
// A model runs on memory A and records reads, expressions, pins, branches, writes. Then memory B is drawn at random and the record
// is re-executed on it: if every pin and branch keeps its value, B is on the recorded path, and what the record says of B - the
// result, all memory afterwards - must be what the real function does with B. Small alphabets make that frequent.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/fake_core.h"
#include "trace/eval.h"

extern "C" {
#define WRAPPED(result, name, params) result __stem_wrap_##name params;
WRAPPED(void*, memcpy, (void*, const void*, size_t))
WRAPPED(void*, memmove, (void*, const void*, size_t))
WRAPPED(void*, memset, (void*, int, size_t))
WRAPPED(int, memcmp, (const void*, const void*, size_t))
WRAPPED(void*, memchr, (const void*, int, size_t))
WRAPPED(void*, memrchr, (const void*, int, size_t))
WRAPPED(size_t, strlen, (const char*))
WRAPPED(size_t, strnlen, (const char*, size_t))
WRAPPED(char*, strcpy, (char*, const char*))
WRAPPED(char*, stpcpy, (char*, const char*))
WRAPPED(char*, strncpy, (char*, const char*, size_t))
WRAPPED(char*, strcat, (char*, const char*))
WRAPPED(char*, strncat, (char*, const char*, size_t))
WRAPPED(int, strcmp, (const char*, const char*))
WRAPPED(int, strncmp, (const char*, const char*, size_t))
WRAPPED(int, strcasecmp, (const char*, const char*))
WRAPPED(char*, strchr, (const char*, int))
WRAPPED(char*, strrchr, (const char*, int))
WRAPPED(char*, strchrnul, (const char*, int))
WRAPPED(char*, strstr, (const char*, const char*))
WRAPPED(size_t, strspn, (const char*, const char*))
WRAPPED(size_t, strcspn, (const char*, const char*))
WRAPPED(char*, strpbrk, (const char*, const char*))
WRAPPED(char*, strtok_r, (char*, const char*, char**))
WRAPPED(int, atoi, (const char*))
WRAPPED(long, strtol, (const char*, char**, int))
WRAPPED(unsigned long long, strtoull, (const char*, char**, int))
WRAPPED(int, tolower, (int))
WRAPPED(int, abs, (int))
WRAPPED(void, qsort, (void*, size_t, size_t, int (*)(const void*, const void*)))
WRAPPED(void*, bsearch, (const void*, const void*, size_t, size_t, int (*)(const void*, const void*)))
WRAPPED(int, snprintf, (char*, size_t, const char*, ...))
WRAPPED(int, sprintf, (char*, const char*, ...))
WRAPPED(int, __isoc99_sscanf, (const char*, const char*, ...))
WRAPPED(char*, strdup, (const char*))
WRAPPED(void*, realloc, (void*, size_t))
}

// The compiler sees through the names and warns about what random strings could do.
#pragma GCC diagnostic ignored "-Wstringop-truncation"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wrestrict"

namespace {

using stem::trace::Op;

constexpr size_t kRoom = 64;
struct Memory {
  char a[kRoom];
  char b[kRoom];
};
Memory memory;  // what models and functions work on

struct Outcome {
  uint64_t result;
  Memory after;
};

int site_record;

// The record re-executed on other memory.
class Replay {
 public:
  explicit Replay(const Memory& start) : now_(start), values_(fake_node_count + 1) {}

  // Nothing: this memory is not on the recorded path.
  std::optional<Memory> run() {
    for (uint32_t i = 0; i < fake_event_count; ++i) {
      const fake_event& e = fake_events[i];
      switch (e.what) {
        case FAKE_READ: {
          uint64_t v = load(e.addr, e.size);
          if (e.pinned && v != e.value) return {};
          if (e.id) values_[e.id] = v;
          break;
        }
        case FAKE_WRITE: store(e.addr, e.size, e.id ? value(e.id) : e.value); break;
        case FAKE_PIN:
        case FAKE_BRANCH:
          if (value(e.id) != e.value) return {};
          break;
        default: break;
      }
    }
    return now_;
  }

  uint64_t value(uint32_t id) {
    const fake_node& n = fake_nodes[id];
    if (n.op == uint32_t(Op::Read) || n.op == uint32_t(Op::Input)) return values_[id];
    uint64_t a = n.a ? value(n.a) : n.ka, b = n.b ? value(n.b) : n.kb, c = n.c ? value(n.c) : n.kc;
    unsigned a_width = n.op == uint32_t(Op::Ite) ? 1 : n.from_width;
    return stem::trace::apply(Op(n.op), n.width, a, b, c, a_width, n.from_width, n.low);
  }

 private:
  char* at(uint64_t addr) { return reinterpret_cast<char*>(&now_) + (addr - reinterpret_cast<uint64_t>(&memory)); }
  bool inside(uint64_t addr, unsigned size) const {
    uint64_t base = reinterpret_cast<uint64_t>(&memory);
    return addr >= base && addr + size <= base + sizeof memory;
  }
  uint64_t load(uint64_t addr, unsigned size) {
    uint64_t v = 0;
    std::memcpy(&v, inside(addr, size) ? at(addr) : reinterpret_cast<char*>(addr), size);  // elsewhere: constants
    return v;
  }
  void store(uint64_t addr, unsigned size, uint64_t v) {
    REQUIRE(inside(addr, size));
    std::memcpy(at(addr), &v, size);
  }

  Memory now_;
  std::vector<uint64_t> values_;
};

uint64_t sign(int64_t v) { return v > 0 ? 1 : v < 0 ? 2 : 0; }

struct Call {
  const void* callee;
  std::function<uint64_t()> model;  // on `memory`
  std::function<uint64_t()> real;
  bool only_sign = false;           // memcmp and its like promise no more
};

std::mt19937 random_source(7);

void draw(Memory& m, const char* alphabet) {
  size_t n = std::strlen(alphabet) + 1;  // the terminator is one of them
  for (char& c : m.a) c = alphabet[random_source() % n];
  for (char& c : m.b) c = alphabet[random_source() % n];
  m.a[kRoom / 2 - 1] = m.b[kRoom / 2 - 1] = m.a[kRoom - 1] = m.b[kRoom - 1] = 0;
}

// How many of the memories drawn were on the recorded path.
int compare(const Call& call, const char* alphabet, int rounds = 60) {
  int on_path = 0;
  for (int round = 0; round < rounds; ++round) {
    Memory a;
    draw(a, alphabet);
    memory = a;
    uint64_t real = call.real();
    Memory real_after = memory;
    memory = a;
    fake_begin();
    fake_call(call.callee, &site_record);
    uint64_t result = call.model();
    uint32_t id = fake_result(call.callee);
    fake_end();
    REQUIRE((call.only_sign ? sign(int32_t(result)) == sign(int32_t(real)) : result == real));
    REQUIRE(std::memcmp(&memory, &real_after, sizeof memory) == 0);
    for (int other = 0; other < 60; ++other) {
      Memory b = a;
      if (other) {  // change a few bytes, or all
        if (other % 4 == 0)
          draw(b, alphabet);
        else
          for (int k = 0; k < other % 5; ++k)
            reinterpret_cast<char*>(&b)[random_source() % (sizeof b)] = alphabet[random_source() % (std::strlen(alphabet) + 1)];
        b.a[kRoom / 2 - 1] = b.b[kRoom / 2 - 1] = b.a[kRoom - 1] = b.b[kRoom - 1] = 0;
      }
      Replay replay(b);
      std::optional<Memory> after = replay.run();
      if (other == 0) REQUIRE(after);  // the record holds for what was recorded
      if (!after) continue;
      ++on_path;
      memory = b;
      uint64_t expected = call.real();
      uint64_t said = id ? replay.value(id) : result;
      REQUIRE((call.only_sign ? sign(int32_t(said)) == sign(int32_t(expected)) : said == expected));
      REQUIRE(std::memcmp(&memory, &*after, sizeof memory) == 0);
    }
  }
  return on_path;
}

#define U(x) uint64_t(x)
#define P(x) uint64_t(reinterpret_cast<uintptr_t>(x))
#define CALL(name, cast, args) \
  Call { reinterpret_cast<const void*>(&__stem_wrap_##name), [&] { return cast(__stem_wrap_##name args); }, [&] { return cast(name args); } }

TEST_CASE("blocks of memory: what is recorded holds for all memory on its path") {
  for (size_t n : {0, 1, 3, 7, 8, 9, 20}) {
    CHECK(compare(CALL(memcpy, P, (memory.a + 1, memory.b + 2, n)), "ab") >= 60);
    CHECK(compare(CALL(memmove, P, (memory.a + 3, memory.a + 1, n)), "ab") >= 60);
    CHECK(compare(CALL(memmove, P, (memory.a + 1, memory.a + 4, n)), "ab") >= 60);
    CHECK(compare(CALL(memset, P, (memory.a + 1, 'x', n)), "ab") >= 60);
    Call equal = CALL(memcmp, U, (memory.a, memory.b, n));
    equal.only_sign = true;
    CHECK(compare(equal, "ab") > 60);
    CHECK(compare(CALL(memchr, P, (memory.a, 'c', n)), "abc") >= 60);
    CHECK(compare(CALL(memrchr, P, (memory.a, 'c', n)), "abc") >= 60);
  }
}

TEST_CASE("strings: what is recorded holds for all memory on its path") {
  CHECK(compare(CALL(strlen, U, (memory.a)), "abcdef") > 100);
  CHECK(compare(CALL(strnlen, U, (memory.a, 5)), "abcdef") > 100);
  CHECK(compare(CALL(strcpy, P, (memory.a, memory.b)), "abcdef") > 100);
  CHECK(compare(CALL(stpcpy, P, (memory.a, memory.b)), "abcdef") > 100);
  CHECK(compare(CALL(strncpy, P, (memory.a, memory.b, 6)), "abcdef") > 100);
  CHECK(compare(CALL(strcat, P, (memory.a, memory.b)), "abcdef") > 100);
  CHECK(compare(CALL(strncat, P, (memory.a, memory.b, 4)), "abcdef") > 100);
  for (const char* alphabet : {"a", "ab", "abcdefgh"}) {
    for (Call call : {CALL(strcmp, U, (memory.a, memory.b)), CALL(strncmp, U, (memory.a, memory.b, 3))}) {
      call.only_sign = true;
      CHECK(compare(call, alphabet) > 60);
    }
  }
  Call folded = CALL(strcasecmp, U, (memory.a, memory.b));
  folded.only_sign = true;
  CHECK(compare(folded, "aAbB[@z{Z") > 60);
}

TEST_CASE("searching in strings: what is recorded holds for all memory on its path") {
  CHECK(compare(CALL(strchr, P, (memory.a, 'c')), "abc") > 60);
  CHECK(compare(CALL(strchr, P, (memory.a, 0)), "abcdefg") > 60);
  CHECK(compare(CALL(strrchr, P, (memory.a, 'c')), "abcdefg") > 60);
  CHECK(compare(CALL(strchrnul, P, (memory.a, 'z')), "abcdefg") > 60);
  CHECK(compare(CALL(strstr, P, (memory.a, memory.b)), "ab") > 60);
  CHECK(compare(CALL(strspn, U, (memory.a, "ab")), "abc") > 60);
  CHECK(compare(CALL(strcspn, U, (memory.a, memory.b)), "abcdefgh") > 60);
  CHECK(compare(CALL(strpbrk, P, (memory.a, "cd")), "abcd") > 60);
  // The save pointer lies in memory too: the same in every memory drawn.
  auto first_token = [](auto function) {
    char** save = reinterpret_cast<char**>(memory.b + 32);
    std::memset(save, 0, sizeof *save);
    return reinterpret_cast<uint64_t>(function(memory.a, ",;", save));
  };
  CHECK(compare(Call{reinterpret_cast<const void*>(&__stem_wrap_strtok_r),
                     [&] {
                       return first_token([](char* s, const char* set, char** save) {
                         fake_call(reinterpret_cast<const void*>(&__stem_wrap_strtok_r), &site_record);
                         return __stem_wrap_strtok_r(s, set, save);
                       });
                     },
                     [&] { return first_token(strtok_r); }},
                "ab,;", 20) >= 20);
}

TEST_CASE("numbers: what is recorded holds for all memory on its path") {
  CHECK(compare(CALL(atoi, uint32_t, (memory.a)), "0123456789-+ ", 200) > 400);
  CHECK(compare(CALL(atoi, uint32_t, (memory.a)), "01x", 200) > 200);
  char** end = reinterpret_cast<char**>(memory.b + 8);
  CHECK(compare(CALL(strtol, U, (memory.a, end, 10)), "0123456789- ", 200) > 200);
  CHECK(compare(CALL(strtol, U, (memory.a, end, 0)), "01x789af ", 200) > 200);
  CHECK(compare(CALL(strtol, U, (memory.a, nullptr, 16)), "0xaf19g", 200) > 200);
  CHECK(compare(CALL(strtoull, U, (memory.a, end, 10)), "9", 50) >= 50);  // too long: ERANGE
}

TEST_CASE("atoi of an unknown number of the same length is that number") {
  std::strcpy(memory.a, "4711");
  fake_begin();
  fake_call(reinterpret_cast<const void*>(&__stem_wrap_atoi), &site_record);
  CHECK(__stem_wrap_atoi(memory.a) == 4711);
  uint32_t id = fake_result(reinterpret_cast<const void*>(&__stem_wrap_atoi));
  fake_end();
  REQUIRE(id);
  Memory other = memory;
  std::strcpy(other.a, "8080");
  Replay replay(other);
  REQUIRE(replay.run());
  CHECK(replay.value(id) == 8080);
  std::strcpy(other.a, "80x0");
  CHECK(!Replay(other).run());
}

int by_byte(const void* a, const void* b) { return *static_cast<const char*>(a) - *static_cast<const char*>(b); }

TEST_CASE("qsort moves elements with what they depend on, and like the C library") {
  for (size_t size : {1, 3, 8, 12}) {
    for (size_t n : {0, 1, 2, 3, 5}) {
      CAPTURE(size);
      Memory start;
      draw(start, "abcdef");
      memory = start;
      qsort(memory.a, n, size, by_byte);
      Memory sorted = memory;
      memory = start;
      fake_begin();
      fake_call(reinterpret_cast<const void*>(&__stem_wrap_qsort), &site_record);
      __stem_wrap_qsort(memory.a, n, size, by_byte);
      fake_end();
      CHECK(std::memcmp(&memory, &sorted, sizeof memory) == 0);
      for (uint32_t i = 0; i < fake_event_count; ++i) {
        if (fake_events[i].what == FAKE_WRITE) CHECK(fake_events[i].id != 0);
      }
    }
  }
  const char sorted[] = "bdfhj";
  for (char key = 'a'; key <= 'k'; ++key) {
    fake_begin();
    fake_call(reinterpret_cast<const void*>(&__stem_wrap_bsearch), &site_record);
    void* found = __stem_wrap_bsearch(&key, sorted, 5, 1, by_byte);
    fake_end();
    CHECK(found == bsearch(&key, sorted, 5, 1, by_byte));
  }
}

TEST_CASE("printing: numbers are pinned, strings are read, what is written is recorded") {
  std::strcpy(memory.b, "world");
  fake_begin();
  uint32_t n = fake_input(32), wide = fake_input(64), width = fake_input(32);
  fake_call(reinterpret_cast<const void*>(&__stem_wrap_snprintf), &site_record);
  fake_argument(3, width);
  fake_argument(4, n);
  fake_argument(6, wide);
  int length = __stem_wrap_snprintf(memory.a, 40, "%*d %s%% %ld %.2s", 5, 42, memory.b, -1L, memory.b);
  fake_end();
  CHECK(std::string(memory.a) == "   42 world% -1 wo");
  CHECK(length == 18);
  std::vector<std::pair<uint32_t, uint64_t>> pins;
  size_t read = 0, written = 0;
  for (uint32_t i = 0; i < fake_event_count; ++i) {
    const fake_event& e = fake_events[i];
    if (e.what == FAKE_PIN) pins.push_back({e.id, e.value});
    if (e.what == FAKE_READ) read += e.size;
    if (e.what == FAKE_WRITE) written += e.size;
  }
  CHECK(pins == std::vector<std::pair<uint32_t, uint64_t>>{{width, 5}, {n, 42}, {wide, ~0ull}});
  CHECK(read == 6 + 2);
  CHECK(written == 19);

  fake_begin();
  n = fake_input(32);
  fake_call(reinterpret_cast<const void*>(&__stem_wrap_sprintf), &site_record);
  fake_argument(3, n);
  __stem_wrap_sprintf(memory.a, "%2$s %1$d", 7, "x");
  fake_end();
  CHECK(std::string(memory.a) == "x 7");
}

TEST_CASE("sscanf writes what it scanned") {
  std::strcpy(memory.a, "12 abc 0x10 9");
  int first = 0;
  unsigned hex = 0;
  long last = 0;
  char word[8] = "";
  fake_begin();
  fake_call(reinterpret_cast<const void*>(&__stem_wrap___isoc99_sscanf), &site_record);
  int got = __stem_wrap___isoc99_sscanf(memory.a, "%d %7s %x%*d%ld", &first, word, &hex, &last);
  fake_end();
  CHECK(got == 3);
  CHECK(first == 12);
  CHECK(std::string(word) == "abc");
  CHECK(hex == 16);
  CHECK(last == 0);
}

TEST_CASE("small integer functions keep their argument free") {
  fake_begin();
  for (int c : {int('A'), int('z'), int('0'), -5, 7}) {
    uint32_t id = fake_input(32);
    fake_call(reinterpret_cast<const void*>(&__stem_wrap_abs), &site_record);
    fake_argument(0, id);
    CHECK(__stem_wrap_abs(c) == std::abs(c));
    CHECK(fake_result(reinterpret_cast<const void*>(&__stem_wrap_abs)) != 0);
    if (c < 0) continue;
    fake_call(reinterpret_cast<const void*>(&__stem_wrap_tolower), &site_record);
    fake_argument(0, id);
    CHECK(__stem_wrap_tolower(c) == std::tolower(c));
    CHECK(fake_result(reinterpret_cast<const void*>(&__stem_wrap_tolower)) != 0);
  }
  fake_end();
}

TEST_CASE("new memory: strdup, realloc") {
  std::strcpy(memory.a, "hello");
  fake_begin();
  fake_call(reinterpret_cast<const void*>(&__stem_wrap_strdup), &site_record);
  char* copy = __stem_wrap_strdup(memory.a);
  CHECK(std::string(copy) == "hello");
  fake_call(reinterpret_cast<const void*>(&__stem_wrap_realloc), &site_record);
  copy = static_cast<char*>(__stem_wrap_realloc(copy, 100));
  CHECK(std::string(copy) == "hello");
  int allocs = 0, frees = 0;
  for (uint32_t i = 0; i < fake_event_count; ++i) {
    allocs += fake_events[i].what == FAKE_ALLOC;
    frees += fake_events[i].what == FAKE_FREE;
  }
  fake_end();
  CHECK(allocs == 2);
  CHECK(frees == 1);
  std::free(copy);
}

TEST_CASE("nothing is recorded when the runtime is off") {
  fake_begin();
  fake_end();
  std::strcpy(memory.b, "abc");
  CHECK(__stem_wrap_strlen(memory.b) == 3);
  CHECK(std::strcmp(__stem_wrap_strcpy(memory.a, memory.b), "abc") == 0);
  CHECK(__stem_wrap_atoi("12") == 12);
  CHECK(fake_event_count == 0);
}

}  // namespace
