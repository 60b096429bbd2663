// Makes a failing program small: removes statements, inlines bodies, empties threads, while it still fails.
#pragma once

#include <functional>

#include "oracle/program.h"

namespace stem::oracle {

Program shrink(Program program, const std::function<bool(const Program&)>& fails);

}  // namespace stem::oracle
