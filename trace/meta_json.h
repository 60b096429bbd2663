// trace::Meta from the JSON that a recorder sends at the start of its stream.
#pragma once

#include <string>

#include "trace/event.h"

namespace stem::trace {

// Missing or mistyped fields keep their defaults; text that is no JSON object gives the default Meta. Strings may hold
// bytes that are not UTF-8, as file names may.
Meta meta_from_json(const std::string& text);

}  // namespace stem::trace
