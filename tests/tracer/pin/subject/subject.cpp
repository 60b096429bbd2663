// A program that Pin would have instrumented, instrumented by hand: every access, branch and call tells the Pin tool's
// own routines (tracer/pin), which schedule and record it. Run by pin_test.cpp through the launcher: subject SCENARIO.
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tracer/pin/tool.h"

using namespace stem_pin;

namespace {

thread_local THREADID me;
std::atomic<THREADID> next_thread{1};
char** arguments;

#define HERE (reinterpret_cast<ADDRINT>(__builtin_return_address(0)) - 1)
#define SP reinterpret_cast<ADDRINT>(__builtin_frame_address(0))

__attribute__((noinline)) long load(const long* p) {
  on_read(me, reinterpret_cast<ADDRINT>(p), 8, HERE, 0, SP);
  return *p;
}
__attribute__((noinline)) void store(long* p, long value) {
  on_write(me, reinterpret_cast<ADDRINT>(p), 8, HERE, 0, SP);
  *p = value;
}
// One instruction that reads and writes.
__attribute__((noinline)) void add(long* p, long n) {
  on_read(me, reinterpret_cast<ADDRINT>(p), 8, HERE, 0, SP);
  on_write(me, reinterpret_cast<ADDRINT>(p), 8, HERE, MORE, SP);
  *p += n;
}
__attribute__((noinline)) long exchange(long* p, long value) {
  on_exchange(me, reinterpret_cast<ADDRINT>(p), 8, HERE, 0);
  return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
}
__attribute__((noinline)) bool compare(long* p, long expected, long value) {
  on_compare(me, reinterpret_cast<ADDRINT>(p), 8, HERE, static_cast<ADDRINT>(expected), 0);
  return __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
__attribute__((noinline)) bool branch(bool taken) {
  on_branch(me, HERE, taken);
  return taken;
}

// A call of a function that the tool replaces.
__attribute__((noinline)) ADDRINT call(const char* name, AFUNPTR real, ADDRINT a0 = 0, ADDRINT a1 = 0, ADDRINT a2 = 0,
                                       ADDRINT a3 = 0) {
  for (unsigned i = 0; i < function_count; ++i)
    if (name == std::string(functions[i].name)) {
      CONTEXT context{SP};
      return on_call(&functions[i], &context, me, real, HERE + 1, a0, a1, a2, a3, 0);
    }
  std::fprintf(stderr, "%s is not replaced\n", name);
  std::_Exit(90);
}
#define CALL(function, ...) call(#function, reinterpret_cast<AFUNPTR>(function), __VA_ARGS__)
template <typename T>
ADDRINT word(T value) {
  return (ADDRINT)value;
}

struct Start {
  void (*body)(long);
  long argument;
};

void begin(THREADID tid) {
  me = tid;
  clients[me] = Client();
  clients[me].stack = SP;
  clients[me].handle = word(pthread_self());
}

void* run(void* argument) {
  begin(next_thread++);
  const Start start = *static_cast<Start*>(argument);
  start.body(start.argument);
  on_syscall(me, SYS_exit, 0, 0);
  return argument;
}

pthread_t spawn(void (*body)(long), long argument) {
  pthread_t handle = 0;
  auto* start = new Start{body, argument};
  if (CALL(pthread_create, word(&handle), 0, word(run), word(start))) std::_Exit(91);
  return handle;
}
void join(pthread_t handle) {
  if (CALL(pthread_join, handle, 0)) std::_Exit(92);
}

int add_main_module(dl_phdr_info* info, size_t, void* path) {
  if (info->dlpi_name[0]) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& h = info->dlpi_phdr[i];
    if (h.p_type == PT_LOAD && (h.p_flags & PF_X))
      add_module(static_cast<char*>(path), info->dlpi_addr + h.p_vaddr, info->dlpi_addr + h.p_vaddr + h.p_memsz,
                 info->dlpi_addr);
  }
  return 1;
}

[[noreturn]] void leave(int code) {
  on_syscall(me, SYS_exit_group, static_cast<ADDRINT>(code), 0);
  std::_Exit(code);
}

// --- scenarios
// ------------------------------------------------------------------------------------------------------------------

long x, y, total;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_barrier_t barrier;
pthread_once_t only = PTHREAD_ONCE_INIT;
sem_t sem;
int ends[2];

void locked(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    CALL(pthread_mutex_lock, word(&m));
    store(&x, load(&x) + 1);
    CALL(pthread_mutex_unlock, word(&m));
  }
}
void racy(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    store(&x, load(&x) + 1);
    branch(i + 1 < rounds);
  }
}
void one_instruction(long rounds) {
  for (long i = 0; i < rounds; ++i) add(&x, 1);
}
void atomics(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    for (long seen = load(&x); !branch(compare(&x, seen, seen + 1)); seen = load(&x)) {
    }
    exchange(&y, i);
  }
}
void consumer(long items) {
  for (long got = 0; got < items; ++got) {
    CALL(pthread_mutex_lock, word(&m));
    while (branch(load(&x) == 0)) CALL(pthread_cond_wait, word(&changed), word(&m));
    store(&x, load(&x) - 1);
    store(&total, load(&total) + 1);
    CALL(pthread_mutex_unlock, word(&m));
  }
}
void producer(long items) {
  for (long i = 0; i < items; ++i) {
    CALL(pthread_mutex_lock, word(&m));
    store(&x, load(&x) + 1);
    CALL(pthread_cond_signal, word(&changed));
    CALL(pthread_mutex_unlock, word(&m));
  }
}
void initialise() { store(&y, load(&y) + 7); }
void phases(long index) {
  CALL(pthread_once, word(&only), word(initialise));
  CALL(sem_wait, word(&sem));
  store(&x, load(&x) + 1);
  CALL(sem_post, word(&sem));
  CALL(pthread_barrier_wait, word(&barrier));
  if (branch(index == 0)) store(&total, load(&x) + load(&y));
}
// Blocks in a system call until the other thread, which must be able to run meanwhile, has written.
void reader(long) {
  char byte = 0;
  on_syscall(me, SYS_read, static_cast<ADDRINT>(ends[0]), word(&byte));
  if (read(ends[0], &byte, 1) != 1) std::_Exit(93);
  store(&y, byte);
}
void writer(long) {
  store(&x, load(&x) + 5);
  const char byte = 42;
  on_syscall(me, SYS_write, static_cast<ADDRINT>(ends[1]), word(&byte));
  if (write(ends[1], &byte, 1) != 1) std::_Exit(94);
  store(&x, load(&x) + 5);
}
void crossed(long first) {
  static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
  CALL(pthread_mutex_lock, word(first ? &m : &other));
  CALL(sched_yield, 0);
  CALL(pthread_mutex_lock, word(first ? &other : &m));
}

void pair(void (*a)(long), void (*b)(long), long n, long k) {
  const pthread_t first = spawn(a, n), second = spawn(b, k);
  join(first);
  join(second);
}

int scenario(const std::string& name) {
  if (name == "locked") return pair(locked, locked, 300, 300), load(&x) != 600;
  if (name == "racy") return pair(racy, racy, 200, 200), 0;
  if (name == "lost") return pair(racy, racy, 1, 1), static_cast<int>(load(&x));
  if (name == "instruction") return pair(one_instruction, one_instruction, 50, 50), load(&x) != 100;
  if (name == "atomics") return pair(atomics, atomics, 50, 50), load(&x) != 100;
  if (name == "queue") return pair(consumer, producer, 60, 60), load(&total) != 60;
  if (name == "outside") return pair(reader, writer, 0, 0), load(&x) != 10 || load(&y) != 42;
  if (name == "deadlock") return pair(crossed, crossed, 0, 1), 0;
  if (name == "phases") {
    CALL(sem_init, word(&sem), 0, 1);
    CALL(pthread_barrier_init, word(&barrier), 0, 2);
    return pair(phases, phases, 0, 1), load(&total) != 9;
  }
  if (name == "memory") {
    long from[4] = {1, 2, 3, 4};
    auto* to = reinterpret_cast<long*>(CALL(malloc, sizeof from));
    CALL(memcpy, word(to), word(from), sizeof from);
    CALL(memset, word(to), 0, 8);
    const long sum = load(&to[0]) + load(&to[1]) + load(&to[3]);
    CALL(free, word(to));
    return sum != 6;
  }
  return 95;
}

}  // namespace

int main(int argc, char** argv) {
  arguments = argv;
  static char path[4096];
  if (argc != 2 || readlink("/proc/self/exe", path, sizeof path - 1) < 0 || pipe(ends) != 0) return 96;
  bin_launch(argv[0]);
  dl_iterate_phdr(add_main_module, path);
  for (unsigned i = 0; i < function_count; ++i) { /* those that others need */
    if (std::string(functions[i].name) == "pthread_mutex_lock")
      functions[i].original = reinterpret_cast<AFUNPTR>(pthread_mutex_lock);
    if (std::string(functions[i].name) == "pthread_mutex_unlock")
      functions[i].original = reinterpret_cast<AFUNPTR>(pthread_mutex_unlock);
    if (std::string(functions[i].name) == "pthread_join")
      functions[i].original = reinterpret_cast<AFUNPTR>(pthread_join);
  }
  begin(0);
  main_begins(0, path, [](int i) -> const char* { return arguments[i]; });
  leave(scenario(argv[1]));
}
