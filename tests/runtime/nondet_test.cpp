// Answers of the outside world: what is recorded, fed back and given to the program; inputs.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <stem.h>

#include "tests/runtime/fake_core.h"

extern "C" {
int __VERIFIER_nondet_int(void);
bool __VERIFIER_nondet_bool(void);
void __VERIFIER_assume(int);
int klee_range(int, int, const char*);
int __stem_wrap___isoc99_fscanf(FILE*, const char*, ...);
}

namespace {

int site_record;
template <class F>
void called(F* function) {
  fake_call(reinterpret_cast<const void*>(function), &site_record);
}

std::vector<const fake_event*> all(fake_what what) {
  std::vector<const fake_event*> found;
  for (uint32_t i = 0; i < fake_event_count; ++i)
    if (fake_events[i].what == what) found.push_back(&fake_events[i]);
  return found;
}

// Feeds back everything that was recorded, and begins again.
void replay() {
  fake_plan_clear();
  for (const fake_event* e : all(FAKE_NONDET)) fake_plan_feed(e->name, e->bytes, e->bytes_size);
  fake_begin();
}

std::string scratch_file(const char* content) {
  char path[] = "/tmp/stem-nondet-XXXXXX";
  int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  REQUIRE(write(fd, content, std::strlen(content)) == ssize_t(std::strlen(content)));
  close(fd);
  return path;
}

void record() {
  fake_plan_clear();
  fake_begin();
}

TEST_CASE("an answer that is missing is a divergence, said once") {
  record();
  getppid();
  CHECK(all(FAKE_MESSAGE).empty());
  replay();
  getppid();
  CHECK(all(FAKE_MESSAGE).empty());
  getppid();
  getppid();
  CHECK(all(FAKE_MESSAGE).size() == 1);
  CHECK(all(FAKE_NONDET).size() == 3);
  fake_end();
}

TEST_CASE("clocks say on replay what they said, in the program's memory too") {
  record();
  struct timespec first {}, second{};
  called(&clock_gettime);
  CHECK(clock_gettime(CLOCK_REALTIME, &first) == 0);
  called(&time);
  time_t t = time(nullptr);
  CHECK(t == 5);  // by the fake core's clock
  auto nondets = all(FAKE_NONDET);
  REQUIRE(nondets.size() == 2);
  CHECK(std::string(nondets[0]->name) == "clock_gettime");
  CHECK(all(FAKE_WRITE).size() == 2);
  fake_events[0].bytes[12] = 77;  // another second than it is now
  replay();
  called(&clock_gettime);
  CHECK(clock_gettime(CLOCK_REALTIME, &second) == 0);
  CHECK(second.tv_sec == 77);
  CHECK(time(nullptr) == 5);
  CHECK(all(FAKE_MESSAGE).empty());
  CHECK(rand() >= 0);  // not recorded: reported
  REQUIRE(all(FAKE_MESSAGE).size() == 1);
  CHECK(std::string(all(FAKE_MESSAGE)[0]->name).find("rand") != std::string::npos);
  fake_end();
}

TEST_CASE("another question than the recorded one is a divergence") {
  record();
  rand();
  replay();
  getpid();
  REQUIRE(all(FAKE_MESSAGE).size() == 1);
  std::string message = all(FAKE_MESSAGE)[0]->name;
  CHECK(message.find("getpid") != std::string::npos);
  CHECK(message.find("rand") != std::string::npos);
  fake_end();
}

TEST_CASE("randomness, ids, environment") {
  setenv("STEM_TEST_VALUE", "then", 1);
  record();
  int a = rand();
  unsigned char bytes[20], again[20];
  CHECK(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
  std::string then = getenv("STEM_TEST_VALUE");
  CHECK(getenv("STEM_TEST_NO_SUCH_THING") == nullptr);
  double d = drand48();
  fake_end();
  setenv("STEM_TEST_VALUE", "now", 1);
  setenv("STEM_TEST_NO_SUCH_THING", "now", 1);
  replay();
  CHECK(rand() == a);
  CHECK(getrandom(again, sizeof again, 0) == sizeof again);
  CHECK(std::memcmp(bytes, again, sizeof bytes) == 0);
  CHECK(std::string(getenv("STEM_TEST_VALUE")) == then);
  CHECK(getenv("STEM_TEST_NO_SUCH_THING") == nullptr);
  CHECK(drand48() == d);
  CHECK(all(FAKE_MESSAGE).empty());
  fake_end();
  unsetenv("STEM_TEST_NO_SUCH_THING");
}

TEST_CASE("a file that has changed or gone reads as it did") {
  std::string path = scratch_file("first line\nsecond\n12 word");
  auto program = [&](std::string& said) {
    char buffer[64] = "";
    called(&open);
    int fd = open(path.c_str(), O_RDONLY);
    said += "fd" + std::to_string(fd >= 0);
    called(&read);
    ssize_t n = read(fd, buffer, 5);
    said += std::string(buffer, n > 0 ? size_t(n) : 0) + "|";
    said += std::to_string(lseek(fd, 0, SEEK_END)) + "|";
    struct stat st {};
    fstat(fd, &st);
    said += std::to_string(st.st_size) + "|";
    close(fd);
    FILE* f = fopen(path.c_str(), "r");
    called(&fgets);
    if (fgets(buffer, sizeof buffer, f)) said += buffer;
    said += char(getc(f));
    char* line = nullptr;
    size_t room = 0;
    ssize_t length = getline(&line, &room, f);
    said += std::to_string(length) + line;
    std::free(line);
    int number = 0;
    char word[10] = "";
    fake_call(reinterpret_cast<const void*>(&__stem_wrap___isoc99_fscanf), &site_record);
    said += std::to_string(__stem_wrap___isoc99_fscanf(f, "%d %9s", &number, word));
    said += std::to_string(number) + word;
    said += std::to_string(feof(f) != 0);
    said += std::to_string(fread(buffer, 1, 10, f));
    fclose(f);
    said += std::to_string(access("/tmp/stem-no-such-file", R_OK));
  };
  record();
  std::string then;
  program(then);
  CHECK(then == "fd1first|25|25|first line\ns6econd\n212word10-1");
  fake_end();
  unlink(path.c_str());
  replay();
  std::string now;
  program(now);
  CHECK(now == then);
  for (const fake_event* e : all(FAKE_MESSAGE)) FAIL_CHECK(std::string(e->name));
  fake_end();
}

TEST_CASE("what blocks is done outside, what is ready is not") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  record();
  struct pollfd p = {ends[0], POLLIN, 0};
  CHECK(poll(&p, 1, 1) == 0);  // nothing there: waits outside, and yields
  CHECK(all(FAKE_OUTSIDE).size() == 1);
  CHECK(all(FAKE_YIELD).size() == 1);
  CHECK(write(ends[1], "x", 1) == 1);
  char c = 0;
  called(&read);
  CHECK(read(ends[0], &c, 1) == 1);
  CHECK(c == 'x');
  CHECK(all(FAKE_OUTSIDE).size() == 1);
  CHECK(poll(nullptr, 0, 3) == 0);  // a sleep
  CHECK(all(FAKE_YIELD).size() == 2);
  usleep(100);
  CHECK(all(FAKE_YIELD).back()->value == 100000);
  replay();
  p.revents = 0;
  CHECK(poll(&p, 1, 1) == 0);
  CHECK(write(ends[1], "x", 1) == 1);
  c = 0;
  called(&read);
  CHECK(read(ends[0], &c, 1) == 1);
  CHECK(c == 'x');
  CHECK(all(FAKE_OUTSIDE).empty());
  CHECK(all(FAKE_YIELD).size() == 1);
  fake_end();
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("inputs: the plan's value, else what is there, else 0") {
  fake_plan_clear();
  fake_plan_input("n", "\x07\0\0\0", 4);
  fake_plan_input("n", "\x09", 1);
  fake_plan_input("__VERIFIER_nondet_int", "\xff\xff\xff\xff", 4);
  fake_begin();
  int n = 3, m = 5;
  called(&stem_input);
  stem_input(&n, sizeof n, "n");
  CHECK(n == 7);
  called(&stem_input);
  stem_input(&n, sizeof n, "n");
  CHECK(n == 9);
  called(&stem_input);
  stem_input(&m, sizeof m, "m");
  CHECK(m == 5);
  auto inputs = all(FAKE_INPUT);
  REQUIRE(inputs.size() == 3);
  CHECK(std::string(inputs[0]->name) == "n");
  CHECK(inputs[0]->bytes_size == 4);
  for (const fake_event* e : all(FAKE_WRITE)) CHECK(e->id != 0);

  called(&__VERIFIER_nondet_int);
  CHECK(__VERIFIER_nondet_int() == -1);
  CHECK(fake_result(reinterpret_cast<const void*>(&__VERIFIER_nondet_int)) != 0);
  called(&__VERIFIER_nondet_int);
  CHECK(__VERIFIER_nondet_int() == 0);
  called(&__VERIFIER_nondet_bool);
  CHECK(!__VERIFIER_nondet_bool());
  called(&stem_input_long);
  CHECK(stem_input_long("wide") == 0);
  called(&klee_range);
  CHECK(klee_range(4, 8, "range") == 4);
  fake_end();
  fake_plan_clear();
}

TEST_CASE("an assumption that holds binds what follows") {
  fake_begin();
  uint32_t id = fake_input(32);
  called(&__VERIFIER_assume);
  fake_argument(0, id);
  __VERIFIER_assume(3);
  fake_end();
  auto pins = all(FAKE_PIN);
  REQUIRE(pins.size() == 1);
  CHECK(pins[0]->value == 1);
}

}  // namespace
