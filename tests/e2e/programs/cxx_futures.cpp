// std::promise and future (waited for, timed, broken), shared_future, std::async, packaged_task: the sleeps and the wake-ups of their
// futexes are operations of the schedule.
// FLAGS: -std=c++17
// STDOUT: ^42 late 1 shared 14 async 9 packaged 7 broken 1 thrown 1\n$
// EVENT: wait .* = 
// EVENT: wake .* = 
// EVENT: broadcast 
// CASE usual:
// CASE random:
// RECORD: --mode random --seed 3
// CASE pct:
// RECORD: --mode pct --seed 2
#include <chrono>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <thread>

static int result; /* handed over by the promise alone */

static int plus(int a, int b) { return a + b; }

int main() {
  std::promise<int> promise;
  std::future<int> future = promise.get_future();
  std::thread giver([&promise] {
    result = 40;
    promise.set_value(2);
  });
  int sum = future.get();
  sum += result;
  giver.join();

  std::promise<void> never;
  const bool late = never.get_future().wait_for(std::chrono::seconds(1)) == std::future_status::timeout;

  std::promise<int> start;
  std::shared_future<int> go = start.get_future().share();
  auto first = std::async(std::launch::async, [go] { return go.get(); });
  auto second = std::async(std::launch::async, [go] { return go.get(); });
  start.set_value(7);
  const int shared = first.get() + second.get();

  auto async = std::async(std::launch::async, plus, 4, 5);
  const int answer = async.get();

  std::packaged_task<int(int, int)> task(plus);
  std::future<int> done = task.get_future();
  std::thread worker(std::move(task), 3, 4);
  const int packaged = done.get();
  worker.join();

  bool broken = false, thrown = false;
  std::future<int> nobody;
  {
    std::promise<int> left;
    nobody = left.get_future();
  }
  try {
    nobody.get();
  } catch (const std::future_error& error) {
    broken = error.code() == std::future_errc::broken_promise;
  }
  auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("no"); });
  try {
    failing.get();
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  std::printf("%d late %d shared %d async %d packaged %d broken %d thrown %d\n", sum, late, shared, answer, packaged, broken, thrown);
}
