// The C++ library's ways to the outside: random_device, clocks, sleep_for, streams. All come to the same functions.
// STDIN: 17 words\n
// STDOUT: ^17 words 1 \d+\n$
// EVENT: nondet
// BINARY: no, std::random_device asks the processor
#include <chrono>
#include <iostream>
#include <random>
#include <string>
#include <thread>

static unsigned mix;
static int number;
static bool slept;
static std::string word;

int main() {
  std::thread t([] {
    std::random_device device;
    mix = device();
    auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(30));
    slept = std::chrono::steady_clock::now() - before >= std::chrono::seconds(30);
    std::cin >> number >> word;
    mix ^= static_cast<unsigned>(std::chrono::system_clock::now().time_since_epoch().count());
    for (int i = 0; i < 8; ++i)
      if (mix >> i & 1) mix += 5;
  });
  t.join();
  std::cout << number << ' ' << word << ' ' << slept << ' ' << mix << '\n';
}
