#include "cli/run_options.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "trace/test_file.h"
#include "util/error.h"

namespace stem::cli {

trace::Input parse_input(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) user_error("--input {}: write it as NAME=VALUE, for example --input n=3", text);
  trace::Input input;
  input.name = text.substr(0, equals);
  std::string value = text.substr(equals + 1);
  if (value.starts_with("hex:")) {
    auto bytes = trace::unhex(value.substr(4));
    if (!bytes) user_error("--input {}: hex: takes two digits a byte, for example hex:0aff", text);
    input.bytes = *bytes;
    return input;
  }
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    input.bytes.assign(value.begin() + 1, value.end() - 1);
    return input;
  }
  char* end = nullptr;
  errno = 0;
  uint64_t number = value.starts_with("-") ? static_cast<uint64_t>(std::strtoll(value.c_str(), &end, 0)) : std::strtoull(value.c_str(), &end, 0);
  if (!value.empty() && *end == 0) {
    if (errno == ERANGE) user_error("--input {}: does not fit into 64 bits", text);
    for (int i = 0; i < 8; ++i) input.bytes.push_back(static_cast<uint8_t>(number >> (8 * i)));
    return input;
  }
  input.bytes.assign(value.begin(), value.end());
  return input;
}

void end_like(const launch::RunResult& result) {
  std::fflush(nullptr);
  if (result.timed_out) std::_Exit(124);  // as timeout(1)
  if (result.exited) std::_Exit(result.code);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(result.code, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, result.code);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(result.code);
  std::_Exit(128 + result.code);
}

std::string counted(uint64_t number, const std::string& thing) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace stem::cli
