// `stem-collect`: the process beside a recorded program that turns its records into a trace file. Started by the runtime
// (STEM_FD, STEM_LIFE_FD and STEM_RECORD in the environment), never by people.
//
// Exit codes: 0 the trace is complete; 1 it could not be written to its end (a message says why, the file is a readable
// prefix); 2 it could not start; 3 a bug in STEM (the file is a readable prefix).
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "trace/plan.h"
#include "trace/writer.h"
#include "tracer/launch/collect/shared.h"
#include "tracer/launch/collect/translate.h"
#include "util/error.h"

namespace stem::collect {

namespace {

int number(const char* name, const char* value, int otherwise) {
  if (!value) return otherwise;
  char* end = nullptr;
  long n = std::strtol(value, &end, 10);
  if (end == value || *end || n < 0 || n > INT_MAX) user_error("{}={} is not a descriptor", name, value);
  return static_cast<int>(n);
}

// <folder>/<program>-<pid>.stemtrace, or <program>.1-<pid> if that is taken (a process that became another by exec).
std::string new_trace(const std::string& folder, uint32_t pid) {
  ::mkdir(folder.c_str(), 0777);
  char link[PATH_MAX];
  ssize_t n = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), link, sizeof link - 1);
  std::string program = n > 0 ? std::string(link, static_cast<size_t>(n)) : "program";
  program = program.substr(program.rfind('/') + 1);
  for (char& c : program) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) c = '_';
  }
  for (int i = 0; i < 10000; ++i) {
    std::string path = fmt::format("{}/{}{}-{}.stemtrace", folder, program.substr(0, 200), i ? fmt::format(".{}", i) : "", pid);
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) {
      ::close(fd);
      return path;
    }
    if (errno != EEXIST) user_error("cannot record into {}: {}", folder, std::strerror(errno));
  }
  user_error("cannot record into {}: it is full of traces", folder);
}

// We outlive what happens to the program, use the other processor if there is one, and are not in its process group.
void detach() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGTSTP, SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM}) ::signal(signal, SIG_IGN);
  ::setsid();
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  ::sched_setaffinity(0, sizeof all, &all);
}

int run(int argc, char** argv) {
  int fd = number(STEM_RAW_ENV, std::getenv(STEM_RAW_ENV), -1), life = number(STEM_RAW_LIFE_ENV, std::getenv(STEM_RAW_LIFE_ENV), -1);
  std::string output;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string option = argv[i];
    if (option == "--fd") fd = number("--fd", argv[i + 1], -1);
    else if (option == "--life") life = number("--life", argv[i + 1], -1);
    else if (option == "--output") output = argv[i + 1];
    else user_error("unknown option {}", option);
  }
  if (fd < 0) user_error("stem-collect is started by recorded programs; use `stem record`");
  detach();
  Shared shared(fd, life);
  if (output.empty()) {
    const char* folder = std::getenv(STEM_RECORD_ENV);
    if (!folder || !*folder) user_error("{} does not say where traces go", STEM_RECORD_ENV);
    output = new_trace(folder, shared.producer());
  }
  // Whoever waits for the trace waits for this lock.
  int lock = ::open(output.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) user_error("{}: cannot write the trace: {}", output, std::strerror(errno));
  ::flock(lock, LOCK_EX);

  std::unique_ptr<trace::Writer> writer;
  try {
    writer = std::make_unique<trace::Writer>(output, trace::Meta{});
    Translator translator(*writer);
    shared.ready();
    shared.drain(translator, *writer);
    translator.finish();
  } catch (const trace::WriteError& error) {
    shared.failed();
    fmt::print(stderr, "stem: the trace could not be written to its end: {}\n", error.what());
    fmt::print(stderr, "stem: the program ran on without being recorded; {} holds the first {} events\n", output, writer ? writer->written_events() : 0);
    return 1;
  } catch (...) {
    shared.failed();
    throw;
  }
  shared.complete();
  return 0;
}

}  // namespace

}  // namespace stem::collect

int main(int argc, char** argv) {
  int code = 0;
  try {
    code = stem::collect::run(argc, argv);
  } catch (const stem::UserError& error) {
    fmt::print(stderr, "stem: {}\n", error.what());
    code = 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stem: bug in STEM: stem-collect: {}\n", error.what());
    code = 3;
  }
  std::fflush(nullptr);
  ::_exit(code);  // a thread may still watch the program
}
