// φdu: some byte that r reads was last written by w. A read of several bytes may have several definitions at once.
#include "encoder/values.h"

namespace stem::encoder {

z3::expr Values::defuse(uint32_t write, uint32_t read) {
  std::vector<z3::expr> options;
  for (const Chunk& chunk : chunks(read)) {
    bool covers = false;
    for (uint32_t writer : chunk.writers) covers |= writer == write;
    if (covers) options.push_back(takes(read, chunk, write));
    if (chunk.before == write) options.push_back(takes(read, chunk, kInitial));
  }
  const z3::expr flows = f_.any(options);
  return f_.prefix ? flows && f_.cut == f_.position(read) : flows;
}

}  // namespace stem::encoder
