// What functions of libraries do with pointers and memory (static/externals.def).
#pragma once

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <vector>

namespace stem::analysis {

enum class Effect : uint8_t {
  Unknown,
  None,
  Outside,
  Allocates,
  Reallocates,
  Duplicates,
  ReturnsArg0,
  ReturnsInArg0,
  Copies,
  CopiesBack,
  PointsInto,
  Scans,
  ScansThrough,
  CreatesThread,
  StartsThread,
  StartsState,
  JoinsThread,
  EndsThread,
  SetsSpecific,
  GetsSpecific,
  StoresResult,
  CallsBack,
  CallsAnywhere,
  HandlesSignal,
};

// An argument, or the result, whose memory the call itself reads or writes: what a recorder tells at the call's site.
struct Touch {
  static constexpr unsigned kResult = UINT32_MAX;
  unsigned argument = 0;
  bool reads = false, writes = false;
  bool deep = false;  // and what pointers in there point to
  uint32_t size = 0;  // bytes; 0: to the end of the object
};

struct LibraryFunction {
  Effect effect = Effect::Unknown;
  std::vector<Touch> touches;
  bool rest = false;  // all further arguments are touched like the last one
};

// A function that is not in the table is Unknown. No recorder sees what it touches, so nothing of that is at its site.
const LibraryFunction& library_function(llvm::StringRef name);
bool is_library_function(llvm::StringRef name);  // in the table

}  // namespace stem::analysis
