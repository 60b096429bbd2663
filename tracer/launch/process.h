// One child process: started without touching what it inherits, waited for with a deadline, ended with all its
// descendants when the deadline passes.
//
// We are a child subreaper: what the program leaves behind, collectors above all, becomes our child and not init's.
// Only collectors are reaped here, by their name, so nobody else's wait() loses a child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace stem::launch {

struct StartOptions {
  std::vector<std::string> command;      // found by PATH
  std::vector<std::string> environment;  // complete
  std::string cwd;                       // empty: ours
  bool quiet = false;                    // /dev/null for its input and output
  std::string name;                      // argv[0]; empty: command[0]
};

// Throws UserError when it cannot be run.
pid_t start(const StartOptions& options);

struct Ended {
  bool exited = false;  // else a signal ended it
  int code = 0;         // exit code, or the signal
  bool timed_out = false;
};

// Waits until `pid` ends; past the timeout (0: none) kills it and everything it started, and waits then.
Ended wait_for(pid_t pid, std::chrono::milliseconds timeout);

// While it lives, signals that are sent to this process (and not to the whole terminal) go on to the program, and those of
// the terminal are left to it. Made before start(), so that none is missed; what came before to() is sent then. One at a time.
class ForwardSignals {
 public:
  ForwardSignals();
  ~ForwardSignals();
  void to(pid_t pid);
  ForwardSignals(const ForwardSignals&) = delete;
  ForwardSignals& operator=(const ForwardSignals&) = delete;
};

bool is_alive(pid_t pid);  // a zombie is not
void reap_collectors();

}  // namespace stem::launch
