#include "tracer/launch/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <iterator>
#include <memory>

#include "tracer/launch/launch.h"
#include "util/error.h"

namespace stem::launch {

namespace {

constexpr const char* kCollectorName = "stem-collect";

struct ProcessInfo {
  std::string name;
  char state = 0;
  pid_t parent = 0;
};

// /proc/<pid>/stat; false when there is no such process.
bool read_info(pid_t pid, ProcessInfo& info) {
  char text[512];
  int fd = open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return false;
  text[size] = 0;
  char* open_paren = std::strchr(text, '(');
  char* close_paren = std::strrchr(text, ')');
  if (!open_paren || !close_paren || close_paren[1] != ' ') return false;
  info.name.assign(open_paren + 1, close_paren);
  info.state = close_paren[2];
  info.parent = std::atoi(close_paren + 3);
  return true;
}

// Calls use(pid, info) for every process of the machine that we can see.
template <typename Use>
void each_process(Use use) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return;
  while (dirent* entry = readdir(folder.get())) {
    pid_t pid = std::atoi(entry->d_name);
    ProcessInfo info;
    if (pid > 0 && read_info(pid, info)) use(pid, info);
  }
}

// Everything below `root`, but not collectors: they end by themselves and save the trace.
std::vector<pid_t> descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  each_process([&](pid_t pid, const ProcessInfo& info) {
    if (info.name != kCollectorName) children.emplace(info.parent, pid);
  });
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size(); ++i) {
    auto [first, last] = children.equal_range(found[i]);
    for (auto it = first; it != last; ++it) found.push_back(it->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

int open_pidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

// --- signals ---------------------------------------------------------------------------------------------------------

namespace {

constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};
volatile sig_atomic_t forwarding = 0, forward_to = 0;
volatile sig_atomic_t early[std::size(kForwarded)];  // came before there was a program to send them to
struct sigaction saved[std::size(kForwarded)];

void forward(int signal, siginfo_t* info, void*) {
  int error = errno;
  // What the terminal sends (SI_KERNEL), it sends to the program as well.
  if (info->si_code <= 0 && info->si_pid != forward_to) {
    if (forward_to) kill(forward_to, signal);
    for (size_t i = 0; !forward_to && i < std::size(kForwarded); ++i)
      if (kForwarded[i] == signal) early[i] = 1;
  }
  errno = error;
}

void stop_forwarding() {
  if (!forwarding) return;
  for (size_t i = 0; i < std::size(kForwarded); ++i) sigaction(kForwarded[i], &saved[i], nullptr);
  forwarding = 0;
  forward_to = 0;
}

}  // namespace

ForwardSignals::ForwardSignals() {
  forwarding = 1;
  struct sigaction action {};
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (size_t i = 0; i < std::size(kForwarded); ++i) {
    early[i] = 0;
    sigaction(kForwarded[i], nullptr, &saved[i]);
    if (saved[i].sa_handler != SIG_IGN) sigaction(kForwarded[i], &action, nullptr);
  }
}

void ForwardSignals::to(pid_t pid) {
  forward_to = pid;
  for (size_t i = 0; i < std::size(kForwarded); ++i)
    if (early[i]) kill(pid, kForwarded[i]);
}

ForwardSignals::~ForwardSignals() { stop_forwarding(); }

pid_t start(const StartOptions& options) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  STEM_CHECK(!options.command.empty());
  std::string path = find_program(options.command[0]);
  if (path.empty()) {
    bool is_path = options.command[0].find('/') != std::string::npos;
    user_error("cannot run {}: no such {}; is it built?", options.command[0], is_path ? "file" : "command on the PATH");
  }
  std::vector<std::string> words = options.command;
  if (!options.name.empty()) words[0] = options.name;
  std::vector<char*> argv = pointers(words), envp = pointers(options.environment);

  int report[2];  // carries the errno of a failed exec; closed by a successful one
  if (pipe2(report, O_CLOEXEC) != 0) user_error("cannot run {}: {}", words[0], std::strerror(errno));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pid_t pid = fork();
  if (pid == 0) {
    // Only async-signal-safe calls: other threads may have held any lock.
    bool ready = options.cwd.empty() || chdir(options.cwd.c_str()) == 0;
    if (ready && options.quiet) {
      int null = open("/dev/null", O_RDWR);
      ready = null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0;
      if (null > 2) close(null);
    }
    stop_forwarding();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    // Addresses that are the same in every run make replay robust; where it is forbidden, runs still compare by object.
    personality(ADDR_NO_RANDOMIZE);
    if (ready) execve(path.c_str(), argv.data(), envp.data());
    int error = errno;
    ssize_t ignored = write(report[1], &error, sizeof error);
    (void)ignored;
    _exit(127);
  }
  int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(report[1]);
  int error = 0;
  ssize_t got = 0;
  if (pid > 0)
    do got = read(report[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
  close(report[0]);
  if (pid < 0) user_error("cannot run {}: {}", words[0], std::strerror(fork_error));
  if (got == sizeof error) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (!options.cwd.empty() && access(options.cwd.c_str(), X_OK) != 0)
      user_error("cannot run {} in {}: {}", words[0], options.cwd, std::strerror(error));
    user_error("cannot run {}: {}{}", path, std::strerror(error), error == ENOEXEC ? " (a script needs a first line such as #!/bin/sh)" : "");
  }
  return pid;
}

Ended wait_for(pid_t pid, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  Ended ended;
  if (timeout.count() > 0) {
    int fd = open_pidfd(pid);
    auto deadline = Clock::now() + timeout;
    for (;;) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd poll_fd{fd, POLLIN, 0};
      int ready = poll(&poll_fd, fd >= 0 ? 1 : 0, static_cast<int>(std::max<long long>(0, std::min<long long>(left, fd >= 0 ? 3'600'000 : 5))));
      if (ready > 0) break;
      siginfo_t info{};
      if (fd < 0 && waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) break;
      if (Clock::now() >= deadline) {
        ended.timed_out = true;
        // Stop them all first: a killed parent's child would no longer be found.
        std::vector<pid_t> below = descendants(pid);
        kill(pid, SIGKILL);
        for (pid_t other : below) kill(other, SIGKILL);
        break;
      }
    }
    if (fd >= 0) close(fd);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) STEM_CHECK(errno == EINTR);
  ended.exited = WIFEXITED(status);
  ended.code = ended.exited ? WEXITSTATUS(status) : WTERMSIG(status);
  return ended;
}

bool is_alive(pid_t pid) {
  ProcessInfo info;
  return read_info(pid, info) && info.state != 'Z' && info.state != 'X';
}

void reap_collectors() {
  pid_t self = getpid();
  each_process([&](pid_t pid, const ProcessInfo& info) {
    if (info.parent == self && info.state == 'Z' && info.name == kCollectorName) waitpid(pid, nullptr, WNOHANG);
  });
}

}  // namespace stem::launch
