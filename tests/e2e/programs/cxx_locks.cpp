// std::shared_mutex, timed and recursive mutexes, scoped_lock over several, condition_variable_any, call_once that throws first.
// FLAGS: -std=c++17
// STDOUT: ^40 torn 0 tries 2 done 1 late 1 1 deep 3 woken 1 try 0 1\n$
// EVENT: rdlock table
// EVENT: wrlock table
// EVENT: once-begin
// CASE usual:
// CASE random:
// RECORD: --mode random --seed 3
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

static std::shared_mutex table;
static std::shared_timed_mutex patient;
static std::timed_mutex timed;
static std::recursive_mutex deep;
static std::mutex a, b;
static std::once_flag once;
static int left, right, torn, tries, done, sum;

static void initialise() {
  if (++tries == 1) throw std::runtime_error("not yet");
  done = 1;
}

static void writer() {
  for (int i = 0; i < 10; ++i) {
    std::unique_lock hold(table);
    ++left;
    ++right;
  }
  for (int i = 0; i < 10; ++i) {
    std::scoped_lock both(a, b);
    ++sum;
  }
}

static void reader() {
  for (int i = 0; i < 10; ++i) {
    std::shared_lock hold(table);
    if (left != right) torn = 1;
  }
  for (int i = 0; i < 10; ++i) {
    std::scoped_lock both(b, a);
    ++sum;
  }
}

int main() {
  std::thread w(writer), w2(writer), r(reader), r2(reader);
  w.join(), w2.join(), r.join(), r2.join();

  auto once_at_least = [] {
    for (;;) try {
        std::call_once(once, initialise);
        return;
      } catch (const std::runtime_error&) {
      }
  };
  std::thread o(once_at_least), p(once_at_least);
  o.join(), p.join();

  bool late = false, too = false, shared = false, alone = false;
  timed.lock();
  patient.lock();
  std::thread([&] {
    late = !timed.try_lock_for(std::chrono::seconds(1));
    too = !patient.try_lock_shared_until(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }).join();
  patient.unlock();
  timed.unlock();

  int depth = 0;
  for (int i = 0; i < 3; ++i) deep.lock(), ++depth;
  for (int i = 0; i < 3; ++i) deep.unlock();

  std::condition_variable_any bell;
  bool rung = false;
  int woken = 0;
  std::thread listener([&] {
    std::unique_lock hold(table);
    bell.wait(hold, [&] { return rung; });
    ++woken;
  });
  {
    std::unique_lock hold(table);
    rung = true;
  }
  bell.notify_all();
  listener.join();
  table.lock_shared();
  std::thread([&] { alone = table.try_lock(), shared = table.try_lock_shared(); table.unlock_shared(); }).join();
  table.unlock_shared();
  std::printf("%d torn %d tries %d done %d late %d %d deep %d woken %d try %d %d\n", sum, torn, tries, done, late, too, depth, woken, alone, shared);
}
