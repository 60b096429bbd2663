#include "oracle/shrink.h"

namespace stem::oracle {

using Kind = Statement::Kind;

namespace {

// Statement number `index` of a block, counted depth first; what the function does to it.
using Change = std::function<void(Block& block, size_t at)>;

bool change(Block& block, size_t& index, const Change& apply) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (index-- == 0) {
      apply(block, i);
      return true;
    }
    if (change(block[i].body, index, apply) || change(block[i].otherwise, index, apply)) return true;
  }
  return false;
}

bool change(Program& program, size_t index, const Change& apply) {
  for (Block& block : program.threads)
    if (change(block, index, apply)) return true;
  return false;
}

void remove(Block& block, size_t at) {
  // A worker that is not created would leave a hole in the numbering of the threads.
  if (block[at].kind != Kind::Create) block.erase(block.begin() + static_cast<std::ptrdiff_t>(at));
}

void unwrap(Block& block, size_t at) {
  if (block[at].body.empty()) return;
  Block inner = std::move(block[at].body);
  block.erase(block.begin() + static_cast<std::ptrdiff_t>(at));
  block.insert(block.begin() + static_cast<std::ptrdiff_t>(at), inner.begin(), inner.end());
}

void simplify(Block& block, size_t at) {
  block[at].term = {trace::Op::Const, {Atom::Kind::Const, 1}, {}};
  block[at].pinned = false;
}

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Change& apply : {Change(remove), Change(unwrap), Change(simplify)}) {
      for (size_t index = 0;; ++index) {
        Program candidate = program;
        if (!change(candidate, index, apply)) break;
        if (print(candidate) == print(program) || !fails(candidate)) continue;
        program = std::move(candidate);
        smaller = true;
        --index;
      }
    }
  }
  return program;
}

}  // namespace stem::oracle
