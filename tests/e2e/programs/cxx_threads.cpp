// std::thread, mutex, lock_guard, condition_variable, atomic, call_once, a function-local static, shared_mutex, promise.
// FLAGS: -std=c++17
// STDOUT: ^300 12 1 5 1 6\n$
// EVENT: lock
// EVENT: wait
// EVENT: rmw
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

std::mutex m;
std::condition_variable ready;
std::atomic<int> hits{0};
int total = 0, made = 0;
bool go = false;
std::once_flag once;
std::shared_mutex table_lock;
int table = 5;

struct Single {
  Single() { ++made; }
  int value = 6;
};

int single() {
  static Single instance;
  return instance.value;
}

void work() {
  {
    std::unique_lock<std::mutex> lock(m);
    ready.wait(lock, [] { return go; });
  }
  for (int i = 0; i < 100; ++i) {
    std::lock_guard<std::mutex> lock(m);
    ++total;
  }
  hits.fetch_add(4);
  std::call_once(once, [] { ++made; });
  std::shared_lock<std::shared_mutex> read(table_lock);
  if (table != 5) total = -1000;
}

}  // namespace

int main() {
  made = -1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  {
    std::lock_guard<std::mutex> lock(m);
    go = true;
  }
  ready.notify_all();
  for (std::thread& thread : threads) thread.join();
  std::promise<int> promise;
  std::thread setter([&] { promise.set_value(single()); });
  int got = promise.get_future().get();
  setter.join();
  std::printf("%d %d %d %d %d %d\n", total, hits.load(), made, table, single() == got, got);
}
