// The reader and the checker on arbitrary bytes: any answer but a crash, a hang or unbounded memory is fine. Checksums are
// not verified, or nothing would get past them.
#include <cstdint>
#include <vector>

#include "trace/checker.h"
#include "trace/names.h"
#include "trace/reader.h"
#include "util/error.h"

using namespace stem::trace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Reader reader("fuzz", std::vector<uint8_t>(data, data + size), {.keep_nondets = false, .verify = false});
    ReaderNames names(reader);
    Checker checker(names, 5);
    uint64_t items = 0;  // a small file can describe a very long run: a part of it will do
    for (Reader::Item item; items < 20000 && (item = reader.next()) != Reader::Item::End; ++items) {
      if (item == Reader::Item::Expr) checker.expr(reader.expr_id(), reader.expr());
      else checker.event(reader.event_index(), reader.event());
    }
    checker.finish(reader.outcome(), reader.exit_code(), reader.recovery().complete);
    Reader tables("fuzz", std::vector<uint8_t>(data, data + size), {.keep_nondets = false, .verify = false, .items = false});
    tables.next();
  } catch (const stem::UserError&) {
  }
  return 0;
}
