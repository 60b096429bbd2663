// The parser of the text form on arbitrary text; what it accepts must print and parse back to the same trace, and pass
// through the checker without a crash.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trace/checker.h"
#include "trace/text.h"
#include "util/error.h"

using namespace stem::trace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Trace trace;
  try {
    trace = parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const stem::UserError&) {
    return 0;
  }
  if (!(parse(print(trace), "printed") == trace)) std::abort();
  check(trace);
  return 0;
}
