// Makes a witness that a solver found one for people: other threads do no more than they must, switches between threads go
// where they can, inputs keep their recorded values where that does as well. Every step is tried, not argued: whoever calls
// says what is still good. Costs one run of the checker a try, within a budget.
#pragma once

#include <functional>

#include "predictor/witness.h"

namespace stem::predictor {

using Good = std::function<bool(const Witness&)>;

// The last event of the schedule stays the last.
void simplify_schedule(const trace::Trace& trace, Witness& witness, const Good& good);
void simplify_inputs(const trace::Trace& trace, Witness& witness, const Good& good);

}  // namespace stem::predictor
