#include "static/library.h"

#include <llvm/ADT/StringMap.h>

namespace stem::analysis {

namespace {

// See the head of externals.def.
LibraryFunction parse(Effect effect, llvm::StringRef text) {
  LibraryFunction function{effect, {}, false};
  unsigned argument = 0;
  bool result = false;
  while (!text.empty()) {
    char letter = text.front();
    text = text.drop_front();
    if (letter == '>') {
      result = true;
      continue;
    }
    if (letter == '+') {
      function.rest = true;
      continue;
    }
    Touch touch;
    touch.argument = result ? Touch::kResult : argument++;
    const char lower = static_cast<char>(letter | 0x20);
    touch.reads = lower == 'r' || lower == 'b';
    touch.writes = lower == 'w' || lower == 'b';
    touch.deep = letter != '-' && letter != lower;
    text.consumeInteger(10, touch.size);
    if (touch.reads || touch.writes) function.touches.push_back(touch);
  }
  return function;
}

const llvm::StringMap<LibraryFunction>& table() {
  static const llvm::StringMap<LibraryFunction> functions = [] {
    llvm::StringMap<LibraryFunction> map;
#define STEM_EXTERNAL(name, effect, touches) map[#name] = parse(Effect::effect, touches);
#include "static/externals.def"
    return map;
  }();
  return functions;
}

}  // namespace

const LibraryFunction& library_function(llvm::StringRef name) {
  static const LibraryFunction unknown;
  auto entry = table().find(name);
  return entry == table().end() ? unknown : entry->second;
}

bool is_library_function(llvm::StringRef name) { return table().contains(name); }

}  // namespace stem::analysis
