// The predictors that can be compared with the oracle.
#pragma once

#include <vector>

#include "oracle/harness.h"

namespace stem::oracle {

std::vector<Subject> subjects();

}  // namespace stem::oracle
