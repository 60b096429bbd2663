// Suppressions: somebody looked, and says why it is fine. They are counted in every report, and their pairs leave the
// denominator of coverage and the gates.
//
// In the source, at the end of the line of the definition or the use, or alone on the line before it:
//     count = 0;  // stem:ignore only statistics
// In .stem/ignore, one a line; '#' starts a comment; * and ? stand for anything:
//     variable stats.*        only statistics
//     function debug_*        not in the product
//     file third_party/*      not ours
//     pair 0123456789abcdef   reviewed, harmless      (the fingerprint that every report shows)
// A reason is not optional: without one it is reported, and nothing is suppressed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/model.h"

namespace stem::report {

struct Rule {
  enum Kind { Variable, Function, File, Fingerprint } kind = Variable;
  std::string pattern, reason;
};

// Throws UserError naming the line that is wrong. No file: no rules.
std::vector<Rule> read_rules(const std::filesystem::path& file);
std::vector<Rule> parse_rules(const std::string& text, const std::string& file_name);

// Marks pairs and violations; comments without a reason become notes of the model.
void suppress(Model& model, const std::vector<Rule>& rules);

}  // namespace stem::report
