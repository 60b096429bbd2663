// Exceptions out of threads (future, exception_ptr), thread_local with destructors, static locals, packaged_task, async, stop early.
// FLAGS: -std=c++17
// STDOUT: ^caught lost caught again 3 alive 0 made 4 once 1 21 broken 1\n$
#include <atomic>
#include <cstdio>
#include <exception>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

static std::atomic<int> alive{0}, made{0};
static int initialised;

struct Own {
  Own() { ++alive, ++made; }
  ~Own() { --alive; }
  int n = 0;
};
static thread_local Own own;

static int first() { return ++initialised; }
static int get_static() {
  static int value = first();
  return value;
}

static void work(int n) {
  own.n += n;
  if (get_static() != 1) throw std::logic_error("twice");
}

int main() {
  std::string first_text, second_text;
  auto failed = std::async(std::launch::async, []() -> int {
    work(1);
    throw std::runtime_error("lost");
  });
  try {
    failed.get();
  } catch (const std::runtime_error& e) {
    first_text = e.what();
  }
  std::exception_ptr kept;
  std::thread thrower([&] {
    work(2);
    try {
      throw std::out_of_range("again");
    } catch (...) {
      kept = std::current_exception();
    }
  });
  thrower.join();
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception& e) {
    second_text = e.what();
  }
  std::packaged_task<int(int)> task([](int n) { work(n); return n * 7; });
  std::future<int> answer = task.get_future();
  std::thread runner(std::move(task), 3);
  runner.join();
  std::thread plain([] { work(1); });
  plain.join();
  bool broken = false;
  std::future<int> nobody;
  {
    std::promise<int> promise;
    nobody = promise.get_future();
  }
  try {
    nobody.get();
  } catch (const std::future_error&) {
    broken = true;
  }
  std::printf("caught %s caught %s %d alive %d made %d once %d %d broken %d\n", first_text.c_str(), second_text.c_str(), 3, alive.load(), made.load(), initialised, answer.get(), broken);
}
