#include "util/error.h"

#include <cstring>

namespace stem {

void check_failed(const char* condition, const char* file, int line) {
  const char* slash = std::strrchr(file, '/');
  throw InternalError(fmt::format("{}:{}: expected {}", slash ? slash + 1 : file, line, condition));
}

}  // namespace stem
