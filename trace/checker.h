// Is a trace well-formed? What every analysis relies on, checked event by event in memory that does not grow with the
// trace:
//   threads      start once, after their creation, end once, are joined after their end
//   mutexes, read-write locks, condition variables, semaphores, barriers, once, atomic sections: as their rules say
//   memory       every read takes what the last write (recorded or external) left, or what the object began with
//   expressions  well-typed; writes, branches, pins and assertions agree with what their expressions evaluate to
// A problem names the source line and the reason. A program that breaks the rules (it unlocks what another thread holds) is
// reported alike: no analysis here has a meaning for such a run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/event.h"
#include "trace/names.h"
#include "trace/shadow.h"
#include "trace/value_store.h"
#include "util/error.h"

namespace stem::trace {

struct Problem {
  uint64_t event;     // index
  std::string where;  // thread, source line
  std::string what;
};
std::string to_string(const Problem& problem);  // "event 12, main/1 a.c:7:3 x: reads 5, but 4 was written last"

class Checker {
 public:
  explicit Checker(const Names& names, size_t keep = 100) : names_(names), keep_(keep) {}

  // In the order of the trace; an expression before the first event that refers to it.
  void expr(ExprId id, const Expr& expr);
  void event(uint64_t index, const Event& event);
  void finish(Outcome outcome, int exit_code, bool complete);

  bool ok() const { return count_ == 0; }
  const std::vector<Problem>& problems() const { return problems_; }  // the first ones
  uint64_t count() const { return count_; }
  // Reads and expressions that were too far from what explains them to be checked (memory beyond 128 MiB, no disk space).
  uint64_t unchecked() const { return unchecked_; }

 private:
  struct ThreadState {
    bool created = false, started = false, ended = false, joined = false;
    int handlers = 0;                 // signal handlers under way
    bool waiting = false, reacquire = false;
    uint64_t cond = 0, mutex = 0;     // of the wait under way
    std::optional<ThreadId> woken_by;
  };
  struct Mutex {
    ThreadId owner = kNone;
    uint64_t depth = 0;
  };
  struct RwLock {
    ThreadId writer = kNone;
    std::map<ThreadId, uint64_t> readers;
  };
  struct Semaphore {
    std::optional<uint64_t> count;
  };
  struct Barrier {
    struct Leaving {
      uint64_t left = 0;
      bool serial = false;
    };
    uint64_t need = 0, generation = 0, arrived = 0;
    std::map<uint64_t, Leaving> leaving;  // complete generations that somebody has not left yet
  };
  struct Once {
    bool done = false;
    ThreadId running = kNone;
  };

  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    report(fmt::format(format, std::forward<Args>(args)...));
  }
  void report(std::string what);
  std::string name(const Event& e) const;
  std::string thread_name(ThreadId id) const { return names_.thread(id).path; }

  void thread_rules(const Event& e);
  void child_rules(const Event& e);
  void memory(const Event& e);
  void read_explained(const Event& e, uint64_t value);
  void mutex(const Event& e);
  void rwlock(const Event& e);
  void condition(const Event& e);
  void semaphore(const Event& e);
  void barrier(const Event& e);
  void once(const Event& e);
  void atomic_section(const Event& e);
  void forget_range(uint64_t base, uint64_t size);
  void values(const Event& e);
  void leaf(const Event& e);
  ValueStore::Value evaluate(const Expr& e);
  void settle_pending();
  void expect(const Event& e, ExprId expr, uint64_t value, const char* what);
  ThreadState& state(ThreadId id);

  const Names& names_;
  size_t keep_;
  std::vector<Problem> problems_;
  uint64_t count_ = 0, unchecked_ = 0;
  uint64_t index_ = 0;
  const Event* event_ = nullptr;
  bool exited_ = false;
  uint64_t exit_value_ = 0, exit_outcome_ = 0;
  std::vector<ThreadState> threads_;
  std::map<uint64_t, Mutex> mutexes_;
  std::map<uint64_t, RwLock> rwlocks_;
  std::map<uint64_t, Semaphore> semaphores_;
  std::map<uint64_t, Barrier> barriers_;
  std::map<uint64_t, Once> onces_;
  ThreadId atomic_owner_ = kNone;
  Shadow shadow_;
  ValueStore values_;
  uint64_t next_event_ = 0;
  std::unordered_map<uint64_t, std::vector<ExprId>> pending_leaves_;  // by the event they wait for
  std::vector<std::pair<ExprId, Expr>> pending_;
};

struct CheckResult {
  uint64_t events = 0, exprs = 0;
  uint64_t problem_count = 0, unchecked = 0;
  std::vector<Problem> problems;
  bool ok() const { return problem_count == 0; }
};

CheckResult check(const Trace& trace, size_t keep = 100);
CheckResult check(Reader& reader, size_t keep = 100);  // reads it to its end

// Throws UserError with the reasons: no analysis has a meaning for a trace that is not well-formed.
void require(const CheckResult& result, const std::string& path);

}  // namespace stem::trace
