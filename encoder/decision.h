// What a branch decides, for the two ways of asking for another outcome. Internal to encoder/.
#pragma once

#include <vector>

#include "encoder/encoder.h"
#include "encoder/terms.h"

namespace stem::encoder {

// A recorder notes an assertion that held just before the branch that tests it: one decision, two events. Does `assertion`
// say of the branch's own condition that it held?
bool same_decision(const trace::Trace& trace, uint32_t assertion, uint32_t branch);

// That a term is known and as wished.
std::vector<z3::expr> decides(z3::context& z3, const Term& term, uint64_t recorded, const Wish& wish);

}  // namespace stem::encoder
