// Stores of what nobody initialised - a lambda that captures nothing, kept in another one - are stores of zeros: what was told is what is there, so
// nothing looks as if somebody unseen had written it.
// FLAGS: -std=c++20
// BINARY: no, gcc leaves such stores out, and there is nothing to tell
// STDOUT: ^110\n$
// NO-EVENT: external .*use
// CASE usual:
// CASE random:
// RECORD: --mode random --seed 2
#include <pthread.h>

#include <cstdio>

template <class Inner>
static auto make(Inner inner, long n) {
  return [=](int i) { return inner(i) + n; };
}

template <class Function>
struct Task {
  Function f;
  static inline Function* volatile last;
  __attribute__((noinline)) void keep() { last = &f; }
};

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long sum;

__attribute__((noinline)) static void fill() {
  volatile char bytes[400];
  for (auto& byte : bytes) byte = 0x55;
}

template <class Function>
__attribute__((noinline)) static long use(Function f) {
  Task<Function> a{f};
  a.keep();
  Task<Function> b = a;
  b.keep();
  return b.f(1);
}

static void* run(void* p) {
  for (int i = 0; i < 10; i++) {
    fill();
    long one = use(make([](int n) { return n; }, i));
    pthread_mutex_lock(&m);
    sum += one;
    pthread_mutex_unlock(&m);
  }
  return p;
}

int main() {
  pthread_t t[2];
  for (auto& x : t) pthread_create(&x, nullptr, run, nullptr);
  for (auto x : t) pthread_join(x, nullptr);
  std::printf("%ld\n", sum);
}
