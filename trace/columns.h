// What Writer::take_columns() works with: the values of each step of a path over many rounds.
#pragma once

#include <array>

#include "trace/writer.h"

namespace stem::trace {

struct Writer::Columns {
  static constexpr size_t kLeastRounds = 4;
  using Column = std::array<uint64_t, kMostRounds + 1>;  // [0] is that of the round before, where it matters

  struct Place {
    uint64_t first, stride;  // of the first round,
    uint64_t low, high;      // of all
    uint8_t* bytes;          // of the first round, in the shadow
  };
  struct Operand {
    const uint64_t* values = nullptr;  // one a round
    unsigned width = 0;
    ExprId id = 0;          // of every round; 0: another one in each,
    uint32_t distance = 0;  // so far back
  };
  struct Expression {
    Operand a, b;
    uint64_t given = 0;
  };

  std::array<Column, Path::kMostSteps> values;
  std::array<Column, Path::kMostSteps> constants;  // that are operands
  std::array<Place, Path::kMostSteps> places;
  std::array<Expression, Path::kMostSteps> expressions;
  std::array<bool, Path::kMostSteps> done;  // its values are there
  Column scratch[4];
  struct Unsettled {  // a step with something that may not be predicted in the first rounds
    uint16_t step;
    bool moves;  // its address
  };
  std::array<Unsettled, Path::kMostSteps> unsettled;
};

}  // namespace stem::trace
