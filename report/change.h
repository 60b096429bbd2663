// What a change adds, loses and leaves untested: the form that belongs in code review.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/model.h"

namespace stem::report {

struct Change {
  std::string base;                     // what it is compared with, for people
  bool base_known = false;              // false: no run of the base is recorded, so `lost` cannot be told
  std::vector<size_t> added;            // indices into Model::pairs
  std::vector<Pair> lost;               // the base had them; what they touched is gone, or was not run
  std::vector<size_t> uncovered_since;  // the base covered them, these results do not
  std::vector<size_t> untested;         // added, or on a changed line, or covered no more: and open
  std::map<std::string, std::set<int64_t>> lines;  // changed lines, where they are known
};

// Against a git revision: its changed lines, and the runs recorded of it if there are any. Throws UserError.
Change since(const Model& model, db::Database& database, const std::filesystem::path& project, const std::string& revision);

// Against another database.
Change compare(const Model& model, const std::filesystem::path& base, const std::filesystem::path& project);

// The changed lines of a `git diff --unified=0` (new side).
std::map<std::string, std::set<int64_t>> changed_lines(const std::string& diff);

}  // namespace stem::report
