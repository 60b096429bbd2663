#include "tracer/launch/launch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "trace/plan.h"
#include "tracer/launch/message.h"
#include "tracer/launch/plan_file.h"
#include "tracer/launch/process.h"
#include "tracer/launch/summary.h"
#include "tracer/launch/tracer.h"
#include "util/error.h"

extern char** environ;

namespace stem::launch {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* kTraceSuffix = ".stemtrace";

// A folder of this run alone, gone when the run is over.
class Scratch {
 public:
  explicit Scratch(const std::string& output) {
    static std::atomic<unsigned> number{0};
    std::error_code error;
    fs::create_directories(output, error);
    if (error) user_error("cannot create the folder {} for traces: {}", output, error.message());
    path_ = fs::absolute(output) / fmt::format(".run-{}-{}", getpid(), number++);
    fs::create_directory(path_, error);
    if (error) user_error("cannot write to the folder {}: {}", output, error.message());
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.flush();
  if (!out) user_error("cannot write {}: {}", path.string(), std::strerror(errno));
}

// The kernel puts the environment and the path above main's stack: our own entries (folders of another length, process ids of
// another number of digits) must not move what the program has there from one run to the next.
constexpr std::string_view kPadding = "STEM_PADDING=";
void pad(std::vector<std::string>& environment, const std::string& path) {
  constexpr size_t kUnit = 4096;
  size_t bytes = kPadding.size() + 1 + path.size() + 1;
  for (const std::string& entry : environment) bytes += entry.size() + 1;
  environment.push_back(std::string(kPadding) + std::string((kUnit - bytes % kUnit) % kUnit, '-'));
}

std::vector<std::string> environment_of(const Options& options, const fs::path& scratch) {
  std::vector<std::string> result;
  auto ours = [](const std::string& entry) {
    return entry.starts_with("STEM_PLAN=") || entry.starts_with("STEM_RECORD=") || entry.starts_with("STEM_MODE=") ||
           entry.starts_with("STEM_SEED=") || entry.starts_with(kPadding);
  };
  for (char** entry = environ; *entry; ++entry)
    if (!ours(*entry)) result.push_back(*entry);
  result.insert(result.end(), options.environment.begin(), options.environment.end());
  result.push_back(fmt::format("{}={}", STEM_PLAN_ENV, (scratch / "plan").string()));
  result.push_back(fmt::format("{}={}", STEM_RECORD_ENV, scratch.string()));
  return result;
}

// How the program is named to a recorder that starts it (Valgrind, Pin), which makes that its argv[0]: as it was named
// before, if that leads to the same file from where it runs.
std::string named(const trace::Test& test) {
  if (test.argv.empty()) return test.program;
  std::error_code error;
  const std::string& name = test.argv[0];
  const fs::path path = name.find('/') == std::string::npos ? fs::path(find_program(name)) : fs::path(test.cwd) / name;
  return fs::equivalent(path, find_program(test.program), error) ? name : test.program;
}

struct Found {
  fs::path path;
  pid_t pid = 0;
  struct timespec began{};
};

// The traces in the run's folder, in the order in which they were created.
std::vector<Found> traces_in(const fs::path& folder) {
  std::vector<Found> result;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != kTraceSuffix) continue;
    Found found{entry.path(), 0, {}};
    std::string stem = entry.path().stem().string();
    found.pid = std::atoi(stem.c_str() + std::min(stem.rfind('-') + 1, stem.size()));
    struct statx info{};
    if (statx(AT_FDCWD, entry.path().c_str(), 0, STATX_BTIME | STATX_MTIME, &info) == 0) {
      const auto& time = info.stx_mask & STATX_BTIME ? info.stx_btime : info.stx_mtime;
      found.began = {time.tv_sec, time.tv_nsec};
    }
    result.push_back(std::move(found));
  }
  std::sort(result.begin(), result.end(), [](const Found& a, const Found& b) {
    return std::tie(a.began.tv_sec, a.began.tv_nsec, a.path) < std::tie(b.began.tv_sec, b.began.tv_nsec, b.path);
  });
  return result;
}

// Waits until the collector has let go of its trace. A process that outlives the command (a daemon) is given two
// seconds; a collector whose process is gone drains at its own pace, unless nothing happens for half a minute.
bool wait_for_collector(const Found& found) {
  int fd = open(found.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  auto began = Clock::now(), grew = began;
  off_t size = -1;
  auto pause = std::chrono::microseconds(100);
  bool complete = false;
  for (;;) {
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
      complete = true;
      break;
    }
    struct stat info{};
    if (fstat(fd, &info) == 0 && info.st_size != size) size = info.st_size, grew = Clock::now();
    auto limit = is_alive(found.pid) ? std::chrono::seconds(2) : std::chrono::seconds(30);
    if (Clock::now() - grew > limit) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10'000));
  }
  close(fd);
  return complete;
}

// Moves a trace into the output folder without replacing anything.
fs::path keep(const fs::path& trace, const fs::path& output) {
  for (int i = 0;; ++i) {
    fs::path target = output / (trace.stem().string() + (i ? fmt::format(".{}", i) : "") + kTraceSuffix);
    if (link(trace.c_str(), target.c_str()) == 0) return target;
    if (errno == EEXIST) continue;
    // A file system without hard links.
    if (access(target.c_str(), F_OK) == 0) continue;
    std::error_code error;
    fs::rename(trace, target, error);
    if (error) user_error("cannot keep the trace {}: {}", target.string(), error.message());
    return target;
  }
}

}  // namespace

RunResult run(const trace::Test& test, const Options& options) {
  std::string libraries = library_folder();
  if (access((libraries + "/stem-collect").c_str(), X_OK) != 0)
    user_error("{}/stem-collect is missing: this installation of STEM is not complete (stem doctor says more)",
               libraries);
  std::string output = options.output.empty() ? "." : options.output;
  Scratch scratch(output);
  StartOptions start_options;
  const std::string binary = find_program(test.program);
  const Tracer tracer = choose_tracer(binary, options.tracer);
  trace::Test planned = test;
  if (tracer == Tracer::Valgrind) {
    const ElfFacts facts = elf_facts(binary);
    planned.options["asked"] = facts.debug || facts.threads ? "1" : "0";
    write_file(scratch.path() / STEM_FIRST_FILE, "");
  }
  write_file(scratch.path() / "plan", plan_bytes(planned, options, libraries));
  start_options.command = options.wrapper;
  for (const std::string& word : tracer_command(tracer)) start_options.command.push_back(word);
  const bool directly = start_options.command.empty();
  start_options.command.push_back(directly ? test.program : named(test));
  if (!test.argv.empty()) {
    start_options.command.insert(start_options.command.end(), test.argv.begin() + 1, test.argv.end());
    if (directly) start_options.name = test.argv[0];
  }
  start_options.environment = environment_of(options, scratch.path());
  for (const std::string& entry : tracer_environment(tracer)) start_options.environment.push_back(entry);
  pad(start_options.environment, find_program(start_options.command[0]));
  start_options.cwd = test.cwd;
  start_options.quiet = options.quiet;

  auto began = Clock::now();
  pid_t pid = 0;
  Ended ended;
  {
    // From before the start: the program may be known to others sooner than start() returns.
    std::unique_ptr<ForwardSignals> forwarding;
    if (options.foreground) forwarding = std::make_unique<ForwardSignals>();
    pid = start(start_options);
    if (forwarding) forwarding->to(pid);
    ended = wait_for(pid, options.timeout);
  }
  RunResult result;
  result.exited = ended.exited;
  result.code = ended.code;
  result.timed_out = ended.timed_out;
  result.duration = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);

  pid_t main_pid = options.wrapper.empty() ? pid : 0;
  size_t main_index = 0;
  for (const Found& found : traces_in(scratch.path())) {
    if (found.pid == main_pid) main_index = result.processes.size();
    RecordedProcess process;
    process.complete = wait_for_collector(found);
    process.trace = keep(found.path, output).string();
    try {
      process.summary = summarize(process.trace);
      process.complete &= process.summary.whole;
    } catch (const UserError& error) {
      process.complete = false;
      process.unreadable = error.what();
    }
    result.processes.push_back(std::move(process));
  }
  reap_collectors();
  result.tool = tool_said(scratch.path().string());
  if (result.processes.empty()) return result;
  result.trace = result.processes[main_index].trace;
  const Summary& summary = result.processes[main_index].summary;
  result.outcome = summary.outcome;
  result.messages = summary.messages;
  for (const std::string& message : summary.messages) result.diverged |= message_kind(message) == "divergence";
  return result;
}

}  // namespace stem::launch
