// Results of several machines in one database.
#pragma once

#include "db/database.h"

namespace stem::db {

struct Merged {
  int64_t runs = 0, pairs = 0, verdicts = 0, findings = 0;  // how many more `into` has now
};

// Adds what `from` knows to `into`, in one transaction. `from` is not changed. Merging twice changes nothing.
Merged merge(Database& into, const std::filesystem::path& from);

}  // namespace stem::db
