#include "tracer/launch/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "util/error.h"

namespace stem::launch {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

json to_json(const RunEntry& run) {
  return {{"id", run.id},     {"trace", run.trace},     {"program", run.program}, {"argv", run.argv},       {"mode", run.mode},
          {"seed", run.seed}, {"outcome", run.outcome}, {"events", run.events},   {"threads", run.threads}, {"test", run.test}};
}

RunEntry from_json(const json& line) {
  RunEntry run;
  run.id = line.value("id", uint64_t{0});
  run.trace = line.value("trace", "");
  run.program = line.value("program", "");
  run.argv = line.value("argv", std::vector<std::string>{});
  run.mode = line.value("mode", "");
  run.seed = line.value("seed", uint64_t{0});
  run.outcome = line.value("outcome", "");
  run.events = line.value("events", uint64_t{0});
  run.threads = line.value("threads", uint64_t{0});
  run.test = line.value("test", "");
  return run;
}

// The list, open and locked for as long as it lives.
class Locked {
 public:
  explicit Locked(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (fd_ < 0) user_error("cannot write {}: {}", path, std::strerror(errno));
    while (flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) user_error("cannot lock {}: {}", path, std::strerror(errno));
  }
  ~Locked() { close(fd_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  void append(const std::string& line) {
    off_t before = lseek(fd_, 0, SEEK_END);
    if (write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
    int error = errno;
    if (ftruncate(fd_, before) != 0) error = errno;  // half a line would spoil the next one
    user_error("cannot write {}: {}", path_, std::strerror(error));
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

State::State(const std::string& given) {
  const char* named = std::getenv("STEM_STATE");
  folder_ = !given.empty() ? given : named && *named ? named : ".stem";
}

std::vector<RunEntry> State::runs() const {
  std::vector<RunEntry> result;
  std::ifstream in(folder_ + "/runs.jsonl");
  for (std::string line; std::getline(in, line);) {
    json parsed = json::parse(line, nullptr, false);
    if (!parsed.is_object()) continue;
    try {
      RunEntry run = from_json(parsed);
      if (fs::path(run.trace).is_relative()) run.trace = (fs::path(folder_) / run.trace).string();
      if (run.id) result.push_back(std::move(run));
    } catch (const json::exception&) {
      continue;  // a line that somebody edited
    }
  }
  return result;
}

std::optional<RunEntry> State::find(uint64_t id) const {
  for (RunEntry& run : runs())
    if (run.id == id) return run;
  return std::nullopt;
}

RunEntry State::add(RunEntry run) {
  std::error_code error;
  fs::create_directories(traces(), error);
  if (error) user_error("cannot create {}: {}", traces(), error.message());
  Locked list(folder_ + "/runs.jsonl");
  for (const RunEntry& other : runs()) run.id = std::max(run.id, other.id);
  std::string target;
  do {
    ++run.id;
    target = fmt::format("traces/{}.stemtrace", run.id);
  } while (fs::exists(folder_ + "/" + target));
  fs::rename(run.trace, folder_ + "/" + target, error);
  if (error == std::errc::cross_device_link) {
    fs::copy_file(run.trace, folder_ + "/" + target, error);
    if (!error) fs::remove(run.trace);
  }
  if (error) user_error("cannot move {} to {}/{}: {}", run.trace, folder_, target, error.message());
  run.trace = target;
  list.append(to_json(run).dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  run.trace = folder_ + "/" + target;
  return run;
}

}  // namespace stem::launch
