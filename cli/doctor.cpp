// `stem doctor`: what STEM needs on this machine, what is there, and the command that gets what is missing.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tracer/launch/launch.h"
#include "tracer/launch/state.h"
#include "tracer/launch/tracer.h"

namespace stem::cli {

namespace fs = std::filesystem;

namespace {

enum class Need { Required, Optional };

class Checkup {
 public:
  void good(const std::string& what, const std::string& detail) { print("ok", what, detail); }

  void bad(Need need, const std::string& what, const std::string& detail, const std::string& remedy, const std::string& package = "") {
    print(need == Need::Required ? "MISSING" : "absent", what, detail);
    if (!remedy.empty()) fmt::print("           {}\n", remedy);
    if (!package.empty()) packages_.push_back(package);
    if (need == Need::Required) healthy_ = false;
  }

  // 0: everything that is needed is there.
  int finish() const {
    if (!packages_.empty()) {
      std::string list;
      for (const std::string& package : packages_) list += " " + package;
      fmt::print("\nto get what is missing: sudo apt-get install{}\n", list);
    }
    fmt::print("\n{}\n", healthy_ ? "STEM can record and replay on this machine." : "STEM cannot work on this machine yet: see MISSING above.");
    return healthy_ ? 0 : 2;
  }

 private:
  static void print(const std::string& state, const std::string& what, const std::string& detail) {
    fmt::print("{:>8}  {:<18} {}\n", state, what, detail);
  }

  std::vector<std::string> packages_;
  bool healthy_ = true;
};

// First line of what a command prints; empty if it cannot be run.
std::string first_line(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"), pclose);
  std::array<char, 256> line{};
  if (!pipe || !std::fgets(line.data(), line.size(), pipe.get())) return "";
  std::string text = line.data();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void check_tool(Checkup& checkup, Need need, const std::string& what, const std::vector<std::string>& commands, const std::string& why,
                const std::string& package) {
  for (const std::string& command : commands) {
    std::string version = first_line(command + " --version");
    if (!version.empty()) return checkup.good(what, version);
  }
  checkup.bad(need, what, why, "", package);
}

void check_part(Checkup& checkup, const std::string& what, const std::string& path) {
  if (access(path.c_str(), R_OK) == 0) return checkup.good(what, path);
  checkup.bad(Need::Required, what, path, "this installation is not complete: build STEM again (cmake --build build) or install it (cmake --install build)");
}

void check_memory(Checkup& checkup) {
  int fd = memfd_create("stem-doctor", MFD_CLOEXEC);
  bool mapped = false;
  if (fd >= 0 && ftruncate(fd, 4096) == 0) {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mapped = page != MAP_FAILED;
    if (mapped) munmap(page, 4096);
  }
  int error = errno;
  if (fd >= 0) close(fd);
  if (mapped) checkup.good("shared memory", "memfd_create works");
  else checkup.bad(Need::Required, "shared memory", std::strerror(error), "recording needs memfd_create(2): Linux 3.17 or later, and a sandbox that allows it");
}

void check_disk(Checkup& checkup, const std::string& folder) {
  std::error_code error;
  fs::path existing = fs::absolute(folder, error);
  while (!existing.empty() && !fs::exists(existing, error)) existing = existing.parent_path();
  if (access(existing.c_str(), W_OK) != 0)
    return checkup.bad(Need::Required, "state folder", fmt::format("{} cannot be written", existing.string()), "choose another with --state FOLDER or STEM_STATE");
  fs::space_info space = fs::space(existing, error);
  double gigabytes = error ? 0 : static_cast<double>(space.available) / (1u << 30);
  std::string detail = fmt::format("{}, {:.1f} GB free", folder, gigabytes);
  if (gigabytes >= 1) checkup.good("state folder", detail);
  else checkup.bad(Need::Optional, "state folder", detail, "a long run writes about 2 bytes for each access to shared memory: make room");
}

void check_ptrace(Checkup& checkup) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/sys/kernel/yama/ptrace_scope", "r"), [](FILE* f) { return f ? std::fclose(f) : 0; });
  int scope = 0;
  if (file && std::fscanf(file.get(), "%d", &scope) == 1 && scope >= 3)
    checkup.bad(Need::Optional, "ptrace", "switched off (kernel.yama.ptrace_scope=3)", "stem replay --gdb needs it");
  else
    checkup.good("ptrace", "a debugger may start programs");
}

// For programs that cannot be compiled with stem-cc.
void check_pin(Checkup& checkup) {
  const std::string missing = launch::missing_part(launch::Tracer::Pin);
  if (missing.empty()) return checkup.good("Pin recorder", launch::tracer_command(launch::Tracer::Pin).front());
  checkup.bad(Need::Optional, "Pin recorder", fmt::format("not built ({} is missing)", missing),
              "not needed where Valgrind is; with Pin's kit: build STEM with -DPIN_ROOT=FOLDER (docs/pin.md)");
}

void check_valgrind(Checkup& checkup) {
  const std::string version = first_line("valgrind --version");
  const std::string missing = launch::missing_part(launch::Tracer::Valgrind);
  if (version.empty()) return checkup.bad(Need::Optional, "Valgrind recorder", "valgrind is not installed: programs that stem-cc has not compiled cannot be recorded", "", "valgrind");
  if (missing.empty()) return checkup.good("Valgrind recorder", version);
  checkup.bad(Need::Optional, "Valgrind recorder", fmt::format("{} is missing", missing),
              fmt::format("it was not built: it needs the libraries and headers of valgrind 3.19 when STEM is built; here is {}", version));
}

int doctor(const std::string& state) {
  Checkup checkup;
  std::string libraries = launch::library_folder();
  fs::path bin = fs::path(libraries).parent_path().parent_path() / "bin";
  check_tool(checkup, Need::Required, "clang 19", {"/usr/lib/llvm-19/bin/clang", "clang-19"}, "stem-cc compiles with it", "clang-19");
  check_tool(checkup, Need::Optional, "lld 19", {"/usr/lib/llvm-19/bin/ld.lld", "ld.lld-19"}, "only for programs linked with -fuse-ld=lld", "lld-19");
  check_part(checkup, "stem-cc", bin / "stem-cc");
  check_part(checkup, "stem-c++", bin / "stem-c++");
  check_part(checkup, "compiler plugin", libraries + "/stem-pass.so");
  check_part(checkup, "runtime", libraries + "/libstem_rt.a");
  check_part(checkup, "collector", libraries + "/stem-collect");
  check_memory(checkup);
  check_disk(checkup, launch::State(state).folder());
  check_tool(checkup, Need::Optional, "gdb", {"gdb"}, "stem replay --gdb needs it", "gdb");
  check_ptrace(checkup);
  check_valgrind(checkup);
  check_pin(checkup);
  return checkup.finish();
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto state = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("doctor", "Say what is missing on this machine, and how to get it");
  command->add_option("--state", *state, "The state folder to check instead of .stem")->type_name("FOLDER");
  command->footer("Exit code 0: STEM can work here. 2: something that it needs is missing.");
  command->callback([state] {
    if (int code = doctor(*state)) throw CLI::RuntimeError(code);
  });
}

}  // namespace stem::cli
