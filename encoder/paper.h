// The paper's formula as the baseline; see paper.cpp. Internal to encoder/.
#pragma once

#include "encoder/values.h"

namespace stem::encoder {

void add_paper(Formula& f, Values& values);                                                     // (3) to (7)
z3::expr paper_takes(Formula& f, uint32_t read, const Chunk& chunk, uint32_t write);  // inside (7), and (9)

}  // namespace stem::encoder
