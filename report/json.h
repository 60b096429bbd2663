// The model as JSON: what `--format json` prints and what the HTML report carries inside.
#pragma once

#include <nlohmann/json.hpp>

#include "report/change.h"
#include "report/model.h"

namespace stem::report {

using Json = nlohmann::ordered_json;

// Text is made valid UTF-8. With sources, the text of every file comes along.
Json to_json(const Model& model, const Change* change, bool with_sources);
Json to_json(const Coverage& coverage);

}  // namespace stem::report
