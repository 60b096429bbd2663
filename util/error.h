// Three mechanisms, never mixed: a user's error is a UserError (exit code 2, one clear message, no stack); a bug of ours
// is a failed STEM_CHECK (exit code 3); an outcome of an analysis is a value.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace stem {

// Something the user can put right. The message names the file, line or option, and what to do.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// Stays on in release builds.
#define STEM_CHECK(condition) \
  do {                        \
    if (!(condition)) ::stem::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

}  // namespace stem
