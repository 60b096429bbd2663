// What C++20 adds: std::atomic::wait and notify, counting_semaphore, latch, barrier, jthread with stop_token.
// FLAGS: -std=c++20
// STDOUT: ^waited 1 slots 0 counted 30 phases 3 stopped 1 late 1\n$
// CASE usual:
// CASE random:
// RECORD: --mode random --seed 5
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <vector>

static std::atomic<int> flag;
static std::counting_semaphore<2> slots(2);
static std::binary_semaphore closed(0);
static int inside, most, counted, phases, stopped;
static std::mutex m;

static void count(std::latch& all, std::barrier<void (*)() noexcept>& phase) {
  all.arrive_and_wait();
  for (int i = 0; i < 3; ++i) {
    slots.acquire();
    {
      std::lock_guard hold(m);
      if (++inside > most) most = inside;
      counted += i + (i == 0 ? 7 : 0);
      --inside;
    }
    slots.release();
    phase.arrive_and_wait();
  }
}

int main() {
  std::thread waiter([] {
    flag.wait(0);
    flag = 2;
    flag.notify_all();
  });
  flag = 1;
  flag.notify_one();
  while (flag.load() != 2) flag.wait(1);
  waiter.join();

  // Static: their waiters are hashed by address, and where main's stack lies depends on the environment.
  static std::latch all(3);
  static std::barrier<void (*)() noexcept> phase(3, +[]() noexcept { ++phases; });
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) workers.emplace_back([] { count(all, phase); });
  }
  {
    std::condition_variable_any bell;
    std::jthread patient([&](std::stop_token stop) {
      std::unique_lock hold(m);
      bell.wait(hold, stop, [] { return false; });
      stopped = stop.stop_requested();
    });
  }
  const bool late = !closed.try_acquire_for(std::chrono::seconds(1));
  std::printf("waited %d slots %d counted %d phases %d stopped %d late %d\n", flag.load() == 2, most > 2, counted, phases, stopped, late);
}
